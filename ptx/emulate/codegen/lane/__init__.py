"""Code for single threads: Python on numbers, where NumPy on arrays of one would be slow."""
