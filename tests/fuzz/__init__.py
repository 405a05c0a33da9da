"""Random PTX against the emulator: valid programs compared with a reference, broken ones refused.

`python -m tests.fuzz --seconds 3600 [--seed N]`; tests/ptx/emulate/test_fuzz.py runs a slice.
"""
