"""The blocks of README and docs, run on the emulator."""
