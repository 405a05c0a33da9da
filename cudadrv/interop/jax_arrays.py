"""JAX's arrays.

They are values that may still be computed, on a stream that JAX does not tell. Once one is ready it
stays so until it is deleted or given away, and then its address is an error. One that is not ready
is asked by DLPack, which lets our stream wait.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

from .reader import Reader

_PLATFORMS: Final = ("gpu", "cuda")
_ELSEWHERE: Final = -1


def readers() -> Iterator[tuple[type, Reader]]:
    """The types with their readers."""
    for name in ("jaxlib._jax", "jaxlib.xla_extension"):  # by version
        array_type = getattr(sys.modules.get(name), "ArrayImpl", None)
        if array_type is not None:
            yield array_type, Reader(_address, _device_of())
            return


def _address(array: Any) -> int | None:
    pointer: int = array.unsafe_buffer_pointer()  # first: a deleted array raises here alone
    # Asking costs as much as all the rest, so what is known to be ready is marked.
    try:
        array._cudadrv_ready  # noqa: B018  # there, or not
    except AttributeError:
        if not array.is_ready():
            return None
        array._cudadrv_ready = True
    return pointer


def _device_of() -> Callable[[Any], int]:
    # By the device of JAX; there are as many as a process has.
    ordinals: dict[object, int] = {}

    def device(array: Any) -> int:
        sharding = array.sharding
        try:
            return ordinals[sharding._device]
        except (AttributeError, KeyError):
            pass
        devices = tuple(sharding.device_set)
        if len(devices) != 1:
            raise BufferError(
                f"lies on {len(devices)} devices: give the part of this one, "
                "array.addressable_data(number)"
            )
        (where,) = devices
        found = int(where.local_hardware_id) if where.platform in _PLATFORMS else _ELSEWHERE
        return ordinals.setdefault(where, found)

    return device
