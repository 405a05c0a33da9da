"""Other libraries, one a file; each has the cases that it can be compared in."""
