"""Random PTX against the emulator: valid programs compared with a reference, wrong ones refused.

Wrong are valid programs that were broken, and any instructions of the emulator's own table on any
operands. `python -m tests.fuzz --seconds 3600 [--seed N]`; tests/ptx/emulate/test_fuzz.py runs a
slice.
"""
