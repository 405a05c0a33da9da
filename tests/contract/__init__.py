"""What holds on a GPU and on the emulator alike; nothing here asks which of the two runs."""
