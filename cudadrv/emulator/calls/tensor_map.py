"""Tensor maps, and the addresses of the C functions that make them.

CUDA Driver API: "Tensor Map Object Management", "Driver Entry Point Access".

Checks of tensor maps, and their contents here. The 128 bytes are the emulator's own
(`ptx.emulate.model.tensor_map`), as a GPU's are not documented.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeAlias
from weakref import ref

from ptx.emulate.model.tensor_map import TensorLayout

from ...driver._api import CUdriverProcAddressQueryResult, CUresult, CUtensorMap
from ...driver.functions import forms
from ..call_error import OK, SUCCESS, CallError, invalid_value
from ..caller_memory import mapped, view_at
from .call import DriverCalls, call

if TYPE_CHECKING:
    from _ctypes import CFuncPtr

_SINCE: Final = (9, 0)
_WIDE_SINCE: Final = (10, 0)
_ATOMS_SINCE: Final = (10, 0)
# PTX's number by CUtensorMapDataType. Its order differs after FLOAT32.
_ELEMENTS: Final = dict(enumerate((0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 11, 12)))
_TYPES: Final = 16
_FLOATS: Final = range(6, 13)
_SPANS: Final = {**TensorLayout.swizzle_spans, 4: 128, 5: 128, 6: 128}
# PTX's numbers by CUtensorMapSwizzle: mode and atomicity.
_SWIZZLES: Final = {0: (0, 0), 1: (1, 0), 2: (2, 0), 3: (3, 0), 4: (3, 1), 6: (3, 3)}
LARGER_ATOMS: Final = (4, 5, 6)
"""The swizzles of devices of compute capability 10.0, by CUtensorMapSwizzle."""
_MOST_EXTENT: Final = 1 << 31
_MOST_STRIDE: Final = 1 << 40
_MOST_BOX: Final = 256
_MOST_STEP: Final = 8
_MOST_PIXELS: Final = 1024
_CORNERS: Final = {3: (-32768, 32767), 4: (-128, 127), 5: (-16, 15)}
Numbers: TypeAlias = Sequence[Any] | None
"""Integers of Python's or the bindings' types."""
assert set(_ELEMENTS.values()) == set(TensorLayout.element_types)


class Modes(NamedTuple):
    """How a tensor is copied, in the driver's numbers."""

    interleave: int
    swizzle: int
    promotion: int
    fill: int

    @classmethod
    def of(cls, *values: int) -> Modes:
        """Convert integers of Python's or the bindings' types."""
        return cls(*map(int, values))


class TensorExtents(NamedTuple):
    """A tensor in memory, innermost dimension first."""

    element: int
    rank: int
    address: int
    extents: Numbers
    strides: Numbers
    steps: Numbers

    @classmethod
    def of(cls, element: int, rank: int, address: int, *sequences: Numbers) -> TensorExtents:
        """Convert integers of Python's or the bindings' types."""
        return cls(int(element), int(rank), int(address), *sequences)


