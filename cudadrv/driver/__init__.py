"""The driver: the seam to it, devices, contexts and events."""
