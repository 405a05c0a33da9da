"""The driver's functions, a file for each chapter of its manual; `Emulator` puts them together."""
