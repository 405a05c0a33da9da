"""How generated code runs: the scheduler of fibres, and launches."""
