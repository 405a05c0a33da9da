"""The driver's functions, one file per chapter of its manual; `Emulator` combines them."""
