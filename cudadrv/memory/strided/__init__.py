"""Arrays whose elements do not lie one behind the other: copied, filled, assigned to."""
