"""What CUDA asks of a tensor and its boxes, said before the driver refuses it without words.

CUDA Driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col. Extents and boxes are in the
order of the array's axes, outermost first; the driver counts the other way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .. import border
from ..driver.attributes import DeviceAttribute
from ..errors import DTypeError, TensorMapError
from ..memory.array import AnyDeviceArray
from .tensor_modes import L2Promotion, TensorElement, TensorFill, TensorInterleave, TensorSwizzle

_ELEMENTS: Final = {
    "b1": TensorElement.UINT8, "u1": TensorElement.UINT8, "i1": TensorElement.UINT8,
    "u2": TensorElement.UINT16, "i2": TensorElement.UINT16, "u4": TensorElement.UINT32,
    "i4": TensorElement.INT32, "u8": TensorElement.UINT64, "i8": TensorElement.INT64,
    "f2": TensorElement.FLOAT16, "f4": TensorElement.FLOAT32, "f8": TensorElement.FLOAT64,
}  # fmt: skip
_MOST_EXTENT: Final = 1 << 31
_MOST_STRIDE: Final = 1 << 40
_MOST_BOX: Final = 256
_MOST_STEP: Final = 8
_MOST_PIXELS: Final = 1024
_CORNERS: Final = {3: (-32768, 32767), 4: (-128, 127), 5: (-16, 15)}
_ATOMS_SINCE: Final = (10, 0)
_WIDE_SINCE: Final = (10, 0)
_NOT_WIDE: Final = (TensorSwizzle.NONE, TensorSwizzle.BYTES_128_ATOM_32_FLIP_8)


@dataclass(frozen=True, slots=True)
class TensorModes:
    """How a tensor is copied."""

    element: TensorElement
    swizzle: TensorSwizzle
    interleave: TensorInterleave
    l2_promotion: L2Promotion
    fill: TensorFill

    @property
    def channels(self) -> int:
        """Of a slice; 0 without interleave."""
        return self.interleave.nbytes // self.element.nbytes

    def told(self, values: Sequence[int]) -> Sequence[int]:
        """Of numbers for each axis those that CUDA is told: it knows the channels of a slice."""
        return values[:-1] if self.interleave else values


def modes_of(
    array: AnyDeviceArray, element: TensorElement | None, swizzle: TensorSwizzle,
    interleave: TensorInterleave, l2_promotion: L2Promotion, fill: TensorFill,
) -> TensorModes:  # fmt: skip
    """The modes, if they fit the array and each other.

    Raises:
        TensorMapError: they do not.
        DTypeError: tensors have no elements of the array's dtype.
    """
    border.instance("TensorMap: swizzle", swizzle, TensorSwizzle)
    border.instance("TensorMap: interleave", interleave, TensorInterleave)
    border.instance("TensorMap: l2_promotion", l2_promotion, L2Promotion)
    border.instance("TensorMap: fill", fill, TensorFill)
    found = _element_of(array, element)
    if fill is TensorFill.NAN and not found.is_real:
        raise _refused(array, f"fill=NAN is for floating-point elements, not for {found.name}")
    if interleave is TensorInterleave.BYTES_32 and swizzle is not TensorSwizzle.BYTES_32:
        raise _refused(array, "interleave=BYTES_32 goes with swizzle=BYTES_32 alone")
    capability = array.context.device.compute_capability
    if swizzle > TensorSwizzle.BYTES_128 and capability < _ATOMS_SINCE:
        raise _refused(
            array, f"swizzle={swizzle.name} needs compute capability 10.0; the device has "
            f"{capability[0]}.{capability[1]}",
        )  # fmt: skip
    return TensorModes(found, swizzle, interleave, l2_promotion, fill)


def check_tensor(array: AnyDeviceArray, modes: TensorModes, least: int = 1) -> None:
    """Look at where the array lies.

    Raises:
        TensorMapError: the device has no tensor maps, or the array's axes or bytes do not fit.
    """
    device = array.context.device
    if not device.attribute(DeviceAttribute.TENSOR_MAP_ACCESS_SUPPORTED):
        raise _refused(array, f"{device!r} has no tensor maps (compute capability 9.0 has)")
    most = 5
    if modes.interleave:
        least, most = 4, 6  # with that of the channels of a slice
    if not least <= array.ndim <= most:
        raise _refused(array, f"it needs {least} to {most} axes, not {array.ndim}")
    alignment = modes.interleave.nbytes or 16
    if array.ptr % alignment:
        raise _refused(array, f"it begins at {array.ptr:#x}, no multiple of {alignment} bytes")
    if not all(1 <= extent <= _MOST_EXTENT for extent in array.shape):
        raise _refused(array, "each axis needs 1 to 2**31 elements")
    strides = array.strides
    if strides[-1] != array.dtype.itemsize and array.shape[-1] > 1:
        raise _refused(
            array, "the elements of its last axis do not lie one behind the other; give what "
            "Stream.contiguous makes of it, or its transpose",
        )  # fmt: skip
    for stride in strides[:-1]:
        if not 0 < stride < _MOST_STRIDE or stride % alignment:
            raise _refused(
                array, f"the strides {strides[:-1]} must be multiples of {alignment} bytes above 0 "
                "and below 2**40; pad the rows, as Stream.empty_pitched does",
            )  # fmt: skip
    if modes.interleave:
        _check_slices(array, modes)


def _check_slices(array: AnyDeviceArray, modes: TensorModes) -> None:
    if array.shape[-1] != modes.channels:
        raise _refused(
            array, f"interleave={modes.interleave.name}: the last axis is a slice of "
            f"{modes.channels} channels of {modes.element.name}, as in (N, C/{modes.channels}, H, "
            f"W, {modes.channels})",
        )  # fmt: skip
    if array.strides[-2] != modes.interleave.nbytes and array.shape[-2] > 1:
        raise _refused(array, "the slices along its last axis but one do not lie side by side")


def checked_box(array: AnyDeviceArray, box: Sequence[int], modes: TensorModes) -> tuple[int, ...]:
    """The box, if the array can be copied by it.

    Raises:
        TensorMapError: it cannot.
    """
    found = _numbers(array, "box", box, array.ndim, 1, _MOST_BOX)
    if modes.interleave and (found[1], found[-1]) != (1, modes.channels):
        raise _refused(
            array, f"box={found}: along axis 1 one slice is copied, and it is copied whole: "
            f"give 1 there, and {modes.channels} for the last axis",
        )  # fmt: skip
    _check_row(array, modes.told(found)[-1], modes, f"box={found}")
    return found


def checked_steps(
    array: AnyDeviceArray, steps: Sequence[int] | None, modes: TensorModes
) -> tuple[int, ...]:
    """The element strides: 1 for each axis, if none were given.

    Raises:
        TensorMapError: one is not 1 to 8, or is one that CUDA would ignore.
    """
    if steps is None:
        return (1,) * array.ndim
    found = _numbers(array, "element_strides", steps, array.ndim, 1, _MOST_STEP)
    if found[-1] != 1:
        raise _refused(
            array, f"element_strides={found}: CUDA ignores that of the last axis; give 1 there"
        )
    if modes.interleave and found[1] != 1:
        raise _refused(
            array, f"element_strides={found}: CUDA ignores that of slices; give 1 for axis 1"
        )
    return found


def checked_corners(
    array: AnyDeviceArray, lower: Sequence[int], upper: Sequence[int], modes: TensorModes
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The corners of a pixel box, if they leave positions for a filter.

    Raises:
        TensorMapError: they do not.
    """
    extents = array.shape[2 if modes.interleave else 1 : -1]
    count = len(extents)
    least, most = _CORNERS[count + 2]
    first = _numbers(array, "lower_corner", lower, count, least, most)
    last = _numbers(array, "upper_corner", upper, count, least, most)
    for extent, low, high in zip(extents, first, last, strict=True):
        _check_positions(array, extent, low, high)
    return first, last


