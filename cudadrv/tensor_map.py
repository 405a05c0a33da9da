"""`TensorMap`: a device array as kernels copy boxes of it to and from shared memory.

The arguments are checked here, as the driver rejects them without a reason. Extents and boxes are
in the order of the array's axes, outermost first; the driver counts from the innermost.

CUDA Driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import prod
from typing import Any, Final, NamedTuple

from ptx.read_only import ReadOnly

from . import border
from .driver._api import CUresult
from .driver.attributes import DeviceAttribute
from .driver.context import BaseContext
from .driver.context_handle import ContextHandle
from .driver.driver_selection import failure
from .driver.handle import ClosedHandle, NotCopyable
from .errors import DriverSymbolMissingError, DTypeError, TensorMapError
from .launch.arguments import Argument, KernelObject
from .memory.array import AnyDeviceArray, DeviceArray
from .memory.buffer import DeviceData
from .memory.order import AnyMemory

__all__ = [
    "L2Promotion", "TensorElement", "TensorFill", "TensorInterleave", "TensorMap", "TensorSwizzle",
]  # fmt: skip


class TensorElement(IntEnum):
    """The type of a tensor's elements; numbered as CUtensorMapDataType.

    Types of fewer than 8 bits are left out, as no dtype has them.
    """

    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    UINT64 = 4
    INT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT32_FTZ = 10
    """float32, of which sums make subnormals zero; loads and stores do not."""
    TFLOAT32 = 11
    """float32, which loads round to the 19 bits that tensor cores read."""
    TFLOAT32_FTZ = 12
    """Both."""

    @property
    def nbytes(self) -> int:
        """Size of an element."""
        return _SIZES[self]

    @property
    def is_real(self) -> bool:
        """True for floating-point types."""
        return self >= TensorElement.FLOAT16


_SIZES = {
    element: 8 if "64" in element.name else 4 if "32" in element.name else 2
    for element in TensorElement
} | {TensorElement.UINT8: 1}


class TensorSwizzle(IntEnum):
    """The order of a box's rows in shared memory; numbered as CUtensorMapSwizzle.

    Pieces of 16 bytes change places within a span, by the number of the row of 128 bytes in which
    they lie. So columns of a matrix are in different banks. A box's rows take the span each, also
    where they are shorter.
    """

    NONE = 0
    BYTES_32 = 1
    BYTES_64 = 2
    BYTES_128 = 3
    BYTES_128_ATOM_32 = 4
    """Pieces of 32 bytes; devices of compute capability 10.0 and newer."""
    BYTES_128_ATOM_32_FLIP_8 = 5
    """The same, and halves of 16 bytes are exchanged in every other row."""
    BYTES_128_ATOM_64 = 6
    """Pieces of 64 bytes; devices of compute capability 10.0 and newer."""

    @property
    def nbytes(self) -> int:
        """The span; 0 without a swizzle."""
        return (0, 32, 64, 128, 128, 128, 128)[self]


class TensorInterleave(IntEnum):
    """The layout of channels in slices, as in NC/8HWC8; numbered as CUtensorMapInterleave."""

    NONE = 0
    BYTES_16 = 1
    """Slices of 16 bytes."""
    BYTES_32 = 2
    """Slices of 32 bytes; only with `TensorSwizzle.BYTES_32`."""

    @property
    def nbytes(self) -> int:
        """Size of a slice; 0 without interleave."""
        return 16 * self


class TensorFill(IntEnum):
    """The value of elements outside of a tensor; numbered as CUtensorMapFloatOOBfill."""

    ZERO = 0
    NAN = 1
    """A NaN, for floating-point elements."""


class L2Promotion(IntEnum):
    """The bytes that the L2 cache fetches at once; numbered as CUtensorMapL2promotion."""

    NONE = 0
    BYTES_64 = 1
    BYTES_128 = 2
    BYTES_256 = 3


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
    """The element type of a tensor, and how boxes of it are copied."""

    element: TensorElement
    swizzle: TensorSwizzle
    interleave: TensorInterleave
    l2_promotion: L2Promotion
    fill: TensorFill

    @property
    def channels(self) -> int:
        """Channels of a slice; 0 without interleave."""
        return self.interleave.nbytes // self.element.nbytes

    @property
    def numbers(self) -> tuple[int, ...]:
        """The modes in the order of the driver's arguments."""
        return int(self.interleave), int(self.swizzle), int(self.l2_promotion), int(self.fill)

    def driver_axes(self, values: Sequence[int]) -> Sequence[int]:
        """Return the values of the axes that the driver takes: without the channels of a slice."""
        return values[:-1] if self.interleave else values


