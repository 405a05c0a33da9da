"""Tensor cores."""

from ptx.emulate.ops.matrix import (
    matrix_move,
    matrix_product,
    matrix_sparse,
    warpgroup,
    wmma,
    wmma_move,
)

__all__ = ["matrix_move", "matrix_product", "matrix_sparse", "warpgroup", "wmma", "wmma_move"]
