"""Assignment to the elements of a device array, by NumPy's rules of shapes: `Stream.assign`."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from .. import border
from ..driver.stream import BaseStream
from ..errors import CopyError, DTypeError
from .array import AnyDeviceArray, DeviceArray, empty, view_of
from .copy import copy
from .dtypes import AnyArray, AnyDType
from .fill import fill
from .host_copy import as_array
from .managed import is_managed
from .resource import without_choices

if TYPE_CHECKING:
    import numpy.typing as npt


def assign(stream: BaseStream, dst: AnyDeviceArray, value: object) -> None:
    """Assign the elements of an array from another array, which is broadcast, or from one value.

    Raises:
        CopyError: the shapes do not fit.
        DTypeError: the values' dtype cannot be cast to the array's without a change of kind.
        InvalidValueError: the array's dtype cannot hold a value; elements overlap each other.
    """
    border.instance_of("Stream.assign: dst", dst, DeviceArray)
    if isinstance(value, DeviceArray):
        _assign_device(stream, dst, value)
        return
    if not (isinstance(value, tuple) and dst.dtype.names):  # a tuple is one structure
        # It reports values that cannot become an array.
        source = as_array(cast("npt.ArrayLike", value))
        if source.ndim or isinstance(value, np.ndarray):
            if source.dtype != dst.dtype and is_managed(source) and not stream.capturing:
                stream.synchronize()  # the host converts the values
            _assign_host(stream, dst, _as_elements(source, dst.dtype))
            return
    fill(stream, dst, value)


def _assign_device(stream: BaseStream, dst: AnyDeviceArray, value: AnyDeviceArray) -> None:
    if value.dtype != dst.dtype:
        raise DTypeError(f"{value!r} is no array of {dst.dtype}: a kernel converts elements")
    copy(stream, dst, _broadcast(value, dst.shape))


def _assign_host(stream: BaseStream, dst: AnyDeviceArray, value: AnyArray) -> None:
    shape = _trimmed(value.shape, dst.shape)
    _broadcast_strides(shape, shape, dst.shape)  # it raises the error for shapes that do not fit
    value = value.reshape(shape)
    if stream.capturing:
        value = value.copy(order="C")  # a graph reads it at each replay
    if shape == dst.shape:
        copy(stream, dst, value)
        return
    with without_choices():
        small = empty(stream, shape, dst.dtype)
    copy(stream, small, value)
    copy(stream, dst, _broadcast(small, dst.shape))


def _as_elements(values: AnyArray, dtype: AnyDType) -> AnyArray:
    """Return the values as an array of a dtype.

    Raises:
        DTypeError: they are of another kind, or integers out of range.
    """
    if values.dtype == dtype:
        return values
    converted: AnyArray
    if not values.size:  # NumPy makes an empty list an array of floats
        return np.empty(values.shape, dtype)
    if values.dtype.kind in "iu" and dtype.kind in "iu":
        converted = values.astype(dtype)
        if np.array_equal(converted, values):
            return converted
        raise DTypeError(f"not all of the values of {values.dtype} are {dtype}")
    if not np.can_cast(values.dtype, dtype, "same_kind"):
        raise DTypeError(f"values of {values.dtype} do not become {dtype}: convert them by astype")
    converted = values.astype(dtype)
    return converted


def _broadcast(array: AnyDeviceArray, shape: tuple[int, ...]) -> AnyDeviceArray:
    """Return a view of a shape, in which elements are repeated.

    Raises:
        CopyError: the shapes do not fit.
    """
    kept_shape = _trimmed(array.shape, shape)
    strides = array.strides[array.ndim - len(kept_shape) :]
    return view_of(
        array, array.ptr, shape, array.dtype, _broadcast_strides(kept_shape, strides, shape)
    )


def _trimmed(shape: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without its surplus first axes, where they have extent 1."""
    extra = len(shape) - len(target)
    return shape[extra:] if extra > 0 and set(shape[:extra]) == {1} else shape


def _broadcast_strides(
    shape: tuple[int, ...], strides: tuple[int, ...], target_shape: tuple[int, ...]
) -> tuple[int, ...]:
    added = len(target_shape) - len(shape)
    if added < 0 or any(n not in (1, m) for n, m in zip(shape, target_shape[added:], strict=True)):
        raise CopyError(f"values of the shape {shape} do not fit an array of {target_shape}")
    repeated = (0 if n == 1 else step for n, step in zip(shape, strides, strict=True))
    return (*(0,) * added, *repeated)
