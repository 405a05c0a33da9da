"""The driver's functions, a file for each noun; `cudadrv.emulator.emulator` puts them together."""
