"""Events: points in a stream that can be waited for and timed."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Final

from ..errors import ClosedError
from ._api import CUevent, CUevent_flags, CUresult, DriverApi
from .in_use import Bound, Handle, failure

if TYPE_CHECKING:
    from ..stream import Stream
    from .context import Context

_UNTIMED: Final = int(CUevent_flags.CU_EVENT_DISABLE_TIMING)
_BLOCKING: Final = int(CUevent_flags.CU_EVENT_BLOCKING_SYNC)
_DEFAULT: Final = int(CUevent_flags.CU_EVENT_DEFAULT)


class Event(Handle):
    """A point in a stream; made by `Stream.record`, or by hand and recorded later.

    Args:
        context: the context it belongs to; an event is recorded on streams of its context.
        timing: whether `elapsed_ms` will be asked; without it an event is cheaper.
        blocking: whether a thread that waits in `synchronize` sleeps, and does not spin.

    Attributes:
        handle: the CUevent; reading it after `close` raises `ClosedError`.
        closed: whether it was closed.
    """

    __slots__ = ("__weakref__", "_api", "_finalizer", "closed", "context", "handle", "timing")

    context: Context
    handle: CUevent

    def __init__(self, context: Context, *, timing: bool = True, blocking: bool = False) -> None:
        api = context.api
        flags = (_DEFAULT if timing else _UNTIMED) | (_BLOCKING if blocking else _DEFAULT)
        with Bound(api, context.handle):
            code, handle = api.cuEventCreate(flags)
        if code:
            raise failure(api, code, "cuEventCreate", f"making an event on {context!r}")
        self._api = api
        self.context = context
        self.handle = handle
        self.timing = timing
        self.closed = False
        # The context stays alive as long as the event: it is held by the finalizer as well.
        self._finalizer = weakref.finalize(self, _destroy, api, handle, context)
        self._finalizer.atexit = False
        context.adopt(self)

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> object:
            if name == "handle":
                raise ClosedError("the event was closed")
            raise AttributeError(f"an Event has no attribute {name!r}")

    def __repr__(self) -> str:
        where = "closed" if self.closed else f"{int(self.handle):#x}"
        return f"<Event {where} on device {self.context.ordinal}>"

    def __enter__(self) -> Event:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Destroy the event; work that waits for it still does. Idempotent."""
        if self._finalizer.alive:
            self.discard()
            self._finalizer()

    def discard(self) -> None:
        """Take the handle away: the event is destroyed, or its context is."""
        if not self.closed:
            self.closed = True
            del self.handle

    def record(self, stream: Stream) -> None:
        """Set the event to this point of `stream`."""
        (code,) = self._api.cuEventRecord(self.handle, stream.handle)
        if code:
            raise failure(self._api, code, "cuEventRecord", f"recording an event on {stream!r}")

    def synchronize(self) -> None:
        """Wait until the work before the event is done.

        Raises:
            CudaError: that work failed.
        """
        (code,) = self._api.cuEventSynchronize(self.handle)
        if code:
            raise failure(self._api, code, "cuEventSynchronize", "waiting for an event")

    def is_done(self) -> bool:
        """Whether the work before the event is done, without waiting.

        Raises:
            CudaError: that work failed.
        """
        (code,) = self._api.cuEventQuery(self.handle)
        if code == CUresult.CUDA_ERROR_NOT_READY:
            return False
        if code:
            raise failure(self._api, code, "cuEventQuery", "asking whether an event is done")
        return True

    def elapsed_ms(self, since: Event) -> float:
        """Milliseconds of device time from `since` to this event, to about half a microsecond.

        Raises:
            NotReadyError: one of the two has not been reached; synchronize first.
            InvalidHandleError: one of the two was made without timing, or never recorded.
        """
        code, elapsed = self._api.cuEventElapsedTime(since.handle, self.handle)
        if code:
            raise failure(self._api, code, "cuEventElapsedTime", "timing between two events")
        return elapsed


def _destroy(api: DriverApi, handle: CUevent, context: Context) -> None:
    # A context that is gone took its events with it.
    if not context.closed:
        api.cuEventDestroy(handle)
