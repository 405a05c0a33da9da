"""The assembler and the compiler that `python -m cudadrv emulate` puts first on PATH."""
