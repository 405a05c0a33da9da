"""Interrupts: at each point of each operation, and at random moments of the long ones."""
