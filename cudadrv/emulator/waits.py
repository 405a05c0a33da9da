"""Calls that wait: for a stream, an event, a context, a device.

CUDA Driver API, "API synchronization behavior". Under "immediate" only the work of nested calls is
ever pending.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial

from .contexts import Context
from .core import Core
from .device_state import DeviceState
from .events import Event
from .streams import Stream
from .timeline.host_watch import OrderWarning
from .timeline.operation import Operation


class Waits(Core):
    """What the calls that wait have in common."""

    @property
    def repeated_by(self) -> str:
        """What makes a program run in this order again, as a sentence."""
        return self._order.repeated_by

    def finish(self) -> None:
        """Run what is still queued, as at the end of a session; what fails is warned of."""
        if self._timeline is None:
            return
        for device in self._devices:
            broken = device.fault
            self._thread.within_a_call(partial(self._finish_device, device))
            if device.fault is not None and device.fault is not broken:
                warnings.warn(
                    f"what was still queued on device {device.ordinal} failed, which no call could "
                    f"say: {device.fault.text}",
                    OrderWarning,
                    stacklevel=2,
                )

    def _finish_device(self, device: DeviceState) -> None:
        """Let all work of a device end; its errors are for the next call."""
        timeline = self._timeline
        if timeline is not None:
            timeline.need(timeline.tails_of(device))
        self._host_has_waited(device)

    def _finish_context(self, context: Context) -> None:
        """Likewise of a context."""
        timeline = self._timeline
        if timeline is not None:
            timeline.need(timeline.tails_of(context))
        self._host_has_waited(context)

    def _host_has_waited(self, waited: Stream | Context | DeviceState | None) -> None:
        """What follows comes after this, or after all if None, where accesses are compared."""
        if self._accesses is not None:
            self._accesses.host_waits_for(waited)

    def _finish_context_of(self, handle: int) -> None:
        """Let the work end of the context in which something was made, before it is freed.

        The driver waits for no other context then: measured. What another one still does with it
        goes wrong.
        """
        context = self._contexts.get(handle)
        if context is not None:
            self._finish_context(context)

    def _wait_for_context(self, context: Context) -> None:
        """Wait for all work of a context.

        Raises:
            Refusal: some of it failed.
        """
        timeline = self._timeline
        if timeline is not None:
            self._wait_for(timeline.tails_of(context), context)
        self._host_has_waited(context)
        self._synchronised(context)

    def _wait_for_stream(self, stream: Stream) -> None:
        """Wait for a stream, and for what it would wait for.

        Raises:
            Refusal: some of it failed.
        """
        timeline = self._timeline
        if timeline is not None:
            self._wait_for(timeline.tails(stream), stream.context)
        self._host_has_waited(stream)
        self._synchronised(stream.context)

    def _wait_for(self, operations: Iterable[Operation], context: Context) -> None:
        self._queued.need(operations)
        self._usable(context)
        self._late_errors.raise_kept(context)

    def _let_others_see(self, event: Event) -> None:
        """Let a record be reached that other processes may wait for: nothing of theirs can do it.

        So an event that is shared is always reached here; its waits elsewhere need no more.
        """
        if event.is_shared and event.operation is not None:
            need = partial(self._queued.need, [event.operation])
            if self._thread.is_nested:
                self._thread.after_this_call(partial(self._thread.within_a_call, need))
            else:
                need()

    def _is_pending(self, operations: Iterable[Operation], context: Context) -> bool:
        """Whether something of it is not done; asking again and again comes to an end.

        Raises:
            Refusal: some of it failed.
        """
        if self._queued.query(operations):
            return False
        self._usable(context)
        return True

    def _synchronised(self, context: Context) -> None:
        """Unused memory above the pool's threshold goes back; what was not executed is told.

        Raises:
            Refusal: an operation was not executed.
        """
        self._late_errors.raise_kept(context)
        with context.device.lock:
            for pool in tuple(context.device.account.pools.values()):
                pool.synchronised()
        if self._host_pools.by_handle:
            with self._lock:
                self._host_pools.synchronised()
