"""What all other rooms use: types, places of threads, addresses, errors, the clock."""
