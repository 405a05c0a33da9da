"""The race check against a model that keeps every access, on kernels made at random."""