def modes_of(
    array: AnyDeviceArray,
    element: TensorElement | None,
    swizzle: TensorSwizzle,
    interleave: TensorInterleave,
    l2_promotion: L2Promotion,
    fill: TensorFill,
) -> TensorModes:
    """Return the modes, checked against the array and each other.

    Raises:
        TensorMapError: they do not.
        DTypeError: tensors have no elements of the array's dtype.
    """
    border.instance_of("TensorMap: swizzle", swizzle, TensorSwizzle)
    border.instance_of("TensorMap: interleave", interleave, TensorInterleave)
    border.instance_of("TensorMap: l2_promotion", l2_promotion, L2Promotion)
    border.instance_of("TensorMap: fill", fill, TensorFill)
    tensor_element = _element_of(array, element)
    if fill is TensorFill.NAN and not tensor_element.is_real:
        raise _rejection(
            array, f"fill=NAN is for floating-point elements, not for {tensor_element.name}"
        )
    if interleave is TensorInterleave.BYTES_32 and swizzle is not TensorSwizzle.BYTES_32:
        raise _rejection(array, "interleave=BYTES_32 goes with swizzle=BYTES_32 alone")
    capability = array.context.device.compute_capability
    if swizzle > TensorSwizzle.BYTES_128 and capability < _ATOMS_SINCE:
        raise _rejection(
            array,
            f"swizzle={swizzle.name} needs compute capability 10.0; the device has "
            f"{capability[0]}.{capability[1]}",
        )
    return TensorModes(tensor_element, swizzle, interleave, l2_promotion, fill)


def check_tensor(array: AnyDeviceArray, modes: TensorModes, least: int = 1) -> None:
    """Check the address, extents and strides of an array.

    Raises:
        TensorMapError: the device has no tensor maps, or the array's axes or bytes do not fit.
    """
    device = array.context.device
    if not device.attribute(DeviceAttribute.TENSOR_MAP_ACCESS_SUPPORTED):
        raise _rejection(array, f"{device!r} has no tensor maps (compute capability 9.0 has)")
    most = 5
    if modes.interleave:
        least, most = 4, 6  # with that of the channels of a slice
    if not least <= array.ndim <= most:
        raise _rejection(array, f"it needs {least} to {most} axes, not {array.ndim}")
    alignment = modes.interleave.nbytes or 16
    if array.ptr % alignment:
        raise _rejection(array, f"it begins at {array.ptr:#x}, not a multiple of {alignment} bytes")
    if not all(1 <= extent <= _MOST_EXTENT for extent in array.shape):
        raise _rejection(array, "each axis needs 1 to 2**31 elements")
    strides = array.strides
    if strides[-1] != array.dtype.itemsize and array.shape[-1] > 1:
        raise _rejection(
            array,
            "the elements of its last axis are not contiguous\n"
            "  give its copy by Stream.contiguous, or its transpose",
        )
    for stride in strides[:-1]:
        if not 0 < stride < _MOST_STRIDE or stride % alignment:
            raise _rejection(
                array,
                f"the strides {strides[:-1]} must be multiples of {alignment} bytes above 0 "
                "and below 2**40\n  pad the rows, as Stream.empty_pitched does",
            )
    if modes.interleave:
        _check_slices(array, modes)


def _check_slices(array: AnyDeviceArray, modes: TensorModes) -> None:
    if array.shape[-1] != modes.channels:
        raise _rejection(
            array,
            f"interleave={modes.interleave.name}: the last axis is a slice of "
            f"{modes.channels} channels of {modes.element.name}, as in (N, C/{modes.channels}, H, "
            f"W, {modes.channels})",
        )
    if array.strides[-2] != modes.interleave.nbytes and array.shape[-2] > 1:
        raise _rejection(array, "the slices along its last axis but one do not lie side by side")


def checked_box(array: AnyDeviceArray, box: Sequence[int], modes: TensorModes) -> tuple[int, ...]:
    """Return the box as integers.

    Raises:
        TensorMapError: the array cannot be copied by it.
    """
    extents = _numbers(array, "box", box, array.ndim, 1, _MOST_BOX)
    if modes.interleave and (extents[1], extents[-1]) != (1, modes.channels):
        raise _rejection(
            array,
            f"box={extents}: exactly one slice is copied along axis 1\n"
            f"  give 1 for axis 1, and {modes.channels} for the last axis",
        )
    _check_row(array, modes.driver_axes(extents)[-1], modes, f"box={extents}")
    return extents


