"""An observer that records accesses in their order."""
