"""The linear algebra by NumPy on host copies: for the emulator, which has no cuBLAS."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import StreamCaptureUnsupportedError
from ..memory.array import AnyDeviceArray
from ..memory.dtypes import AnyArray

if TYPE_CHECKING:
    from ..stream import Stream


class HostRoutines:
    """`Routines` that copy to the host and back; a capture cannot record them."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def warm_up(self) -> None:
        """Nothing is needed."""

    def gemm(
        self,
        a: AnyDeviceArray,
        b: AnyDeviceArray,
        out: AnyDeviceArray,
        *,
        alpha: float,
        beta: float,
        a_transposed: bool,
        b_transposed: bool,
    ) -> None:
        """out = alpha · op(a) · op(b) + beta · out."""
        left, right = self._read(a), self._read(b)
        product = (left.T if a_transposed else left) @ (right.T if b_transposed else right)
        self._write(out, product, alpha, beta)

    def gemv(
        self,
        a: AnyDeviceArray,
        x: AnyDeviceArray,
        out: AnyDeviceArray,
        *,
        alpha: float,
        beta: float,
        transposed: bool,
    ) -> None:
        """out = alpha · op(a) · x + beta · out."""
        matrix = self._read(a)
        product = (matrix.T if transposed else matrix) @ self._read(x)
        self._write(out, product, alpha, beta)

    def syrk(
        self,
        a: AnyDeviceArray,
        out: AnyDeviceArray,
        *,
        alpha: float,
        beta: float,
        transposed: bool,
    ) -> None:
        """The lower triangle of out = alpha · op(a) · op(a)ᵀ + beta · out."""
        matrix = self._read(a)
        matrix = matrix.T if transposed else matrix
        former = self._read(out)
        # As in BLAS, a factor of 0 means that `out` is not read, even if it holds NaN.
        new = _scaled(matrix @ matrix.T, alpha) + (_scaled(former, beta) if beta else 0)
        lower = np.tril_indices(former.shape[0])
        former[lower] = new.astype(former.dtype)[lower]
        self._stream.copy(out, former)

    def trsm(self, factor: AnyDeviceArray, b: AnyDeviceArray, *, transposed: bool) -> None:
        """b = op(factor)⁻¹ · b with a lower triangular factor."""
        triangle, solution = self._read(factor), self._read(b)
        rows = range(triangle.shape[0])
        with np.errstate(all="ignore"):  # a zero on the diagonal gives infinities, as in BLAS
            for row in reversed(rows) if transposed else rows:
                known = slice(row + 1, None) if transposed else slice(row)
                weights = triangle[known, row] if transposed else triangle[row, known]
                solution[row] = (solution[row] - weights @ solution[known]) / triangle[row, row]
        self._stream.copy(b, solution)

    def scale_rows(self, x: AnyDeviceArray, w: AnyDeviceArray, out: AnyDeviceArray) -> None:
        """out = diag(w) · x."""
        self._stream.copy(out, self._read(w)[:, None] * self._read(x))

    def potrf(self, a: AnyDeviceArray) -> int:
        """The lower Cholesky factor in the lower triangle of a; 0, or the order that failed."""
        matrix = self._read(a)
        try:
            factor = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            return _failing_order(matrix)
        self._stream.copy(a, np.tril(factor) + np.triu(matrix, 1))
        return 0

    def _read(self, array: AnyDeviceArray) -> AnyArray:
        if self._stream.capturing:
            raise StreamCaptureUnsupportedError(
                "linear algebra in a capture on the emulator, where it runs on the host",
                text="call it outside the capture",
                explained=True,
            )
        return self._stream.to_host(array)

    def _write(self, out: AnyDeviceArray, product: AnyArray, alpha: float, beta: float) -> None:
        result = _scaled(product, alpha)
        if beta:
            result = result + _scaled(self._read(out), beta)
        self._stream.copy(out, result.astype(out.dtype, copy=False))


def _scaled(array: AnyArray, factor: float) -> AnyArray:
    return array if factor == 1.0 else array * array.dtype.type(factor)


def _failing_order(matrix: AnyArray) -> int:
    """Return the least order whose leading block is not positive definite, by bisection."""
    good, bad = 0, len(matrix)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            np.linalg.cholesky(matrix[:middle, :middle])
        except np.linalg.LinAlgError:
            bad = middle
        else:
            good = middle
    return bad
