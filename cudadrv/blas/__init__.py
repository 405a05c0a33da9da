"""Dense linear algebra on device arrays: cuBLAS and cuSOLVER, or NumPy on the emulator."""

from .algebra import (
    LinearAlgebra as LinearAlgebra,
    NotPositiveDefiniteError as NotPositiveDefiniteError,
)

__all__ = ["LinearAlgebra", "NotPositiveDefiniteError"]
