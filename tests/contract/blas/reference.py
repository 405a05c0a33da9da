"""cuBLAS and cuSOLVER as their manuals describe them, in NumPy: column-major, by address."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import cudadrv
from cudadrv.memory.buffer import DeviceBuffer

# float32 or float64, by the function's first letter.
Array = npt.NDArray[Any]
_DTYPE = {"s": np.dtype(np.float32), "d": np.dtype(np.float64)}


class LibraryError(Exception):
    """A status other than success."""


class Reference:
    """Both libraries on one stream; ``dgemm`` is ``_gemm`` for float64, and so on."""

    def __init__(self, stream: cudadrv.Stream) -> None:
        self.stream = stream
        self.created = 0
        self.streams: dict[int, int] = {}

    def __getattr__(self, name: str) -> Callable[..., object]:
        operation: Callable[..., object] = getattr(type(self), f"_{name[1:]}")

        def call(handle: int, *args: int) -> object:
            if self.streams.get(handle) != int(self.stream.handle):
                raise LibraryError(f"handle {handle} is not bound to the stream")
            return operation(self, _DTYPE[name[0]], *args)

        return call

    def create(self) -> int:
        self.created += 1
        return self.created

    def set_stream(self, handle: int, stream_id: int) -> None:
        self.streams[handle] = stream_id

    def _gemm(
        self,
        dtype: np.dtype[Any],
        transa: int,
        transb: int,
        m: int,
        n: int,
        k: int,
        alpha: int,
        a: int,
        lda: int,
        b: int,
        ldb: int,
        beta: int,
        c: int,
        ldc: int,
    ) -> None:
        left = self._matrix(a, lda, (k, m) if transa else (m, k), dtype)
        right = self._matrix(b, ldb, (n, k) if transb else (k, n), dtype)
        product = (left.T if transa else left) @ (right.T if transb else right)
        self._combine(c, ldc, product, alpha, beta)

    def _gemv(
        self,
        dtype: np.dtype[Any],
        trans: int,
        m: int,
        n: int,
        alpha: int,
        a: int,
        lda: int,
        x: int,
        incx: int,
        beta: int,
        y: int,
        incy: int,
    ) -> None:
        assert incx == incy == 1
        matrix = self._matrix(a, lda, (m, n), dtype)
        if m == 0 or n == 0:
            return
        matrix = matrix.T if trans else matrix
        vector = self._matrix(x, matrix.shape[1], (matrix.shape[1], 1), dtype)
        self._combine(y, matrix.shape[0], matrix @ vector, alpha, beta)

    def _syrk(
        self,
        dtype: np.dtype[Any],
        uplo: int,
        trans: int,
        n: int,
        k: int,
        alpha: int,
        a: int,
        lda: int,
        beta: int,
        c: int,
        ldc: int,
    ) -> None:
        matrix = self._matrix(a, lda, (k, n) if trans else (n, k), dtype)
        matrix = matrix.T if trans else matrix
        before = self._matrix(c, ldc, (n, n), dtype)
        self._combine(c, ldc, matrix @ matrix.T, alpha, beta)
        after = self._matrix(c, ldc, (n, n), dtype)
        kept = np.tril(np.ones((n, n), bool), -1) if uplo else np.triu(np.ones((n, n), bool), 1)
        self._write(c, ldc, np.where(kept, before, after))

    def _trsm(
        self,
        dtype: np.dtype[Any],
        side: int,
        uplo: int,
        trans: int,
        diag: int,
        m: int,
        n: int,
        alpha: int,
        a: int,
        lda: int,
        b: int,
        ldb: int,
    ) -> None:
        assert diag == 0
        order = n if side else m
        stored = self._matrix(a, lda, (order, order), dtype)
        triangle = np.triu(stored) if uplo else np.tril(stored)
        triangle = triangle.T if trans else triangle
        found = self._matrix(b, ldb, (m, n), dtype) * _scalar(alpha, dtype)
        solved = (
            np.linalg.solve(triangle.T, found.T).T if side else np.linalg.solve(triangle, found)
        )
        self._write(b, ldb, solved.astype(dtype))

    def _dgmm(
        self,
        dtype: np.dtype[Any],
        mode: int,
        m: int,
        n: int,
        a: int,
        lda: int,
        x: int,
        incx: int,
        c: int,
        ldc: int,
    ) -> None:
        assert incx == 1
        matrix = self._matrix(a, lda, (m, n), dtype)
        size = n if mode else m
        diagonal = self._matrix(x, size, (size, 1), dtype)[:, 0]
        self._write(c, ldc, matrix * diagonal if mode else diagonal[:, None] * matrix)

    def _potrf_buffer_size(self, dtype: np.dtype[Any], uplo: int, n: int, a: int, lda: int) -> int:
        return n

    def _potrf(
        self,
        dtype: np.dtype[Any],
        uplo: int,
        n: int,
        a: int,
        lda: int,
        workspace: int,
        lwork: int,
        dev_info: int,
    ) -> None:
        assert workspace
        assert lwork == n
        stored = self._matrix(a, lda, (n, n), dtype)
        lower = np.tril(stored.T if uplo else stored)
        order = 0
        for j in range(n):
            pivot = lower[j, j] - lower[j, :j] @ lower[j, :j]
            if not pivot > 0:
                order = j + 1
                break
            lower[j, j] = np.sqrt(pivot)
            rest = lower[j + 1 :, j] - lower[j + 1 :, :j] @ lower[j, :j]
            lower[j + 1 :, j] = rest / lower[j, j]
        factor = np.triu(lower.T) + np.tril(stored, -1) if uplo else lower + np.triu(stored, 1)
        self._write(a, lda, factor)
        self._write(dev_info, 1, np.array([[order]], np.int32))

    def _combine(self, c: int, ldc: int, product: Array, alpha: int, beta: int) -> None:
        dtype = product.dtype
        if product.size == 0:
            return
        result = product * _scalar(alpha, dtype)
        if factor := _scalar(beta, dtype):
            result = result + factor * self._matrix(c, ldc, product.shape, dtype)
        self._write(c, ldc, result)

    def _matrix(
        self, address: int, leading: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Array:
        rows, columns = shape
        if leading < max(rows, 1):
            raise LibraryError(f"a leading dimension of {leading} for {rows} rows")
        result = np.zeros((columns, leading), dtype)
        if result.size and rows:
            flat = result.reshape(-1)[: leading * (columns - 1) + rows]
            self.stream.copy(flat.view("u1"), self._bytes(address, flat.nbytes))
        return result[:, :rows].T

    def _write(self, address: int, leading: int, matrix: Array) -> None:
        # The rows below are another matrix's: each column by itself.
        for number, column in enumerate(np.ascontiguousarray(matrix.T)):
            to = self._bytes(address + number * leading * matrix.itemsize, column.nbytes)
            if column.nbytes:
                self.stream.copy(to, column.view("u1"))

    def _bytes(self, address: int, nbytes: int) -> DeviceBuffer:
        return DeviceBuffer.borrowed(self.stream, address, nbytes, None)


def _scalar(address: int, dtype: np.dtype[Any]) -> float:
    kind = ctypes.c_float if dtype == np.float32 else ctypes.c_double
    return float(kind.from_address(address).value)
