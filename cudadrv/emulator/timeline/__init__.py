"""Time on the emulator: queued operations, what each waits for, and in which order they run."""
