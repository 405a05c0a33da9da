"""JAX's arrays.

They are values that may still be computed, on a stream that JAX does not tell. Once one is ready it
stays so, where it is, until it is deleted or given away. So what was found is kept with the array,
and later only asked whether it was deleted. One that is not ready is asked by DLPack, which lets
our stream wait.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Final

from .reader import Reader

_PLATFORMS: Final = ("gpu", "cuda")
_ELSEWHERE: Final = -1


def readers() -> Iterator[tuple[type, Reader]]:
    """The types with their readers."""
    for name in ("jaxlib._jax", "jaxlib.xla_extension"):  # by version
        array_type = getattr(sys.modules.get(name), "ArrayImpl", None)
        if array_type is not None:
            yield (
                array_type,
                Reader(
                    _address,
                    attrgetter("_cudadrv_device"),
                    dtype=attrgetter("_cudadrv_dtype"),
                    examine=_examined,
                    is_read_only=True,
                ),
            )
            return


# The library need not be installed where types are checked.
def _address(array: Any) -> int | None:
    if array.is_deleted():
        return None
    try:
        known: int | None = array._cudadrv_address
    except AttributeError:
        _examined(array)
        known = getattr(array, "_cudadrv_address", None)
    return known


def _examined(array: Any) -> bool:
    """Find where an array lies, and its address once it is ready."""
    pointer: int = array.unsafe_buffer_pointer()  # a deleted array raises here, and crashes below
    devices = tuple(array.sharding.device_set)
    if len(devices) != 1:
        raise BufferError(
            f"lies on {len(devices)} devices\n"
            "  give the part on this one, array.addressable_data(number)"
        )
    (device,) = devices
    is_cuda = device.platform in _PLATFORMS
    array._cudadrv_dtype = array.dtype  # read in a third of the time
    array._cudadrv_device = int(device.local_hardware_id) if is_cuda else _ELSEWHERE
    if array.is_ready():
        array._cudadrv_address = pointer
    return True
