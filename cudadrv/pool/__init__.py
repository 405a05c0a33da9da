"""Several devices: a pool of contexts, and work shared between devices by their scores."""
