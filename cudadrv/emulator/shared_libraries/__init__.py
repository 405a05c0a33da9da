"""The emulator as shared libraries, for callers of the driver's C functions."""