def checked_width(
    array: AnyDeviceArray, lower: int, upper: int, modes: TensorModes
) -> tuple[int, int]:
    """The corners of a row of images.

    Raises:
        TensorMapError: the device has no such copies, or the corners leave no position for a
            filter, or it goes without a swizzle or with one that does not fit.
    """
    capability = array.context.device.compute_capability
    if capability < _WIDE_SINCE:
        raise _refused(
            array, f"im2col_wide needs compute capability 10.0; the device has {capability[0]}."
            f"{capability[1]}; take TensorMap.im2col",
        )  # fmt: skip
    if modes.swizzle in _NOT_WIDE:
        raise _refused(array, f"swizzle={modes.swizzle.name} does not go with im2col_wide")
    least, most = _CORNERS[3]  # whatever the number of axes
    (first,) = _numbers(array, "lower_corner", (lower,), 1, least, most)
    (last,) = _numbers(array, "upper_corner", (upper,), 1, least, most)
    _check_positions(array, array.shape[-2], first, last)
    return first, last


def _check_positions(array: AnyDeviceArray, extent: int, low: int, high: int) -> None:
    if extent + high <= low:
        raise _refused(
            array, f"the corners {low} and {high} leave no position in an axis of {extent}"
        )


def checked_pixels(
    array: AnyDeviceArray, channels: int, pixels: int, modes: TensorModes
) -> tuple[int, int]:
    """How much of images is copied at once: pixels and channels.

    Raises:
        TensorMapError: too much, or rows that do not fit in shared memory.
    """
    (width,) = _numbers(array, "channels", (channels,), 1, 1, _MOST_BOX)
    (count,) = _numbers(array, "pixels", (pixels,), 1, 1, _MOST_PIXELS)
    if modes.interleave and width != modes.channels:
        raise _refused(array, f"channels={width}: one slice is copied, of {modes.channels}")
    _check_row(array, width, modes, f"channels={width}")
    return count, width


