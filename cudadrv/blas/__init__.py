"""Dense linear algebra on device arrays: cuBLAS and cuSOLVER, or NumPy on the emulator."""

from .algebra import LinearAlgebra as LinearAlgebra
from .failures import NotPositiveDefiniteError as NotPositiveDefiniteError