class TensorMapCalls(DriverCalls):
    """Tensor maps."""

    @call
    def cuTensorMapEncodeTiled(
        self,
        tensor_data_type: int,
        tensor_rank: int,
        global_address: int,
        global_dim: Numbers,
        global_strides: Numbers,
        box_dim: Numbers,
        element_strides: Numbers,
        interleave: int,
        swizzle: int,
        l2_promotion: int,
        oob_fill: int,
        /,
    ) -> tuple[CUresult, CUtensorMap]:
        """Make the map of a tensor that is copied by tiles."""
        modes = self._modes(interleave, swizzle, l2_promotion, oob_fill)
        tensor = TensorExtents.of(
            tensor_data_type,
            tensor_rank,
            global_address,
            global_dim,
            global_strides,
            element_strides,
        )
        return SUCCESS, _encoded(tiled(tensor, box_dim, modes))

    @call
    def cuTensorMapEncodeIm2col(
        self,
        tensor_data_type: int,
        tensor_rank: int,
        global_address: int,
        global_dim: Numbers,
        global_strides: Numbers,
        pixel_box_lower_corner: Numbers,
        pixel_box_upper_corner: Numbers,
        channels_per_pixel: int,
        pixels_per_column: int,
        element_strides: Numbers,
        interleave: int,
        swizzle: int,
        l2_promotion: int,
        oob_fill: int,
        /,
    ) -> tuple[CUresult, CUtensorMap]:
        """Make the map of images that are copied by the pixels under a filter."""
        modes = self._modes(interleave, swizzle, l2_promotion, oob_fill)
        tensor = TensorExtents.of(
            tensor_data_type,
            tensor_rank,
            global_address,
            global_dim,
            global_strides,
            element_strides,
        )
        layout = im2col(
            tensor,
            pixel_box_lower_corner,
            pixel_box_upper_corner,
            int(channels_per_pixel),
            int(pixels_per_column),
            modes,
        )
        return SUCCESS, _encoded(layout)

    @call
    def cuTensorMapEncodeIm2colWide(
        self,
        tensor_data_type: int,
        tensor_rank: int,
        global_address: int,
        global_dim: Numbers,
        global_strides: Numbers,
        pixel_box_lower_corner_width: int,
        pixel_box_upper_corner_width: int,
        channels_per_pixel: int,
        pixels_per_column: int,
        element_strides: Numbers,
        interleave: int,
        mode: int,
        swizzle: int,
        l2_promotion: int,
        oob_fill: int,
        /,
    ) -> tuple[CUresult, CUtensorMap]:
        """Reject the call: this copy of compute capability 10.0 is not emulated.

        Raises:
            CallError: always.
        """
        self._reject_older_than(_SINCE)
        if self._capability < _WIDE_SINCE:  # as an H200's driver
            raise invalid_value(f"no im2col::w on compute capability {self._capability}")
        tensor = TensorExtents.of(
            tensor_data_type,
            tensor_rank,
            global_address,
            global_dim,
            global_strides,
            element_strides,
        )
        reject_im2col_wide(
            tensor,
            int(pixel_box_lower_corner_width),
            int(pixel_box_upper_corner_width),
            int(channels_per_pixel),
            int(pixels_per_column),
            int(mode),
            Modes.of(interleave, swizzle, l2_promotion, oob_fill),
        )

    @call
    def cuTensorMapReplaceAddress(
        self, tensor_map: CUtensorMap | None, global_address: int, /
    ) -> tuple[CUresult]:
        """Set another address in a map, with the same layout."""
        if tensor_map is None:
            raise invalid_value("the tensor map is null")
        address = tensor_map.getPtr()
        try:
            TensorLayout.decode(
                ctypes.string_at(
                    mapped(address, TensorLayout.nbytes_of_map), TensorLayout.nbytes_of_map
                )
            )
        except ValueError as error:
            raise invalid_value(f"the tensor map {error}") from None
        check_address(int(global_address), 0)
        ctypes.c_uint64.from_address(address + 8).value = int(global_address)
        return OK

    @call
    def cuGetProcAddress(
        self, symbol: bytes, cuda_version: int, flags: int, /
    ) -> tuple[CUresult, int, CUdriverProcAddressQueryResult]:
        """Return a C function's address; cuda.bindings cannot call it, for lack of alignment."""
        address = self._tensor_map_functions.address(bytes(symbol).decode(errors="replace"))
        if not address:
            raise CallError(
                CUresult.CUDA_ERROR_NOT_FOUND,
                f"the emulator has no address of {symbol!r}; emulator.stand_in() has",
            )
        status = CUdriverProcAddressQueryResult.CU_GET_PROC_ADDRESS_SUCCESS
        return SUCCESS, address, status

    @cached_property
    def _tensor_map_functions(self) -> TensorMapFunctions:
        return TensorMapFunctions(self)

    def _modes(self, interleave: int, swizzle: int, promotion: int, fill: int) -> Modes:
        """Return how a tensor is copied, if the device supports it."""
        modes = Modes.of(interleave, swizzle, promotion, fill)
        self._reject_older_than(_ATOMS_SINCE if modes.swizzle in LARGER_ATOMS else _SINCE)
        return modes

    @property
    def _capability(self) -> tuple[int, int]:
        return self._state.handles.current().device.profile.compute_capability

    def _reject_older_than(self, since: tuple[int, int]) -> None:
        capability = self._capability
        if capability < since:
            raise CallError(
                CUresult.CUDA_ERROR_NOT_SUPPORTED,
                f"devices of compute capability {capability} have no such tensor maps",
            )


def _encoded(layout: TensorLayout) -> CUtensorMap:
    native = CUtensorMap()
    ctypes.memmove(native.getPtr(), layout.encode(), TensorLayout.nbytes_of_map)
    return native


