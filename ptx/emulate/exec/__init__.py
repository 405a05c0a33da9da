"""Execution of generated code: the scheduler of fibres, and launches."""
