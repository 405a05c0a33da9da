"""Campaigns against the library: `python -m campaigns`, with a short slice in the tests."""