def tiled(tensor: TensorExtents, box: Numbers, modes: Modes) -> TensorLayout:
    """Return the tensor map of `cuTensorMapEncodeTiled`.

    Raises:
        CallError: CUDA_ERROR_INVALID_VALUE, or CUDA_ERROR_NOT_SUPPORTED if it is not emulated.
    """
    min_rank = 3 if modes.interleave else 1
    layout = _layout(tensor, modes, min_rank)
    layout = replace(layout, box=_numbers("boxDim", box, tensor.rank))
    if not all(1 <= extent <= _MOST_BOX for extent in layout.box):
        raise invalid_value(f"boxDim {layout.box}: each is 1 to {_MOST_BOX}")
    _check_row(layout, layout.box[0], modes)
    _check_emulated(tensor, modes, layout)
    return layout


def im2col(
    tensor: TensorExtents, lower: Numbers, upper: Numbers, channels: int, pixels: int, modes: Modes
) -> TensorLayout:
    """Return the tensor map of `cuTensorMapEncodeIm2col`.

    Raises:
        CallError: likewise.
    """
    layout = _layout(tensor, modes, 3)
    spatial = tensor.rank - 2
    corners = [
        _numbers(name, values, spatial)
        for name, values in (("pixelBoxLowerCorner", lower), ("pixelBoxUpperCorner", upper))
    ]
    _check_pixels(layout, corners, _CORNERS[tensor.rank], channels, pixels, modes)
    layout = layout.with_pixels(corners[0], corners[1], channels, pixels)
    _check_emulated(tensor, modes, layout)
    return layout


def reject_im2col_wide(
    tensor: TensorExtents,
    lower: int,
    upper: int,
    channels: int,
    pixels: int,
    mode: int,
    modes: Modes,
) -> NoReturn:
    """Reject a call of `cuTensorMapEncodeIm2colWide`.

    Raises:
        CallError: CUDA_ERROR_INVALID_VALUE, else CUDA_ERROR_NOT_SUPPORTED.
    """
    layout = _layout(tensor, modes, 3)
    if modes.interleave or not modes.swizzle or mode not in (0, 1):
        raise invalid_value("rows of images go with a swizzle, no interleave, and mode 0 or 1")
    # The corners' range is that of one spatial dimension, for every rank.
    _check_pixels(layout, [(lower,), (upper,)], _CORNERS[3], channels, pixels, modes)
    raise CallError(
        CUresult.CUDA_ERROR_NOT_SUPPORTED,
        f"the emulator does not copy rows of images (im2col::w{'::128' if mode else ''}): from "
        f"{lower} to {upper}, {pixels} pixels of {channels} channels"
        "\n  make the map by cuTensorMapEncodeIm2col, or run the kernel on a GPU",
    )


def _check_pixels(
    layout: TensorLayout,
    corners: Sequence[tuple[int, ...]],
    allowed: tuple[int, int],
    channels: int,
    pixels: int,
    modes: Modes,
) -> None:
    """Check corners and sizes; the corners are of some dimensions from the innermost pixel on."""
    lowest, highest = allowed
    if not all(lowest <= offset <= highest for corner in corners for offset in corner):
        raise invalid_value(f"the pixel box {corners}: each offset is {lowest} to {highest}")
    extents = layout.extents[1 : 1 + len(corners[0])]
    if any(n + high <= low for n, low, high in zip(extents, *corners, strict=True)):
        raise invalid_value(f"the pixel box {corners} is empty in an image of {extents}")
    if not 1 <= channels <= _MOST_BOX or not 1 <= pixels <= _MOST_PIXELS:
        raise invalid_value(
            f"channelsPerPixel {channels}, pixelsPerColumn {pixels}: at most {_MOST_BOX} and "
            f"{_MOST_PIXELS}"
        )
    _check_row(layout, channels, modes)


def check_address(address: int, interleave: int) -> None:
    """Reject an address that is not aligned.

    Raises:
        CallError: CUDA_ERROR_INVALID_VALUE.
    """
    alignment = 32 if interleave == 2 else 16
    if address % alignment:
        raise invalid_value(f"globalAddress {address:#x} is no multiple of {alignment}")


