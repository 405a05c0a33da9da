"""Checks of a kernel while it runs, and their findings."""
