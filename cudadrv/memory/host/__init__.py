"""Memory of the host that devices reach where it lies: registered, managed, viewed by kernels."""
