"""Time on the emulator: queued operations, their dependencies, and their order of execution."""