def _layout(tensor: TensorExtents, modes: Modes, min_rank: int) -> TensorLayout:
    """Return the tensor without the copied parts."""
    element, rank, address, *sequences = tensor
    if not 0 <= element < _TYPES or modes.swizzle not in _SPANS:
        raise invalid_value(f"tensorDataType {element} or swizzle {modes.swizzle} is none")
    if not 0 <= modes.interleave <= 2 or not 0 <= modes.promotion <= 3 or not 0 <= modes.fill <= 1:
        raise invalid_value("the interleave, L2 promotion or fill is none")
    max_rank = TensorLayout.most_dimensions
    if not min_rank <= rank <= max_rank:
        raise invalid_value(f"tensorRank {rank} is not {min_rank} to {max_rank}")
    check_address(address, modes.interleave)
    if modes.fill and element not in _FLOATS:
        raise invalid_value("only floating-point elements are filled with NaN")
    if modes.interleave == 2 and modes.swizzle != 1:
        raise invalid_value("CU_TENSOR_MAP_INTERLEAVE_32B goes with CU_TENSOR_MAP_SWIZZLE_32B")
    extents = _numbers("globalDim", sequences[0], rank)
    strides = _numbers("globalStrides", sequences[1], rank - 1)
    steps = _numbers("elementStrides", sequences[2], rank)
    if not all(1 <= extent <= _MOST_EXTENT for extent in extents):
        raise invalid_value(f"globalDim {extents}: each is 1 to 2**31")
    alignment = 32 if modes.interleave == 2 else 16
    if any(stride % alignment or not 0 <= stride < _MOST_STRIDE for stride in strides):
        raise invalid_value(f"globalStrides {strides}: multiples of {alignment} below 2**40")
    if not all(1 <= step <= _MOST_STEP for step in steps):
        raise invalid_value(f"elementStrides {steps}: each is 1 to {_MOST_STEP}")
    swizzle, atomicity = _SWIZZLES.get(modes.swizzle, (0, 0))
    return TensorLayout(
        address,
        _ELEMENTS.get(element, 0),
        extents,
        strides,
        (),
        steps,
        swizzle,
        bool(modes.fill),
        promotion=modes.promotion,
        atomicity=atomicity,
        interleave=modes.interleave,
    )


def _check_row(layout: TensorLayout, count: int, modes: Modes) -> None:
    """Reject rows that do not fit shared memory.

    CUDA documents no rule for interleaved ones; the driver requires multiples of 16 bytes anyway.
    """
    row, span = count * layout.type.nbytes, _SPANS[modes.swizzle]
    if row % 16:
        raise invalid_value(f"a row of the box is {row} bytes, no multiple of 16")
    if span and row > span and not modes.interleave:
        raise invalid_value(f"a row of the box is {row} bytes, but the swizzle takes {span}")


def _check_emulated(tensor: TensorExtents, modes: Modes, layout: TensorLayout) -> None:
    unsupported = layout.not_copied
    if tensor.element not in _ELEMENTS:
        unsupported = (
            f"tensors of CUtensorMapDataType {tensor.element}, of fewer than 8 bits an element"
        )
    elif modes.swizzle not in _SWIZZLES:
        unsupported = "swizzles that flip halves of 16 bytes"
    if unsupported:
        raise CallError(
            CUresult.CUDA_ERROR_NOT_SUPPORTED,
            f"the emulator copies no {unsupported}"
            "\n  use another type or mode, or run the kernel on a GPU",
        )


def _numbers(name: str, values: Numbers, count: int) -> tuple[int, ...]:
    numbers = () if values is None else tuple(int(value) for value in values)
    if len(numbers) < count:
        raise invalid_value(f"{name} has {len(numbers)} numbers instead of {count}")
    return numbers[:count]


_INVALID_VALUE: Final = int(CUresult.CUDA_ERROR_INVALID_VALUE)
_DEINITIALIZED: Final = int(CUresult.CUDA_ERROR_DEINITIALIZED)
_UNKNOWN: Final = int(CUresult.CUDA_ERROR_UNKNOWN)
_C_TYPES: Final = {"size": ctypes.c_size_t, "uint": ctypes.c_uint, "int": ctypes.c_int}


def encode_tiled(
    api: TensorMapCalls,
    result: int,
    element: int,
    rank: int,
    address: int,
    extents: int,
    strides: int,
    box: int,
    steps: int,
    *modes: int,
) -> int:
    """Call `cuTensorMapEncodeTiled`."""
    count = min(rank, TensorLayout.most_dimensions)
    code, tensor_map = api.cuTensorMapEncodeTiled(
        element,
        rank,
        address,
        _sizes(extents, count),
        _sizes(strides, count - 1),
        _words(box, count),
        _words(steps, count),
        *modes,
    )
    return _write_result(result, code, tensor_map)


