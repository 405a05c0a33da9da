"""A slow interpreter of PTX to hold the emulator against: plain integers, one thread at a time.

It shares nothing with `ptx.emulate`; of the package it uses the parser alone.
"""
