"""How generated code runs: fibres, their scheduler, and launches."""
