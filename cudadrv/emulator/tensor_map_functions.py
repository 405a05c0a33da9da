"""The functions of tensor maps as C calls them: by addresses, with arrays in memory.

CUDA Driver API, "Tensor Map Object Management". cuda.bindings makes its CUtensorMap where Python
puts objects, at multiples of 16, while the manual asks for one of 64: so these are called by their
address. That is not looked at here, as cuda.core's own lie at multiples of 16 too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import ref

from ptx.emulate.model.tensor_map import MOST_DIMENSIONS, NBYTES

from ..driver._api import CUresult, CUtensorMap
from ..driver.functions import forms

if TYPE_CHECKING:
    from _ctypes import CFuncPtr

_INVALID_VALUE: Final = int(CUresult.CUDA_ERROR_INVALID_VALUE)
_GONE: Final = int(CUresult.CUDA_ERROR_DEINITIALIZED)
_UNKNOWN: Final = int(CUresult.CUDA_ERROR_UNKNOWN)
_TYPES: Final = {"size": ctypes.c_size_t, "uint": ctypes.c_uint, "int": ctypes.c_int}


class TensorMapApi(Protocol):
    """The functions behind, as Python calls them."""

    @property
    def cuTensorMapEncodeTiled(self) -> Callable[..., tuple[CUresult, CUtensorMap | None]]:
        """Of tiles."""

    @property
    def cuTensorMapEncodeIm2col(self) -> Callable[..., tuple[CUresult, CUtensorMap | None]]:
        """Of the pixels under a filter."""

    @property
    def cuTensorMapEncodeIm2colWide(self) -> Callable[..., tuple[CUresult, CUtensorMap | None]]:
        """Of wide images."""

    @property
    def cuTensorMapReplaceAddress(self) -> Callable[..., tuple[CUresult]]:
        """Of another address."""


def encode_tiled(
    api: TensorMapApi, result: int, element: int, rank: int, address: int, extents: int,
    strides: int, box: int, steps: int, *modes: int,
) -> int:  # fmt: skip
    """`cuTensorMapEncodeTiled`."""
    count = min(rank, MOST_DIMENSIONS)
    code, found = api.cuTensorMapEncodeTiled(
        element, rank, address, _sizes(extents, count), _sizes(strides, count - 1),
        _words(box, count), _words(steps, count), *modes,
    )  # fmt: skip
    return _put(result, code, found)


def encode_im2col(
    api: TensorMapApi, result: int, element: int, rank: int, address: int, extents: int,
    strides: int, lower: int, upper: int, channels: int, pixels: int, steps: int, *modes: int,
) -> int:  # fmt: skip
    """`cuTensorMapEncodeIm2col`."""
    count = min(rank, MOST_DIMENSIONS)
    code, found = api.cuTensorMapEncodeIm2col(
        element, rank, address, _sizes(extents, count), _sizes(strides, count - 1),
        _signed(lower, count - 2), _signed(upper, count - 2), channels, pixels,
        _words(steps, count), *modes,
    )  # fmt: skip
    return _put(result, code, found)


def replace_address(api: TensorMapApi, tensor_map: int, address: int) -> int:
    """`cuTensorMapReplaceAddress`."""
    if not tensor_map:
        return _INVALID_VALUE
    (code,) = api.cuTensorMapReplaceAddress(CUtensorMap(_ptr=tensor_map), address)
    return int(code)


def encode_im2col_wide(
    api: TensorMapApi, result: int, element: int, rank: int, address: int, extents: int,
    strides: int, lower: int, upper: int, channels: int, pixels: int, steps: int, *modes: int,
) -> int:  # fmt: skip
    """`cuTensorMapEncodeIm2colWide`."""
    count = min(rank, MOST_DIMENSIONS)
    code, found = api.cuTensorMapEncodeIm2colWide(
        element, rank, address, _sizes(extents, count), _sizes(strides, count - 1), lower, upper,
        channels, pixels, _words(steps, count), *modes,
    )  # fmt: skip
    return _put(result, code, found)


FUNCTIONS: Final[dict[str, Callable[..., int]]] = {
    "cuTensorMapEncodeTiled": encode_tiled,
    "cuTensorMapEncodeIm2col": encode_im2col,
    "cuTensorMapEncodeIm2colWide": encode_im2col_wide,
    "cuTensorMapReplaceAddress": replace_address,
}
"""The functions by symbol."""


class TensorMapFunctions:
    """C functions that call an emulator, as long as there is one."""

    def __init__(self, api: TensorMapApi) -> None:
        self._api = ref(api)
        self._callbacks: dict[str, CFuncPtr] = {}

    def address(self, name: str) -> int:
        """Where a function is; 0 for one that is not here."""
        if name not in FUNCTIONS:
            return 0
        made = self._callbacks.get(name)
        if made is None:
            (words,) = (form.parameters for form in forms() if form.symbol == name)
            prototype = ctypes.CFUNCTYPE(ctypes.c_int, *(_TYPES[word] for word in words))
            made = self._callbacks.setdefault(name, prototype(self._answering(FUNCTIONS[name])))
        return ctypes.cast(made, ctypes.c_void_p).value or 0

    def _answering(self, function: Callable[..., int]) -> Callable[..., int]:
        # Not the emulator itself, which would keep itself alive.
        api_of = self._api

        def answer(*given: int) -> int:
            api = api_of()
            try:
                return _GONE if api is None else function(api, *given)
            except Exception:
                return _UNKNOWN  # an exception cannot leave a function of C

        return answer


def _put(result: int, code: CUresult, found: CUtensorMap | None) -> int:
    if found is not None:
        if not result:
            return _INVALID_VALUE
        ctypes.memmove(result, found.getPtr(), NBYTES)
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
    return list((kind * count).from_address(address)) if address else None
