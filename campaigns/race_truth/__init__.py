"""Ground truth for the race check: right kernels, the same with one fault each, and inputs."""
