"""Threads that execute together: their registers, their blocks, and their launch."""
