"""Campaigns against the library: `python -m tests.attack`, with a short slice in the tests."""
