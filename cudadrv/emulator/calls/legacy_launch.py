"""Launches whose block, parameters and shared memory are set on the kernel beforehand.

CUDA Driver API: "Execution Control [DEPRECATED]". Launches without a stream run in the legacy
stream.
"""

from __future__ import annotations

import ctypes
import struct

from ...driver._api import CUfunction, CUresult, CUstream
from ..call_error import OK, invalid_value
from ..caller_memory import is_readable
from ..modules import MAX_PARAMETER_BYTES, LegacyLaunch, Shape
from .call import DriverCalls, call
from .execution import submit_launch
from .library import function_of

_END, _POINTER, _SIZE = 0, 1, 2  # CU_LAUNCH_PARAM_END, _BUFFER_POINTER, _BUFFER_SIZE


class LegacyLaunchCalls(DriverCalls):
    """Settings of kernels, and their launches."""

    def _legacy(self, hfunc: CUfunction) -> LegacyLaunch:
        function = function_of(self._state, hfunc)
        if function.legacy is None:
            function.legacy = LegacyLaunch()
        return function.legacy

    @call
    def cuFuncSetBlockShape(self, hfunc: CUfunction, x: int, y: int, z: int, /) -> tuple[CUresult]:
        """Set the threads of a block."""
        if min(x, y, z) < 1:
            raise invalid_value(f"a block of {x} by {y} by {z} threads")
        self._legacy(hfunc).block = (x, y, z)
        return OK

    @call
    def cuFuncSetSharedSize(self, hfunc: CUfunction, numbytes: int, /) -> tuple[CUresult]:
        """Set the dynamic shared memory."""
        self._legacy(hfunc).shared_bytes = numbytes
        return OK

    @call
    def cuParamSetSize(self, hfunc: CUfunction, numbytes: int, /) -> tuple[CUresult]:
        """Set the bytes of all parameters."""
        if numbytes > MAX_PARAMETER_BYTES:
            raise invalid_value(f"{numbytes} bytes of parameters")
        self._legacy(hfunc).nbytes = numbytes
        return OK

    @call
    def cuParamSeti(self, hfunc: CUfunction, offset: int, value: int, /) -> tuple[CUresult]:
        """Set an integer of 4 bytes."""
        self._legacy(hfunc).put(offset, struct.pack("<I", value))
        return OK

    @call
    def cuParamSetf(self, hfunc: CUfunction, offset: int, value: float, /) -> tuple[CUresult]:
        """Set a floating-point number of 4 bytes."""
        self._legacy(hfunc).put(offset, struct.pack("<f", value))
        return OK

    @call
    def cuParamSetv(
        self, hfunc: CUfunction, offset: int, ptr: int, numbytes: int, /
    ) -> tuple[CUresult]:
        """Set bytes, which are copied at the call."""
        legacy = self._legacy(hfunc)
        if numbytes > MAX_PARAMETER_BYTES or not is_readable(ptr, numbytes):
            raise invalid_value(f"{ptr:#x} is no address of {numbytes} bytes of parameters")
        legacy.put(offset, ctypes.string_at(ptr, numbytes))
        return OK

    @call
    def cuLaunch(self, f: CUfunction, /) -> tuple[CUresult]:
        """Launch one block."""
        self._launch_legacy(f, 1, 1, self._state.thread.default_stream)
        return OK

    @call
    def cuLaunchGrid(self, f: CUfunction, grid_width: int, grid_height: int, /) -> tuple[CUresult]:
        """Launch a grid of two dimensions."""
        self._launch_legacy(f, grid_width, grid_height, self._state.thread.default_stream)
        return OK

    @call
    def cuLaunchGridAsync(
        self, f: CUfunction, grid_width: int, grid_height: int, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Same in a stream."""
        self._launch_legacy(f, grid_width, grid_height, h_stream)
        return OK

    def _launch_legacy(self, f: CUfunction, width: int, height: int, stream: CUstream) -> None:
        settings = self._legacy(f)
        block = bytes(settings.parameters[: settings.nbytes]).ljust(settings.nbytes, b"\0")
        buffer = ctypes.create_string_buffer(block, max(1, len(block)))
        size = ctypes.c_size_t(settings.nbytes)
        extra = (ctypes.c_size_t * 5)(
            _POINTER, ctypes.addressof(buffer), _SIZE, ctypes.addressof(size), _END
        )
        shape = Shape((width, height, 1), settings.block, settings.shared_bytes)
        submit_launch(self._state, f, shape, stream, 0, ctypes.addressof(extra))
