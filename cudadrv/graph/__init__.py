"""Graphs: captured or built, and replayed at the cost of one call.

This file imports nothing. Streams import files of this package when they first need them. If two
threads did so at once, and this file imported the same files, each would wait for the other.
"""