def encode_im2col(
    api: TensorMapCalls,
    result: int,
    element: int,
    rank: int,
    address: int,
    extents: int,
    strides: int,
    lower: int,
    upper: int,
    channels: int,
    pixels: int,
    steps: int,
    *modes: int,
) -> int:
    """Call `cuTensorMapEncodeIm2col`."""
    count = min(rank, TensorLayout.most_dimensions)
    code, tensor_map = api.cuTensorMapEncodeIm2col(
        element,
        rank,
        address,
        _sizes(extents, count),
        _sizes(strides, count - 1),
        _signed(lower, count - 2),
        _signed(upper, count - 2),
        channels,
        pixels,
        _words(steps, count),
        *modes,
    )
    return _write_result(result, code, tensor_map)


def replace_address(api: TensorMapCalls, tensor_map: int, address: int) -> int:
    """Call `cuTensorMapReplaceAddress`."""
    if not tensor_map:
        return _INVALID_VALUE
    (code,) = api.cuTensorMapReplaceAddress(CUtensorMap(_ptr=tensor_map), address)
    return int(code)


def encode_im2col_wide(
    api: TensorMapCalls,
    result: int,
    element: int,
    rank: int,
    address: int,
    extents: int,
    strides: int,
    lower: int,
    upper: int,
    channels: int,
    pixels: int,
    steps: int,
    *modes: int,
) -> int:
    """Call `cuTensorMapEncodeIm2colWide`."""
    count = min(rank, TensorLayout.most_dimensions)
    code, tensor_map = api.cuTensorMapEncodeIm2colWide(
        element,
        rank,
        address,
        _sizes(extents, count),
        _sizes(strides, count - 1),
        lower,
        upper,
        channels,
        pixels,
        _words(steps, count),
        *modes,
    )
    return _write_result(result, code, tensor_map)


FUNCTIONS: Final[dict[str, Callable[..., int]]] = {
    "cuTensorMapEncodeTiled": encode_tiled,
    "cuTensorMapEncodeIm2col": encode_im2col,
    "cuTensorMapEncodeIm2colWide": encode_im2col_wide,
    "cuTensorMapReplaceAddress": replace_address,
}
"""The functions by symbol."""


class TensorMapFunctions:
    """C functions that call an emulator while it exists."""

    def __init__(self, api: TensorMapCalls) -> None:
        self._api = ref(api)
        self._callbacks: dict[str, CFuncPtr] = {}

    def address(self, name: str) -> int:
        """Return the address of a function; 0 for an unknown one."""
        if name not in FUNCTIONS:
            return 0
        callback = self._callbacks.get(name)
        if callback is None:
            (words,) = (form.parameters for form in forms() if form.symbol == name)
            prototype = ctypes.CFUNCTYPE(ctypes.c_int, *(_C_TYPES[word] for word in words))
            callback = self._callbacks.setdefault(
                name, prototype(self._checked_function(FUNCTIONS[name]))
            )
        return ctypes.cast(callback, ctypes.c_void_p).value or 0

    def _checked_function(self, function: Callable[..., int]) -> Callable[..., int]:
        # Weakly: a reference to the emulator itself would keep it alive.
        api_of = self._api

        def checked(*arguments: int) -> int:
            try:
                api = api_of()
                return _DEINITIALIZED if api is None else function(api, *arguments)
            except BaseException:
                # No exception can leave a C function: ctypes would return any number for one. So an
                # interrupt here ends the call with an error.
                return _UNKNOWN

        return checked


def _write_result(result: int, code: CUresult, tensor_map: CUtensorMap | None) -> int:
    if tensor_map is not None:
        if not result:
            return _INVALID_VALUE
        ctypes.memmove(result, tensor_map.getPtr(), TensorLayout.nbytes_of_map)
    return int(code)


def _sizes(address: int, count: int) -> list[int] | None:
    return _array(ctypes.c_uint64, address, count)


def _words(address: int, count: int) -> list[int] | None:
    return _array(ctypes.c_uint32, address, count)


def _signed(address: int, count: int) -> list[int] | None:
    return _array(ctypes.c_int, address, count)


# The type of ctypes' numbers has no public name.
def _array(kind: Any, address: int, count: int) -> list[int] | None:
    if count <= 0:
        return []
    return list(view_at(kind * count, address)) if address else None
