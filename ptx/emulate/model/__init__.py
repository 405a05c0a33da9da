"""What every other part speaks of: types, places of threads, faults, addresses."""
