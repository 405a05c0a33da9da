"""Counts of the emulator beside those of Nsight Compute."""
