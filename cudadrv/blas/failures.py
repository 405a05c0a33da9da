"""The linear algebra's own errors."""

from __future__ import annotations

from ..errors import CudadrvError


class NotPositiveDefiniteError(CudadrvError):
    """A matrix has no Cholesky factor.

    Attributes:
        index: the row, from 0, at which the factorisation stopped: the leading minor of order
            index + 1 is not positive definite.
    """

    def __init__(self, order: int, index: int) -> None:
        super().__init__(
            f"the matrix of order {order} is not positive definite: its Cholesky factorisation "
            f"stopped at row {index}"
        )
        self.index = index
