"""Memory that is used again without asking the driver."""
