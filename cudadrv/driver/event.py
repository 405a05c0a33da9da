"""Events: points in a stream that can be waited for and timed."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final

from .. import border
from ._api import CUevent, CUevent_flags
from .awaiting import until
from .context import ContextCore
from .handle import Closed, Closing
from .in_use import failure
from .later import drop_now
from .stream_box import UNTIMED, EventBox, StreamBox

if TYPE_CHECKING:
    from .stream_box import StreamName

_BLOCKING: Final = int(CUevent_flags.CU_EVENT_BLOCKING_SYNC)
_DEFAULT: Final = int(CUevent_flags.CU_EVENT_DEFAULT)


class Event(Closing):
    """A point in a stream; made by `Stream.record`, or by hand and recorded later.

    Args:
        context: the context it belongs to; an event is recorded on streams of its context.
        timing: whether `elapsed_ms` will be asked; without it an event is cheaper.
        blocking: whether a thread that waits in `synchronize` sleeps, and does not spin.

    Attributes:
        context: the context.
        timing: whether it can be timed.
        handle: the CUevent; reading it after `close` raises `ClosedError`.
        closed: whether it was closed.
    """

    __slots__ = ("context", "timing")

    _box: EventBox

    def __init__(
        self, context: ContextCore, *, timing: bool = True, blocking: bool = False
    ) -> None:
        border.instance("Event: context", context, ContextCore)
        flags = (_DEFAULT if timing else UNTIMED) | (_BLOCKING if blocking else _DEFAULT)
        self.context: ContextCore = context
        self.timing: bool = timing
        self._box = EventBox(context._box, flags)
        context._adopt(self)

    def __repr__(self) -> str:
        where = "closed" if self.closed else f"{int(self.handle):#x}"
        return f"<Event {where} on device {self.context.ordinal}>"

    @property
    def _closed_text(self) -> str:
        return "the event was closed"

    @property
    def handle(self) -> CUevent:
        """The CUevent.

        Raises:
            ClosedError: it was closed.
        """
        return self._box.raw

    def record(self, stream: StreamName) -> None:
        """Set the event to this point of `stream`."""
        try:
            box: object = stream._box
        except AttributeError:
            box = None
        if type(box) is not StreamBox:
            if isinstance(box, Closed):
                raise box.error
            if not isinstance(box, StreamBox):
                raise border.refused("Event.record: stream", stream, "give a Stream")
        self._box.record(box)

    def synchronize(self) -> None:
        """Wait until the work before the event is done.

        Raises:
            CudaError: that work failed.
        """
        box = self._box
        (code,) = box.api.cuEventSynchronize(box.raw)
        if code:
            raise failure(box.api, code, "cuEventSynchronize", "waiting for an event")
        drop_now()

    def is_done(self) -> bool:
        """Whether the work before the event is done, without waiting.

        Raises:
            CudaError: that work failed.
        """
        return self._box.is_done()

    def __await__(self) -> Generator[Any, None, None]:
        """``await event`` in asyncio: until the work before the event is done.

        Raises:
            CudaError: that work failed.
        """
        yield from until(self.is_done)
        drop_now()

    def __sub__(self, since: Event) -> float:
        """``end - begin``: milliseconds of device time, as `elapsed_ms`."""
        if not isinstance(since, Event):
            return NotImplemented
        return self.elapsed_ms(since)

    def elapsed_ms(self, since: Event) -> float:
        """Milliseconds of device time from `since` to this event, to about half a microsecond.

        Raises:
            NotReadyError: one of the two has not been reached; synchronize first.
            InvalidHandleError: one of the two was made without timing, or never recorded.
        """
        border.instance("Event.elapsed_ms: since", since, Event)
        end, start = self._box, since._box
        code, elapsed = end.api.cuEventElapsedTime(start.raw, end.raw)
        if code:
            raise failure(end.api, code, "cuEventElapsedTime", "timing between two events")
        return elapsed
