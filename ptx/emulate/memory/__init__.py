"""The memory of an emulated device, and each access to it."""
