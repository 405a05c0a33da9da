"""The driver: its interface, devices, contexts and events."""
