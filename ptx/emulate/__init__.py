"""PTX executed in NumPy."""
