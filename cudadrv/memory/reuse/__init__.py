"""Allocators that reuse memory without calling the driver."""
