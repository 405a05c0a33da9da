"""Threads that execute together: their registers, their blocks, and the launch that they are of."""
