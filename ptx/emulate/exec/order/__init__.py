"""Launches whose parts run in an order that is late, or drawn by a seed."""
