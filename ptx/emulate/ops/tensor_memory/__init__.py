"""Tensor memory, and the tensor cores that work on it: PTX ISA, "tcgen05"."""

from ptx.emulate.ops.tensor_memory import (
    shared_to_tensor,
    tensor_access,
    tensor_allocation,
    tensor_commit,
    tensor_product,
)

__all__ = [
    "shared_to_tensor",
    "tensor_access",
    "tensor_allocation",
    "tensor_commit",
    "tensor_product",
]
