"""`StreamWait`: a wait between two operations of a host program, which the program lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from ...driver.driver_selection import Driver, current
from ...driver.functions import flagged
from ...emulator.call_site import user_call_site

if TYPE_CHECKING:
    from ...driver._api import CUevent, CUstream
    from ...driver.driver_api import DriverApi


@dataclass(frozen=True, slots=True)
class StreamWait:
    """Lets the later one of two operations wait for the stream of the other.

    Attributes:
        places: the file and line of both calls; "" of one from outside of the program.
        by_host: True to let the host wait as well, before the later call.
    """

    places: tuple[str, str]
    by_host: bool = False

    @contextmanager
    def inserted(self, caller: str) -> Iterator[None]:
        """Insert it in the calls of a `with` block, on the driver in use.

        Args:
            caller: the place of calls from outside of the program.
        """
        driver: Driver = current()
        inner = driver.api
        waiting = _WaitingApi(inner, self, caller)
        # `__getattr__` gives the functions that a class would have to name for the checker.
        driver.api = cast("DriverApi", waiting)
        try:
            yield
        finally:
            driver.api = inner
            waiting.end()


@dataclass(slots=True)
class _WaitingApi:
    """The functions of a driver, with waits before the operations of two places.

    Attributes:
        caller: the place of calls from outside of the program.
        events: those after the operations so far, with their streams, by place.
    """

    inner: DriverApi
    added: StreamWait
    caller: str
    events: dict[str, list[tuple[CUevent, CUstream]]] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:  # the functions have no signature in common
        function = getattr(self.inner, name)
        if name == "cuLaunchKernelEx":
            return self._waiting(function, lambda args: args[0].hStream)
        form = flagged("launch").get(name) or flagged("copy").get(name)
        if form is None or "stream" not in form.parameters:
            return function
        position = [
            parameter for parameter in form.parameters if not parameter.startswith(">")
        ].index("stream")
        return self._waiting(function, lambda args: args[position])

    def _waiting(
        self, function: Callable[..., Any], stream_of: Callable[[Any], CUstream]
    ) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            place, places = user_call_site(), self.added.places
            place = "" if place == self.caller else place
            if place not in places:
                return function(*args)
            stream = stream_of(args)
            other = places[1] if place == places[0] else places[0]
            for event, before in self.events.get(other, []):
                # All work of that stream until now; it fails for one that the program has closed.
                self.inner.cuEventRecord(event, before)
                self.inner.cuStreamWaitEvent(stream, event, 0)
                if self.added.by_host:
                    self.inner.cuEventSynchronize(event)
            result = function(*args)
            self._record(place, stream)
            return result

        return call

    def _record(self, place: str, stream: CUstream) -> None:
        """Record an event after an operation."""
        api = self.inner
        code, context = api.cuStreamGetCtx(stream)
        if code:
            return
        api.cuCtxPushCurrent(context)
        _, event = api.cuEventCreate(0)
        api.cuCtxPopCurrent()
        api.cuEventRecord(event, stream)
        self.events.setdefault(place, []).append((event, stream))

    def end(self) -> None:
        """Destroy the events."""
        for event, _ in chain.from_iterable(self.events.values()):
            self.inner.cuEventDestroy(event)
