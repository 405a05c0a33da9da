"""Tensor maps, and the addresses of the C functions that make them.

CUDA Driver API: "Tensor Map Object Management", "Driver Entry Point Access".
"""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import Final

from ptx.emulate.model.tensor_map import NBYTES, TensorLayout, decoded

from ...driver._api import (
    CUdriverProcAddressQueryResult,
    CUresult,
    CUtensorMap,
)
from ..call_rules import CallRules
from ..refusal import OK, SUCCESS, Refusal, invalid_value
from ..tensor_map_functions import TensorMapFunctions
from ..tensor_maps import (
    LARGER_ATOMS,
    Extents,
    Modes,
    Numbers,
    check_address,
    im2col,
    refuse_im2col_wide,
    tiled,
)
from .call import call

_SINCE: Final = (9, 0)
_WIDE_SINCE: Final = (10, 0)
_ATOMS_SINCE: Final = (10, 0)


class TensorMapCalls(CallRules):
    """Tensor maps."""

    @call(1)
    def cuTensorMapEncodeTiled(
        self, tensor_data_type: int, tensor_rank: int, global_address: int, global_dim: Numbers,
        global_strides: Numbers, box_dim: Numbers, element_strides: Numbers, interleave: int,
        swizzle: int, l2_promotion: int, oob_fill: int, /,
    ) -> tuple[CUresult, CUtensorMap]:  # fmt: skip
        """The map of a tensor that is copied by tiles."""
        modes = self._modes(interleave, swizzle, l2_promotion, oob_fill)
        tensor = Extents.of(
            tensor_data_type, tensor_rank, global_address, global_dim, global_strides,
            element_strides,
        )  # fmt: skip
        return SUCCESS, _encoded(tiled(tensor, box_dim, modes))

    @call(1)
    def cuTensorMapEncodeIm2col(
        self, tensor_data_type: int, tensor_rank: int, global_address: int, global_dim: Numbers,
        global_strides: Numbers, pixel_box_lower_corner: Numbers, pixel_box_upper_corner: Numbers,
        channels_per_pixel: int, pixels_per_column: int, element_strides: Numbers, interleave: int,
        swizzle: int, l2_promotion: int, oob_fill: int, /,
    ) -> tuple[CUresult, CUtensorMap]:  # fmt: skip
        """The map of images that are copied by the pixels under a filter."""
        modes = self._modes(interleave, swizzle, l2_promotion, oob_fill)
        tensor = Extents.of(
            tensor_data_type, tensor_rank, global_address, global_dim, global_strides,
            element_strides,
        )  # fmt: skip
        layout = im2col(
            tensor, pixel_box_lower_corner, pixel_box_upper_corner, int(channels_per_pixel),
            int(pixels_per_column), modes,
        )  # fmt: skip
        return SUCCESS, _encoded(layout)

    @call(1)
    def cuTensorMapEncodeIm2colWide(
        self, tensor_data_type: int, tensor_rank: int, global_address: int, global_dim: Numbers,
        global_strides: Numbers, pixel_box_lower_corner_width: int,
        pixel_box_upper_corner_width: int, channels_per_pixel: int, pixels_per_column: int,
        element_strides: Numbers, interleave: int, mode: int, swizzle: int, l2_promotion: int,
        oob_fill: int, /,
    ) -> tuple[CUresult, CUtensorMap]:  # fmt: skip
        """Refused: devices of compute capability 10.0 have it, and the emulator does not copy so.

        Raises:
            Refusal: always.
        """
        self._refuse_older_than(_SINCE)
        if self._capability < _WIDE_SINCE:  # as an H200's driver
            raise invalid_value(f"no im2col::w on compute capability {self._capability}")
        tensor = Extents.of(
            tensor_data_type, tensor_rank, global_address, global_dim, global_strides,
            element_strides,
        )  # fmt: skip
        refuse_im2col_wide(
            tensor, int(pixel_box_lower_corner_width), int(pixel_box_upper_corner_width),
            int(channels_per_pixel), int(pixels_per_column), int(mode),
            Modes.of(interleave, swizzle, l2_promotion, oob_fill),
        )  # fmt: skip

    @call()
    def cuTensorMapReplaceAddress(
        self, tensor_map: CUtensorMap | None, global_address: int, /
    ) -> tuple[CUresult]:
        """Let a map be of a tensor elsewhere, of the same layout."""
        if tensor_map is None:
            raise invalid_value("the tensor map is null")
        address = tensor_map.getPtr()
        try:
            decoded(ctypes.string_at(address, NBYTES))
        except ValueError as error:
            raise invalid_value(f"the tensor map {error}") from None
        check_address(int(global_address), 0)
        ctypes.c_uint64.from_address(address + 8).value = int(global_address)
        return OK

    @call(2)
    def cuGetProcAddress(
        self, symbol: bytes, cuda_version: int, flags: int, /
    ) -> tuple[CUresult, int, CUdriverProcAddressQueryResult]:
        """The C functions that cuda.bindings cannot call, as its objects are not aligned."""
        found = self._tensor_map_functions.address(bytes(symbol).decode(errors="replace"))
        if not found:
            raise Refusal(
                CUresult.CUDA_ERROR_NOT_FOUND,
                f"the emulator has no address of {symbol!r}; emulator.stand_in() has",
            )
        status = CUdriverProcAddressQueryResult.CU_GET_PROC_ADDRESS_SUCCESS
        return SUCCESS, found, status

    @cached_property
    def _tensor_map_functions(self) -> TensorMapFunctions:
        return TensorMapFunctions(self)

    def _modes(self, interleave: int, swizzle: int, promotion: int, fill: int) -> Modes:
        """How a tensor is copied, if the device copies so."""
        modes = Modes.of(interleave, swizzle, promotion, fill)
        self._refuse_older_than(_ATOMS_SINCE if modes.swizzle in LARGER_ATOMS else _SINCE)
        return modes

    @property
    def _capability(self) -> tuple[int, int]:
        return self._current().device.profile.compute_capability

    def _refuse_older_than(self, since: tuple[int, int]) -> None:
        capability = self._capability
        if capability < since:
            raise Refusal(
                CUresult.CUDA_ERROR_NOT_SUPPORTED,
                f"devices of compute capability {capability} have no such tensor maps",
            )


def _encoded(layout: TensorLayout) -> CUtensorMap:
    found = CUtensorMap()
    ctypes.memmove(found.getPtr(), layout.encode(), NBYTES)
    return found