def _check_row(array: AnyDeviceArray, count: int, modes: TensorModes, given: str) -> None:
    row, span = count * modes.element.nbytes, modes.swizzle.nbytes
    if row % 16 and modes.interleave:  # which the manual does not say, but the driver
        least = 16 // modes.element.nbytes
        raise _refused(array, f"{given}: slices of {modes.element.name} are no multiple of {least}")
    if row % 16:
        raise _refused(array, f"{given}: a row of {row} bytes is no multiple of 16")
    if span and row > span and not modes.interleave:
        raise _refused(
            array, f"{given}: a row of {row} bytes is longer than the {span} of "
            f"swizzle={modes.swizzle.name}",
        )  # fmt: skip


def _element_of(array: AnyDeviceArray, element: TensorElement | None) -> TensorElement:
    dtype = array.dtype
    if element is not None:
        border.instance("TensorMap: element", element, TensorElement)
        if element.nbytes != dtype.itemsize:
            raise _refused(array, f"element={element.name} has {element.nbytes} bytes")
        return element
    found = _ELEMENTS.get(f"{dtype.kind}{dtype.itemsize}") if dtype.isnative else None
    if dtype.name == "bfloat16":
        found = TensorElement.BFLOAT16
    elif dtype.kind == "V" and dtype.itemsize == 1 and dtype.names is None:
        found = TensorElement.UINT8  # floats of 8 bits
    if found is None:
        raise DTypeError(
            f"a tensor map over {array!r}: tensors have integers of 8 to 64 bits, float16, "
            "bfloat16, float32 and float64; view the array as one of them"
        )
    return found


def _numbers(
    array: AnyDeviceArray, name: str, values: Sequence[int], count: int, least: int, most: int
) -> tuple[int, ...]:
    try:
        given = tuple(values)
    except TypeError:  # what has no elements
        shown = border.shown(values)
        raise _refused(array, f"{name}={shown}: give {count} numbers, one an axis") from None
    found = tuple(border.integer(f"TensorMap: {name}", each) for each in given)
    if len(found) != count:
        raise _refused(array, f"{name}={found}: give {count} numbers, not {len(found)}")
    if not all(least <= each <= most for each in found):
        raise _refused(array, f"{name}={found}: each is {least} to {most}")
    return found


def _refused(array: AnyDeviceArray, what: str) -> TensorMapError:
    return TensorMapError(f"a tensor map over {array!r}: {what}")
