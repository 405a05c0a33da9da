"""Pools of memory that users make: of a device and of pinned host memory; buffers that grow."""
