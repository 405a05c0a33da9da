"""What a launch executed: instructions by class, branches, sectors, bank conflicts, atomics."""
