"""The emulator chosen as the driver in use: for a process, a block, or other libraries too."""