def checked_steps(
    array: AnyDeviceArray, steps: Sequence[int] | None, modes: TensorModes
) -> tuple[int, ...]:
    """Return the element strides; 1 for each axis if none were given.

    Raises:
        TensorMapError: one is not 1 to 8, or is one that CUDA would ignore.
    """
    if steps is None:
        return (1,) * array.ndim
    strides = _numbers(array, "element_strides", steps, array.ndim, 1, _MOST_STEP)
    if strides[-1] != 1:
        raise _rejection(
            array, f"element_strides={strides}: CUDA ignores that of the last axis; give 1 there"
        )
    if modes.interleave and strides[1] != 1:
        raise _rejection(
            array, f"element_strides={strides}: CUDA ignores that of slices; give 1 for axis 1"
        )
    return strides


def checked_corners(
    array: AnyDeviceArray, lower: Sequence[int], upper: Sequence[int], modes: TensorModes
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the corners of a pixel box.

    Raises:
        TensorMapError: they leave no position for a filter.
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
    """Return the corners of a row of images.

    Raises:
        TensorMapError: the device has no such copies, or the corners leave no position for a
            filter, or it goes without a swizzle or with one that does not fit.
    """
    capability = array.context.device.compute_capability
    if capability < _WIDE_SINCE:
        raise _rejection(
            array,
            f"im2col_wide needs compute capability 10.0; the device has {capability[0]}."
            f"{capability[1]}; take TensorMap.im2col",
        )
    if modes.swizzle in _NOT_WIDE:
        raise _rejection(array, f"swizzle={modes.swizzle.name} does not go with im2col_wide")
    least, most = _CORNERS[3]  # whatever the number of axes
    (first,) = _numbers(array, "lower_corner", (lower,), 1, least, most)
    (last,) = _numbers(array, "upper_corner", (upper,), 1, least, most)
    _check_positions(array, array.shape[-2], first, last)
    return first, last


def _check_positions(array: AnyDeviceArray, extent: int, low: int, high: int) -> None:
    if extent + high <= low:
        raise _rejection(
            array, f"the corners {low} and {high} leave no position in an axis of {extent}"
        )


def checked_pixels(
    array: AnyDeviceArray, channels: int, pixels: int, modes: TensorModes
) -> tuple[int, int]:
    """Return the pixels and channels that one copy moves.

    Raises:
        TensorMapError: too much, or rows that do not fit in shared memory.
    """
    (width,) = _numbers(array, "channels", (channels,), 1, 1, _MOST_BOX)
    (count,) = _numbers(array, "pixels", (pixels,), 1, 1, _MOST_PIXELS)
    if modes.interleave and width != modes.channels:
        raise _rejection(array, f"channels={width}: one slice is copied, of {modes.channels}")
    _check_row(array, width, modes, f"channels={width}")
    return count, width


def _check_row(array: AnyDeviceArray, count: int, modes: TensorModes, label: str) -> None:
    row, span = count * modes.element.nbytes, modes.swizzle.nbytes
    if row % 16 and modes.interleave:  # the driver's rule, which the manual lacks
        least = 16 // modes.element.nbytes
        reason = f"slices of {modes.element.name} are not a multiple of {least}"
        raise _rejection(array, f"{label}: {reason}")
    if row % 16:
        raise _rejection(array, f"{label}: a row of {row} bytes is not a multiple of 16")
    if span and row > span and not modes.interleave:
        raise _rejection(
            array,
            f"{label}: a row of {row} bytes is longer than the {span} of "
            f"swizzle={modes.swizzle.name}",
        )


def _element_of(array: AnyDeviceArray, element: TensorElement | None) -> TensorElement:
    dtype = array.dtype
    if element is not None:
        border.instance_of("TensorMap: element", element, TensorElement)
        if element.nbytes != dtype.itemsize:
            raise _rejection(array, f"element={element.name} has {element.nbytes} bytes")
        return element
    tensor_element = _ELEMENTS.get(f"{dtype.kind}{dtype.itemsize}") if dtype.isnative else None
    if dtype.name == "bfloat16":
        tensor_element = TensorElement.BFLOAT16
    elif dtype.kind == "V" and dtype.itemsize == 1 and dtype.names is None:
        tensor_element = TensorElement.UINT8  # floats of 8 bits
    if tensor_element is None:
        raise DTypeError(
            f"a tensor map over {array!r}: there is no tensor element of its dtype\n"
            "  view the array as integers of 8 to 64 bits, float16, bfloat16, float32 or float64"
        )
    return tensor_element


def _numbers(
    array: AnyDeviceArray, name: str, values: Sequence[int], count: int, least: int, most: int
) -> tuple[int, ...]:
    try:
        items = tuple(values)
    except (TypeError, ValueError):  # no sequence
        shown = border.shown(values)
        raise _rejection(array, f"{name}={shown}: give {count} numbers, one an axis") from None
    numbers = tuple(border.integer(f"TensorMap: {name}", value) for value in items)
    if len(numbers) != count:
        raise _rejection(array, f"{name}={numbers}: give {count} numbers, not {len(numbers)}")
    if not all(least <= number <= most for number in numbers):
        raise _rejection(array, f"{name}={numbers}: each is {least} to {most}")
    return numbers


def _rejection(array: AnyDeviceArray, reason: str) -> TensorMapError:
    return TensorMapError(f"a tensor map over {array!r}: {reason}")


# A CUtensorMap lies at a multiple of 64 bytes, in CUDA 13 of 128. cuda.bindings makes one where
# Python puts objects, at multiples of 16. So C's functions are called, by their addresses.
_NBYTES: Final = 128
_ALIGNMENT: Final = 128
_WORD: Final = ctypes.c_uint
_INT: Final = ctypes.c_int
_ADDRESS: Final = ctypes.c_void_p
# A result of the map, type, rank, address, extents, strides.
_TENSOR: Final = (_INT, _ADDRESS, _WORD, _WORD, *(_ADDRESS,) * 3)
_MODES: Final = (_WORD,) * 4


class Encoder(NamedTuple):
    """A driver function that makes the bytes of a map.

    Attributes:
        name: its name.
        since: the first version of CUDA that has it.
        form: the ctypes prototype, which makes a function of an address.
    """

    name: str
    since: int
    form: Callable[[int], Callable[..., int]]


TILED: Final = Encoder(
    "cuTensorMapEncodeTiled",
    12000,
    ctypes.CFUNCTYPE(*_TENSOR, _ADDRESS, _ADDRESS, *_MODES),
)
"""Box, steps, modes."""
IM2COL: Final = Encoder(
    "cuTensorMapEncodeIm2col",
    12000,
    ctypes.CFUNCTYPE(*_TENSOR, _ADDRESS, _ADDRESS, _WORD, _WORD, _ADDRESS, *_MODES),
)
"""Lower and upper corner, channels, pixels, steps, modes."""
IM2COL_WIDE: Final = Encoder(
    "cuTensorMapEncodeIm2colWide",
    12080,
    ctypes.CFUNCTYPE(*_TENSOR, _INT, _INT, _WORD, _WORD, _ADDRESS, _WORD, *_MODES),
)
"""As IM2COL, but corners are numbers, and the mode of width follows the interleave."""
REPLACE: Final = Encoder(
    "cuTensorMapReplaceAddress", 12000, ctypes.CFUNCTYPE(_INT, _ADDRESS, _ADDRESS)
)
"""The map and the new address."""


def encoded(
    context: ContextHandle, encoder: Encoder, arguments: Sequence[object], doing: str, before: bytes
) -> bytes:
    """Return the 128 bytes that an encoder makes, starting from the bytes in `before`.

    Raises:
        CudaError: the driver rejected the arguments.
        DriverSymbolMissingError: the driver has no such function.
    """
    code, address, _ = context.api.cuGetProcAddress(encoder.name.encode(), encoder.since, 0)
    if code and code != CUresult.CUDA_ERROR_NOT_FOUND:
        raise failure(context.api, code, "cuGetProcAddress", f"looking for {encoder.name}")
    if code or not address:
        raise DriverSymbolMissingError(
            f"{encoder.name} is not in the installed driver: update the driver"
        )
    memory = (ctypes.c_char * (_NBYTES + _ALIGNMENT))()
    start = ctypes.addressof(memory)
    start += -start % _ALIGNMENT
    ctypes.memmove(start, before.ljust(_NBYTES, b"\0"), _NBYTES)
    result = context.call(encoder.form(int(address)), start, *arguments)
    if result:
        raise failure(context.api, _result_of(result), encoder.name, doing)
    return ctypes.string_at(start, _NBYTES)


def _result_of(number: int) -> CUresult:
    """Return the result of a number; CUDA_ERROR_UNKNOWN for one that cuda-bindings lack."""
    try:
        return CUresult(number)
    except (KeyError, ValueError):  # by the version of cuda-bindings
        return CUresult.CUDA_ERROR_UNKNOWN


def sizes(values: Sequence[int]) -> Any:  # an array, whose type has no public name
    """Return a C array of 64-bit numbers, innermost dimension first."""
    return (ctypes.c_uint64 * 5)(*reversed(values))


def words(values: Sequence[int]) -> Any:
    """Return a C array of 32-bit numbers, innermost dimension first."""
    return (ctypes.c_uint32 * 5)(*reversed(values))


def offsets(values: Sequence[int]) -> Any:
    """Return a C array of signed 32-bit numbers, innermost dimension first."""
    return (ctypes.c_int * 5)(*reversed(values))


class TensorMap(NotCopyable, KernelObject):
    """A device array as the tensor memory accelerator (TMA) copies boxes of it.

    It is given to a kernel where a ``const __grid_constant__ CUtensorMap`` stands, which
    ``cp.async.bulk.tensor`` takes. It keeps its array. A launch with it uses the array as a launch
    with the array itself would, and may write it.

    Axes are counted as NumPy does, outermost first. The coordinates in a kernel are in the other
    order: of ``a[i, j]`` they are ``{j, i}``.

    Args:
        array: 1 to 5 axes; the last one's elements are contiguous, and the strides of
            the others are multiples of 16 bytes. Interleaved ones have axes (N, C/8, W, 8),
            (N, C/8, H, W, 8) or (N, C/8, D, H, W, 8), the last one for the channels of a slice,
            which are as many as its bytes hold; slices lie side by side along W.
        box: how many elements are copied at once along each axis, 1 to 256; those of the last axis
            are a multiple of 16 bytes. Of interleaved ones 1 along C/8 and a whole slice along the
            last axis; as many along W as elements in a multiple of 16 bytes.
        element_strides: the distances of the elements that are copied, 1 to 8 for each axis; of
            ``box[i]`` elements every one in so many. 1 for the last axis, and for slices.
        swizzle: where the pieces of rows lie in shared memory; rows are no longer than its span,
            and each takes all of it (`shared_nbytes`).
        interleave: the layout of channels in slices. A kernel's coordinates leave out the channel
            within a slice: of ``a[n, c, h, w]`` they are ``{w, h, c, n}``.
        l2_promotion: how much the L2 cache fetches at once.
        fill: the value of elements outside of the array.
        element: the type of elements; None: that of the dtype. Signed integers of 8 and 16 bits
            are copied as unsigned ones, floats of 8 bits as bytes.

    Attributes:
        context: the array's.
        box: as given; of images, pixels and channels.
        box_nbytes: the bytes that one copy writes to shared memory, and an mbarrier must expect.
        element_strides: as given.
        buffer: the array's memory.

    Raises:
        TensorMapError: CUDA has no such tensor map.
        DTypeError: tensors have no elements of the dtype.
        ClosedError: the array was closed.

    Source: CUDA Driver API, cuTensorMapEncodeTiled; CUDA Programming Guide, "Tensor Memory Access".
    """

    __slots__ = (
        "_array",
        "_box",
        "_box_nbytes",
        "_buffer",
        "_context",
        "_element_strides",
        "_encoded",
        "_modes",
    )

    box: ReadOnly[tuple[int, ...]] = ReadOnly("_box")
    box_nbytes: ReadOnly[int] = ReadOnly("_box_nbytes")
    buffer: ReadOnly[DeviceData] = ReadOnly("_buffer")
    context: ReadOnly[BaseContext] = ReadOnly("_context")
    element_strides: ReadOnly[tuple[int, ...]] = ReadOnly("_element_strides")

    def __init__(
        self,
        array: AnyDeviceArray,
        box: Sequence[int],
        *,
        element_strides: Sequence[int] | None = None,
        swizzle: TensorSwizzle = TensorSwizzle.NONE,
        interleave: TensorInterleave = TensorInterleave.NONE,
        l2_promotion: L2Promotion = L2Promotion.NONE,
        fill: TensorFill = TensorFill.ZERO,
        element: TensorElement | None = None,
    ) -> None:
        border.instance_of("TensorMap: array", array, DeviceArray)
        modes = modes_of(array, element, swizzle, interleave, l2_promotion, fill)
        check_tensor(array, modes)
        steps = checked_steps(array, element_strides, modes)
        extents = checked_box(array, box, modes)
        self._set(array, modes, extents, steps)
        self._box_nbytes: int = modes.element.nbytes * prod(map(_copied, extents, steps))
        copied = map(words, map(modes.driver_axes, (extents, steps)))
        arguments = (*_tensor(array, modes), *copied, *modes.numbers)
        self._encoded = self._made(TILED, arguments)

    @classmethod
    def im2col(
        cls,
        array: AnyDeviceArray,
        lower_corner: Sequence[int],
        upper_corner: Sequence[int],
        channels: int,
        pixels: int,
        *,
        element_strides: Sequence[int] | None = None,
        swizzle: TensorSwizzle = TensorSwizzle.NONE,
        interleave: TensorInterleave = TensorInterleave.NONE,
        l2_promotion: L2Promotion = L2Promotion.NONE,
        fill: TensorFill = TensorFill.ZERO,
        element: TensorElement | None = None,
    ) -> TensorMap:
        """Images as a convolution reads them: the pixels under one place of a filter.

        Args:
            array: images with axes (N, W, C), (N, H, W, C) or (N, D, H, W, C); interleaved ones as
                for `TensorMap`.
            lower_corner: the first position of the filter along each of D, H and W.
            upper_corner: the last one, from the last pixel on.
            channels: channels that are copied at once, at most 256; interleaved: those of a slice.
            pixels: positions that are copied at once, at most 1024.
            element_strides: the distances of positions; this and the others as for `TensorMap`.

        Raises:
            TensorMapError: CUDA has no such tensor map.

        Source: CUDA Driver API, cuTensorMapEncodeIm2col.
        """
        border.instance_of("TensorMap.im2col: array", array, DeviceArray)
        modes = modes_of(array, element, swizzle, interleave, l2_promotion, fill)
        check_tensor(array, modes, least=3)
        steps = checked_steps(array, element_strides, modes)
        corners = checked_corners(array, lower_corner, upper_corner, modes)
        box = checked_pixels(array, channels, pixels, modes)
        strides = words(modes.driver_axes(steps))
        arguments = (*map(offsets, corners), *box[::-1], strides, *modes.numbers)
        return cls._of_images(IM2COL, array, modes, box, steps, arguments)

    @classmethod
    def im2col_wide(
        cls,
        array: AnyDeviceArray,
        lower_corner: int,
        upper_corner: int,
        channels: int,
        pixels: int | None,
        *,
        element_strides: Sequence[int] | None = None,
        swizzle: TensorSwizzle = TensorSwizzle.BYTES_128,
        l2_promotion: L2Promotion = L2Promotion.NONE,
        fill: TensorFill = TensorFill.ZERO,
        element: TensorElement | None = None,
    ) -> TensorMap:
        """Rows of images, for `im2col::w` on devices of compute capability 10.0.

        The emulator does not implement such copies, and raises an error.

        Args:
            array: as for `im2col`.
            lower_corner: the first position of the filter along W.
            upper_corner: the last one, from the last pixel on.
            channels: as for `im2col`, and so are the arguments after `pixels`; a swizzle is needed.
            pixels: as for `im2col`; None: the 128 of `im2col::w::128`. The halo that an
                instruction requests is not included, nor in `box_nbytes`.

        Raises:
            TensorMapError: CUDA has no such tensor map, or not on this device.

        Source: CUDA Driver API, cuTensorMapEncodeIm2colWide.
        """
        border.instance_of("TensorMap.im2col_wide: array", array, DeviceArray)
        modes = modes_of(array, element, swizzle, TensorInterleave.NONE, l2_promotion, fill)
        check_tensor(array, modes, least=3)
        steps = checked_steps(array, element_strides, modes)
        corners = checked_width(array, lower_corner, upper_corner, modes)
        box = checked_pixels(array, channels, 128 if pixels is None else pixels, modes)
        interleave, *further = modes.numbers
        arguments = (*corners, *box[::-1], words(steps), interleave, int(pixels is None), *further)
        return cls._of_images(IM2COL_WIDE, array, modes, box, steps, arguments)

    @classmethod
    def _of_images(
        cls,
        encoder: Encoder,
        array: AnyDeviceArray,
        modes: TensorModes,
        box: tuple[int, int],
        steps: tuple[int, ...],
        arguments: Sequence[object],
    ) -> TensorMap:
        """Return a map of images; `arguments` are the encoder's after the strides."""
        tensor_map = cls.__new__(cls)
        tensor_map._set(array, modes, box, steps)
        tensor_map._box_nbytes = modes.element.nbytes * prod(box)
        tensor_map._encoded = tensor_map._made(encoder, (*_tensor(array, modes), *arguments))
        return tensor_map

    def _set(
        self,
        array: AnyDeviceArray,
        modes: TensorModes,
        box: tuple[int, ...],
        steps: tuple[int, ...],
    ) -> None:
        self._context: BaseContext = array.context
        self._array = array
        # Its `_handle` owns the memory: a launch compares it first.
        self._buffer: DeviceData = array._root
        self._modes = modes
        self._box: tuple[int, ...] = box
        self._element_strides: tuple[int, ...] = steps

    def _made(self, encoder: Encoder, arguments: Sequence[object], before: bytes = b"") -> bytes:
        return encoded(self._context._handle, encoder, arguments, f"making {self!r}", before)

    def __repr__(self) -> str:
        memory = "closed memory" if self._buffer.closed else repr(self._array)
        return f"<TensorMap of boxes {self._box} over {memory}>"

    def __bytes__(self) -> bytes:
        """The 128 bytes, as a kernel's parameter has them; a GPU's and the emulator's differ."""
        return self._encoded

    @property
    def array(self) -> AnyDeviceArray:
        """The device array."""
        return self._array

    @property
    def element(self) -> TensorElement:
        """The element type."""
        return self._modes.element

    @property
    def swizzle(self) -> TensorSwizzle:
        """The swizzle of rows in shared memory."""
        return self._modes.swizzle

    @property
    def shared_nbytes(self) -> int:
        """Bytes of the box in shared memory, where a row takes the whole width of the swizzle.

        More than `box_nbytes`, if rows are shorter than that; an mbarrier expects `box_nbytes`.
        """
        row, span = self._box[-1] * self.element.nbytes, self.swizzle.nbytes
        if row >= span or self._modes.interleave:
            return self._box_nbytes
        return self._box_nbytes // row * span

    def replace(self, array: AnyDeviceArray) -> TensorMap:
        """Return this map over another array of the same shape, strides, dtype and context.

        Raises:
            TensorMapError: the array differs.

        Source: CUDA Driver API, cuTensorMapReplaceAddress.
        """
        border.instance_of("TensorMap.replace: array", array, DeviceArray)
        own = self._array
        if (array.shape, array.strides, array.dtype, array.context) != (
            own.shape,
            own.strides,
            own.dtype,
            own.context,
        ):
            raise TensorMapError(
                f"{self!r} cannot be over {array!r}: its shape, strides {own.strides}, dtype and "
                "context stay; make another TensorMap"
            )
        check_tensor(array, self._modes)
        tensor_map = object.__new__(type(self))
        tensor_map._set(array, self._modes, self._box, self._element_strides)
        tensor_map._box_nbytes = self._box_nbytes
        tensor_map._encoded = tensor_map._made(REPLACE, (array.ptr,), self._encoded)
        return tensor_map

    def _as_argument(self, nbytes: int) -> Argument | None:
        if nbytes != len(self._encoded):
            return None
        memory = self._memory
        # CUDA has no map that only loads: a kernel must not store by one of read-only memory.
        writes = not memory.is_read_only
        return Argument(self._encoded, "tensor", memory, writes=writes, holds=self)

    @property
    def _memory(self) -> AnyMemory:
        memory = self._buffer._handle
        if isinstance(memory, ClosedHandle):
            raise memory.error_of("the array of a tensor map was closed")
        return memory


def _copied(box: int, step: int) -> int:
    """Return the number of elements copied along an axis."""
    return -(-box // step)


def _tensor(array: AnyDeviceArray, modes: TensorModes) -> tuple[object, ...]:
    """Return the encoder arguments that describe the array."""
    extents, strides = modes.driver_axes(array.shape), modes.driver_axes(array.strides)[:-1]
    return int(modes.element), len(extents), array.ptr, sizes(extents), sizes(strides)
