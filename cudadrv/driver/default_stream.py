"""The built-in streams of a context: the legacy one, and one for each thread.

CUDA Driver API, "Stream synchronization behavior". The driver identifies them by numbers, which
mean a stream of the current context. So every operation here binds the context.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, ParamSpec, TypeVar

from ptx.read_only import ReadOnly

from .. import border
from ._api import CUresult, CUstream
from .context import BaseContext
from .deferred_release import run_deferred
from .driver_selection import checked, failure
from .event import Event
from .handle import NotCopyable

_P = ParamSpec("_P")
_T = TypeVar("_T")


class DefaultStream(NotCopyable):
    """A default stream of a context, to wait for and to pass to other libraries.

    Work is queued on `Context.default_stream`, which is in order with the legacy one. The
    per-thread stream is a different stream in each thread that uses this object.

    Attributes:
        context: the context.
        is_per_thread: whether it is the calling thread's instead of the legacy one.
    """

    __slots__ = ("_context", "_is_per_thread", "_raw")

    context: ReadOnly[BaseContext] = ReadOnly("_context")
    is_per_thread: ReadOnly[bool] = ReadOnly("_is_per_thread")

    def __init__(self, context: BaseContext, *, is_per_thread: bool) -> None:
        self._context: BaseContext = context
        self._is_per_thread: bool = is_per_thread
        self._raw = CUstream(2 if is_per_thread else 1)

    def __repr__(self) -> str:
        name = "per-thread" if self._is_per_thread else "legacy"
        return f"<DefaultStream {name} of {self._context!r}>"

    def __cuda_stream__(self) -> tuple[int, int]:
        """The protocol of cuda.core: (version 0, CUstream as an int)."""
        return 0, int(self._raw)

    @property
    def handle(self) -> CUstream:
        """The CUstream in the current context; 1 is the legacy stream, 2 the thread's."""
        return self._raw

    def _call(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call a function with the context current; on the legacy stream, during no capture."""
        handle = self._context._handle
        if self._is_per_thread:
            return handle.call(function, *args, **kwargs)
        return handle.call_in_legacy_order(partial(handle.call, function, *args, **kwargs))

    def synchronize(self) -> None:
        """Wait until everything queued is done.

        Raises:
            CudaError: some queued work failed.
        """
        handle = self._context._handle
        result = self._call(handle.api.cuStreamSynchronize, self._raw)
        checked(handle.api, "cuStreamSynchronize", result, f"waiting for {self!r}")
        run_deferred()

    def is_done(self) -> bool:
        """Return whether everything queued is done, without waiting.

        Raises:
            CudaError: some queued work failed.
        """
        handle = self._context._handle
        (code,) = self._call(handle.api.cuStreamQuery, self._raw)
        if code and code != CUresult.CUDA_ERROR_NOT_READY:
            raise failure(handle.api, code, "cuStreamQuery", f"querying whether {self!r} is done")
        return not code

    def __await__(self) -> Generator[Any, None, None]:
        """Wait in asyncio until the current work is done: ``await stream``."""
        return self.record(timing=False).__await__()

    def record(self, *, timing: bool = True) -> Event:
        """Return a new event at this point of the stream."""
        event, handle = Event(self._context, timing=timing), self._context._handle
        result = self._call(handle.api.cuEventRecord, event.handle, self._raw)
        checked(handle.api, "cuEventRecord", result, f"recording on {self!r}")
        return event

    def wait(self, event: Event) -> None:
        """Let later work wait for an event."""
        border.instance_of("DefaultStream.wait: event", event, Event)
        handle = self._context._handle
        event._handle.require_outside()
        result = self._call(handle.api.cuStreamWaitEvent, self._raw, event.handle, 0)
        checked(handle.api, "cuStreamWaitEvent", result, f"making {self!r} wait for an event")
