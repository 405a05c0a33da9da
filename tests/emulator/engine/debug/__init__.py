"""Stops of launches, and the state of their threads at a stop."""
