"""Tensor memory, and the tensor cores that work on it: PTX ISA, "tcgen05"."""

from ptx.emulate.ops.tensor_memory import tensor_access, tensor_allocation

__all__ = ["tensor_access", "tensor_allocation"]
