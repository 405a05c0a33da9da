"""The emulator as a shared library, for whoever calls the driver by its C functions."""
