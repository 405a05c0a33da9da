"""New device arrays, not initialised: in C or Fortran order, or with rows that begin aligned."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from .. import border
from ..driver.stream import BaseStream
from ..errors import InvalidValueError
from .array import AnyDeviceArray, DeviceArray, view_of
from .buffer import alloc
from .dtypes import NAMED, NUMBERS, AnyDType, checked_dtype
from .layout import Shape, checked_shape, dense_strides, require_countable

if TYPE_CHECKING:
    import numpy.typing as npt

_new: Final = object.__new__
# What cuMemAllocPitch rounds to on the devices of today; textures need 32 (driver 580, H100).
_PITCH_BYTES: Final = 512


C_ORDER: Final = "C"
"""The usual order of axes; what is not this very text is looked at by `is_fortran`."""


def empty(
    stream: BaseStream, shape: Shape, dtype: npt.DTypeLike, order: str = "C"
) -> AnyDeviceArray:
    """A device array, not initialised; in the order "F" the first axis is the nearest."""
    kind: AnyDType
    if dtype.__class__ in NUMBERS:
        kind = dtype
        nbytes = kind.itemsize
    else:
        try:
            kind, nbytes = NAMED[dtype]
        except (KeyError, TypeError):
            kind = checked_dtype(dtype)
            nbytes = kind.itemsize
    if type(shape) is int and shape >= 0:
        extents: tuple[int, ...] = (shape,)
        nbytes *= shape
    else:
        extents = checked_shape(shape)
        nbytes *= math.prod(extents)
        if not nbytes:
            require_countable(extents)
    array: AnyDeviceArray = _new(DeviceArray)
    array.shape, array.dtype = extents, kind
    array._allocate(stream, nbytes)
    if order is not C_ORDER and is_fortran(order):
        array.shape = extents[::-1]
        return array.T
    return array


def is_fortran(order: object) -> bool:
    """Whether the first axis is to be the nearest; asked where an order is not just `C_ORDER`."""
    if isinstance(order, str) and order in ("C", "F"):
        return order == "F"
    raise border.refused("the order of an array", order, 'give "C" or "F"')


def empty_pitched(stream: BaseStream, shape: Shape, dtype: npt.DTypeLike) -> AnyDeviceArray:
    """A device array, not initialised, whose rows begin at multiples of 512 bytes."""
    kind, extents = checked_dtype(dtype), checked_shape(shape)
    if not extents:
        raise InvalidValueError("an array of no dimensions has no rows: give one extent or more")
    row = extents[-1] * kind.itemsize
    # A pitch of whole elements, as other libraries count in them.
    unit = math.lcm(_PITCH_BYTES, kind.itemsize)
    pitch = -(-row // unit) * unit
    rows = math.prod(extents[:-1])
    strides = (*dense_strides(extents[:-1], pitch), kind.itemsize)
    buffer = alloc(stream, pitch * rows)
    return view_of(buffer, buffer.ptr, extents, kind, strides)
