"""What contexts and streams are, and what is set on them without an effect here.

CUDA Driver API: "Primary Context Management", "Context Management", "Stream Management",
"Profiler Control".
"""

from __future__ import annotations

import ctypes
from typing import Final

from ...driver._api import (
    CUcontext,
    CUdevice,
    CUevent,
    CUresult,
    CUstream,
)
from ..node_kind import NodeKind
from ..refusal import OK, SUCCESS, Refusal, invalid_value
from .call import call
from .context import ContextCalls
from .event import EventCalls
from .host_function import HostFunctionCalls
from .stream import StreamCalls

_API_VERSION: Final = 3020
_LAZY: Final = 2  # CU_MODULE_LAZY_LOADING
_StreamCallback: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)


class SettingCalls(ContextCalls, StreamCalls, EventCalls, HostFunctionCalls):
    """What contexts and streams are, and what is set on them without an effect here."""

    @call()
    def cuDevicePrimaryCtxReset(self, dev: CUdevice, /) -> tuple[CUresult]:
        """Destroy what the primary context holds, whoever retained it."""
        device = self._device(dev)
        context = self._primaries.get(device.ordinal)
        if context is None or context.destroyed:
            return OK
        self._finish_context(context)
        with self._lock:
            context = self._primaries[device.ordinal]  # another thread may have reset it
            if context.destroyed:
                return OK
            context.retained = 0
            memory = self._end_of(context)
        self._destroy(context, memory)
        return OK

    @call(2)
    def cuDevicePrimaryCtxGetState(self, dev: CUdevice, /) -> tuple[CUresult, int, int]:
        """The primary context's flags, and whether it is active."""
        context = self._primaries.get(self._device(dev).ordinal)
        is_active = context is not None and not context.destroyed
        return SUCCESS, context.flags if context is not None else 0, int(is_active)

    @call(1)
    def cuCtxGetFlags(self) -> tuple[CUresult, int]:
        """The current context's flags."""
        return SUCCESS, self._current().flags

    @call(1)
    def cuCtxGetId(self, ctx: CUcontext, /) -> tuple[CUresult, int]:
        """A number that no other context has; of null the current one's."""
        context = self._context(ctx) if int(ctx) else self._current()
        return SUCCESS, context.handle

    @call(1)
    def cuCtxGetApiVersion(self, ctx: CUcontext, /) -> tuple[CUresult, int]:
        """The version of the context's interface."""
        if int(ctx):
            self._context(ctx)
        return SUCCESS, _API_VERSION

    @call(1)
    def cuModuleGetLoadingMode(self) -> tuple[CUresult, int]:
        """Kernels are made ready when they are needed."""
        return SUCCESS, _LAZY

    @call(1)
    def cuStreamCreate(self, flags: int, /) -> tuple[CUresult, CUstream]:
        """A stream of the current context."""
        return self.cuStreamCreateWithPriority(flags, 0)

    @call(1)
    def cuStreamGetFlags(self, h_stream: CUstream, /) -> tuple[CUresult, int]:
        """The flags that it was made with."""
        return SUCCESS, self._stream(h_stream).flags

    @call(1)
    def cuStreamGetId(self, h_stream: CUstream, /) -> tuple[CUresult, int]:
        """A number that no other stream has."""
        stream = self._stream(h_stream)
        with self._lock:
            stream.identity = stream.identity or next(self._handles)
        return SUCCESS, stream.identity

    @call(1)
    def cuStreamGetDevice(self, h_stream: CUstream, /) -> tuple[CUresult, CUdevice]:
        """The device of its context."""
        return SUCCESS, CUdevice(self._stream(h_stream).context.device.ordinal)

    @call()
    def cuStreamAddCallback(
        self, h_stream: CUstream, callback: int, user_data: int, flags: int, /
    ) -> tuple[CUresult]:
        """Call a function of the host, which is told of the stream and how its work went."""
        stream = self._stream(h_stream)
        function, argument = int(callback), int(user_data)
        if not function or flags:
            raise invalid_value("a stream's callback is a function, with flags 0")
        if stream.capture is not None:
            raise self._invalidate(
                [stream.capture],
                CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                "a callback cannot be captured: use a host function; the capture is now invalid",
            )
        called, handle = _StreamCallback(function), int(h_stream)
        self._submit(
            stream, NodeKind.HOST, lambda: self._run_on_host(lambda: called(handle, 0, argument))
        )
        return OK

    @call()
    def cuEventRecordWithFlags(
        self, h_event: CUevent, h_stream: CUstream, flags: int, /
    ) -> tuple[CUresult]:
        """Record an event; outside of a capture an external one is as any other."""
        if flags & ~1:
            raise invalid_value(f"invalid record flags {flags:#x}")
        if flags and self._stream(h_stream).capture is not None:
            raise Refusal(
                CUresult.CUDA_ERROR_NOT_SUPPORTED, "the emulator captures no external record"
            )
        self._record(h_event, h_stream)
        return OK

    @call()
    def cuProfilerStart(self) -> tuple[CUresult]:
        """Nothing: there is no profiler."""
        self._current()
        return OK

    @call()
    def cuProfilerStop(self) -> tuple[CUresult]:
        """Nothing: there is no profiler."""
        self._current()
        return OK
