"""What an implementation of the linear algebra offers; shapes and streams are checked above it."""

from __future__ import annotations

from typing import Protocol

from ..memory.array import AnyDeviceArray


class Routines(Protocol):
    """Row-major operations on checked arrays, in the order of one stream.

    `transposed` flags are for the stored matrix; `a` of syrk and `factor` of trsm likewise.
    """

    def warm_up(self) -> None:
        """Make what the first call would make."""

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

    def trsm(self, factor: AnyDeviceArray, b: AnyDeviceArray, *, transposed: bool) -> None:
        """b = op(factor)⁻¹ · b with a lower triangular factor."""

    def scale_rows(self, x: AnyDeviceArray, w: AnyDeviceArray, out: AnyDeviceArray) -> None:
        """out = diag(w) · x."""

    def potrf(self, a: AnyDeviceArray) -> int:
        """The lower Cholesky factor in the lower triangle of a; 0, or the order that failed."""
        ...
