"""What the driver knows of an address."""

from __future__ import annotations

from typing import Final

from ._api import CUmemorytype, CUpointer_attribute, CUresult
from .context_handle import ContextHandle
from .driver_selection import failure

MEMORY_TYPE: Final = CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
_KNOWN: Final = (
    int(CUmemorytype.CU_MEMORYTYPE_HOST),
    int(CUmemorytype.CU_MEMORYTYPE_DEVICE),
    int(CUmemorytype.CU_MEMORYTYPE_UNIFIED),
)


def known_at(
    context: ContextHandle, address: int, attributes: tuple[CUpointer_attribute, ...] = ()
) -> list[object] | None:
    """The attributes of memory that the driver knows; None for other memory.

    It is asked by cuPointerGetAttributes, which gives nulls for other memory, where
    cuPointerGetAttribute fails, and checkers of a program's calls report each failure.

    Raises:
        CudaError: the driver refused, or told of the failure of earlier work.
    """
    api, count = context._driver.api, 1 + len(attributes)
    asked = (MEMORY_TYPE, *attributes)
    code, values = api.cuPointerGetAttributes(count, asked, address)
    if code == CUresult.CUDA_ERROR_INVALID_CONTEXT:
        code, values = context.call(api.cuPointerGetAttributes, count, asked, address)
        # By the manual: the memory is of no context with unified addresses.
        if code == CUresult.CUDA_ERROR_INVALID_CONTEXT:
            return None
    if code:
        doing = f"asking what is at {address:#x}"
        raise failure(api, code, "cuPointerGetAttributes", doing)
    kind, *rest = values
    return rest if isinstance(kind, int) and int(kind) in _KNOWN else None
