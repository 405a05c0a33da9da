"""Counters of a launch: instructions by class, branches, sectors, bank conflicts, atomics."""
