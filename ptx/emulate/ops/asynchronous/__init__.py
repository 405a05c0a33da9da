"""Copies and barriers that count them."""

from ptx.emulate.ops.asynchronous import (
    async_copy,
    bulk_copy,
    bulk_reduce,
    mbarrier,
    tensor_copy,
    tensor_map,
    tensor_reduce,
)

__all__ = [
    "async_copy",
    "bulk_copy",
    "bulk_reduce",
    "mbarrier",
    "tensor_copy",
    "tensor_map",
    "tensor_reduce",
]
