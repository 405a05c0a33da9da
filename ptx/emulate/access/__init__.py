"""Memory accesses of threads: locating elements, checking accesses, loading and storing values."""
