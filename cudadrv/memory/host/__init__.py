"""Memory of the host that devices reach where it lies: pinned, registered or managed."""
