"""Tensor cores."""

from ptx.emulate.ops.matrix import (
    matrix_move,
    matrix_move_bytes,
    matrix_product,
    matrix_scaled,
    matrix_sparse,
    warpgroup,
    wmma,
    wmma_move,
)

__all__ = [
    "matrix_move",
    "matrix_move_bytes",
    "matrix_product",
    "matrix_scaled",
    "matrix_sparse",
    "warpgroup",
    "wmma",
    "wmma_move",
]
