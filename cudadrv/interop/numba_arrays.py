"""Numba's device arrays."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from operator import attrgetter
from typing import Any, Final

from .reader import Reader

_LEGACY: Final = 0
_PER_THREAD: Final = 2


def readers() -> Iterator[tuple[type, Reader]]:
    """The types with their readers."""
    arrays = sys.modules["numba.cuda.cudadrv.devicearray"]
    # What Numba itself reads, once, for its default stream.
    per_thread = os.environ.get("NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM", "0") not in ("", "0")
    default = _PER_THREAD if per_thread else _LEGACY
    reader = Reader(
        _address,
        attrgetter("gpu_data._cudadrv_device"),
        lambda ordinal: default,
        attrgetter("dtype"),
        examine=_examined,
    )
    yield arrays.DeviceNDArray, reader


# The library has no types.
def _address(array: Any) -> int | None:
    # An array may be of a stream of its own, which its array interface names. The number 0 is one
    # object in CPython.
    if array.stream is not _LEGACY:
        return None
    data = array.gpu_data
    # What is kept with an allocation never changes, and finding it costs more than all the rest.
    try:
        known: int = data._cudadrv_address
    except AttributeError:
        _examined(array)
        known = data._cudadrv_address = int(data.device_pointer)
    return known


def _examined(array: Any) -> bool:
    """Keep with an allocation on which device it lies."""
    array.gpu_data._cudadrv_device = array.gpu_data.context.device.id
    return True
