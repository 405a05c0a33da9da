"""What a kernel needs of a multiprocessor, as the driver's compiler made it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..driver._api import CUfunction_attribute as _Attribute

if TYPE_CHECKING:
    from .kernel import Kernel


class KernelAttributes(NamedTuple):
    """What a kernel needs, as the driver says; sizes in bytes.

    Source: CUfunction_attribute in the CUDA Driver API manual.
    """

    max_threads_per_block: int
    static_shared_bytes: int
    const_bytes: int
    local_bytes: int
    registers: int
    ptx_version: int
    binary_version: int


def attributes_of(kernel: Kernel) -> KernelAttributes:
    """Ask the driver."""
    ask = kernel.attribute
    return KernelAttributes(
        ask(_Attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        ask(_Attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
        ask(_Attribute.CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES),
        ask(_Attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
        ask(_Attribute.CU_FUNC_ATTRIBUTE_NUM_REGS),
        ask(_Attribute.CU_FUNC_ATTRIBUTE_PTX_VERSION),
        ask(_Attribute.CU_FUNC_ATTRIBUTE_BINARY_VERSION),
    )
