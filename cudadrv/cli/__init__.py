"""The commands of ``python -m cudadrv``."""
