"""What ``python -m cudadrv`` runs."""
