"""The driver's state of a thread: contexts, deferred calls, calls of host functions."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from ..driver._api import CUstream
from ..errors import CudaError

if TYPE_CHECKING:
    from .call_error import Failure
    from .contexts import Context
    from .native_thread import ThreadStates
    from .streams import Stream
    from .timeline.queues import QueuedOperation

LEGACY: Final = CUstream(1)
"""CU_STREAM_LEGACY."""
# An interrupt after a lock was taken may hide that.
_LOOK_AGAIN_S: Final = 0.05
_HostFunction: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DeferredCall(NamedTuple):
    """A call that is made after the outermost call of its thread.

    Attributes:
        stack: the thread's contexts when it was deferred.
        streams: the streams that it names, by their handles.
        contexts: the contexts that existed when it was deferred; empty if none of them matters.
        work: makes the call.
    """

    stack: tuple[Context, ...]
    streams: Mapping[int, Stream]
    contexts: Sequence[Context]
    work: Callable[[], object]

    @property
    def went_with_a_context(self) -> bool:
        """Whether another thread has destroyed a context meanwhile, perhaps that of the object.

        To the caller the object was destroyed before its context.
        """
        return any(context.destroyed for context in self.contexts)


_INITIAL: Final[Mapping[str, Callable[[], object]]] = {
    "stack": list,
    "put_off": deque,
    "depth": int,
}


class CallingThread(threading.local):
    """A thread's contexts, its last failed call, and its deferred calls.

    It has no `__init__`: a collection during it would call the driver with half of the state. A
    thread that C made keeps its state over several calls of Python (`native_thread.py`).

    Attributes:
        states: the state of each native thread; one object for all threads.
        stack: its contexts; the last is current.
        put_off: what is done after the outermost call.
        streams: the streams that a put-off call names, by their handles. Another thread may have
            destroyed them meanwhile.
        failure: its last failed call.
        runs_host_function: whether it runs one, which must make no calls.
        capture_mode: which captures keep it from unsafe calls, a CUstreamCaptureMode.
        depth: how many nested calls are under way.
        default_stream: the stream of copies and fills that name none: the legacy one, or the
            thread's own in calls of C functions with the suffix `_ptds`.
        executing: the stream whose operation runs at its call, without a queue.
        below: that operation, once a nested call has queued an operation or waited.
        makes_up: whether it makes calls that were put off.
    """

    __slots__ = ("states",)  # of all threads, unlike other attributes

    stack: list[Context]
    put_off: deque[DeferredCall]
    depth: int
    if TYPE_CHECKING:
        states: ThreadStates
    failure: Failure | None = None
    streams: Mapping[int, Stream] = MappingProxyType({})
    runs_host_function: bool = False
    capture_mode: int = 0
    default_stream: CUstream = LEGACY
    executing: Stream | None = None
    below: QueuedOperation | None = None
    makes_up: bool = False

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            if name not in _INITIAL:
                raise AttributeError(name)
            self.states.restore(self.__dict__)
            # A collection may come between the two steps, and set it first.
            return self.__dict__.setdefault(name, _INITIAL[name]())

    @property
    def is_nested(self) -> bool:
        """Return whether a signal handler or a finalizer called in the middle of another call.

        The functions of the emulator that queue or wait do not call each other.
        """
        return self.depth > 1

    def after_this_call(
        self,
        work: Callable[[], object],
        streams: Mapping[int, Stream] = MappingProxyType({}),
        contexts: Sequence[Context] = (),
    ) -> None:
        """Do something once the outermost call has ended, with the contexts of this moment.

        `work` also finds these streams, by their handles, if they have been destroyed by then. It
        may fail without a report if one of `contexts` has been destroyed by then.
        """
        self.put_off.append(DeferredCall(tuple(self.stack), streams, contexts, work))

    def within_a_call(self, work: Callable[[], object]) -> None:
        """Run a function as an unnested call would: calls that come meanwhile are nested."""
        depth = self.depth
        try:
            self.depth = depth + 1
            work()
        finally:
            self.depth = depth
            if not depth and self.put_off:
                self.make_up()

    def make_up(self) -> None:
        """Run deferred work, and work that is deferred meanwhile."""
        if self.makes_up:
            return
        try:
            self.makes_up = True
            while self.put_off:
                deferred = self.put_off.popleft()
                now, failure = self.stack, self.failure
                self.stack, self.streams = list(deferred.stack), deferred.streams
                was_broken = any(context.device.fault is not None for context in deferred.stack)
                try:
                    result = deferred.work()
                finally:
                    self.stack, self.failure = now, failure
                if isinstance(result, tuple) and result[0] and not deferred.went_with_a_context:
                    error = _rejection(deferred.work, result[0])
                    # The call that this one waited for returned the error, or a call of another
                    # thread that found the device broken first.
                    returned = failure is not None and failure.code == result[0]
                    if not (error.sticky and (was_broken or returned)):
                        _Unraisable(error)
        finally:
            self.makes_up = False
            self.streams = MappingProxyType({})

    def call_host(self, function: int, argument: int, *, here: bool = False) -> None:
        """Call a host function on a separate thread, and wait for it; hold no lock.

        The driver rejects the driver calls of the function, except those that need no
        initialisation (measured with driver 580). `here` calls it in this thread, as the driver
        does for the destructors of user objects that their owner releases.
        """
        host_function = _HostFunction(function)
        self.run_on_host(lambda: host_function(argument), here=here)

    def run_on_host(self, function: Callable[[], object], *, here: bool = False) -> None:
        """Run a function that makes no calls of the driver."""

        def run() -> None:
            try:
                try:
                    self.runs_host_function = True
                    function()
                finally:
                    self.runs_host_function = False
            except BaseException:
                self.runs_host_function = False  # an interrupt may come before that is done
                raise

        if here:
            run()
        else:
            _run_in_thread(run)


def _run_in_thread(run: Callable[[], None]) -> None:
    """Run on another thread until it ends, whatever interrupts the wait."""
    if sys.is_finalizing():
        run()  # the interpreter starts no threads any more
        return
    interrupt: BaseException | None = None
    host_thread = _HostThread(run)
    while True:
        try:
            host_thread.wait()
            break
        except BaseException as error:  # raised below, once the function has ended
            interrupt = error
    if interrupt is not None:
        raise interrupt


class _HostThread:
    """A thread that runs a function, once, though an interrupt may come while it is started."""

    def __init__(self, run: Callable[[], None]) -> None:
        self._left = [run]
        self._ended = threading.Lock()
        self._ended.acquire()
        self._is_started = self._is_over = False

    def wait(self) -> None:
        """Start the thread, and wait for its end; after an interrupt it may be called again."""
        while not self._is_over:
            if not self._is_started:
                try:
                    name = "CUDA host function"
                    threading.Thread(target=self._run, name=name, daemon=True).start()
                except RuntimeError:  # the process cannot start a thread
                    self._run()
                self._is_started = True
            self._ended.acquire(timeout=_LOOK_AGAIN_S)

    def _run(self) -> None:
        if not self._left:
            return  # an interrupt came after the start: another thread runs it
        try:
            self._left.pop()()
        finally:
            self._is_over = True
            self._ended.release()


class _Unraisable:
    """Passes an error that has no caller to sys.unraisablehook, by raising it in its finalizer."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __del__(self) -> None:
        raise self.error


def _rejection(call: Callable[[], object], code: int) -> CudaError:
    """Return the error of a deferred call, which has no caller."""
    name = call.func.__name__ if isinstance(call, partial) else ""
    doing = "giving back what a finalizer let go of in the middle of another call"
    return CudaError.for_code(int(code))(doing, call=name, code=int(code))
