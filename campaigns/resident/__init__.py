"""How many blocks a multiprocessor holds: the emulator's answers, the driver's, and ncu's."""
