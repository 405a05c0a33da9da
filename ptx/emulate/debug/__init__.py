"""An observer that stops launches, and reads the state of their threads: for debuggers."""
