"""Shared definitions of all layers: types, positions of threads, addresses, errors, the clock."""
