"""Loads, stores, atomics, and the heap of device code."""

from ptx.emulate.ops.memory import allocation, atomic, cache_policy, load_store

__all__ = ["allocation", "atomic", "cache_policy", "load_store"]
