"""Launches whose parts run in a "late" order, or in a random one drawn by a seed."""
