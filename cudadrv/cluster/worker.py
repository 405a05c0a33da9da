"""A worker: it makes the calls of requests on its device, in a process of an engine.

`serve` is the main loop of a process of `GpuExecutor.local`: one call after the other, until the
parent ends it.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, Final, cast

from ptx.standard_streams import flush_output, write_error

from ..driver.device import Device
from ..driver.driver_selection import current_or_none
from ..errors import CudadrvError
from ..memory.driver_pool import request_release_threshold
from ..memory.pinned import HostHandle
from ..memory.registered import registered_in
from ..pool.tile import Workplace
from ..pool.workers import Job
from ..stream import cuda_context_for
from .call import Reply, Request, ReturnMode, cache_by_digest, this_process
from .pickled import PickledError, PickledValue
from .shared_arrays import (
    CAN_SHARE,
    MAX_REUSED_BYTES,
    Bytes,
    NotSharedError,
    Segment,
    SharedArrays,
)
from .worker_report import WorkerReport, report_of

_POOL_BYTES: Final = 256 << 20  # of the device's memory, cached from tile to tile
_WATCH_SECONDS: Final = 0.25
_HUNG_STATUS: Final = 86  # the exit status of a worker that ends itself
_MIN_PINNED_BYTES: Final = 1 << 18
_MAX_SEGMENTS: Final = 2  # the parent uses two of them in turn


@dataclass(slots=True)
class _MappedSegment:
    """A segment of the parent.

    Attributes:
        memory: its bytes.
        uses: how often it was used.
        pinned: keeps it pinned, if it is.
    """

    memory: Bytes
    uses: int = 0
    pinned: HostHandle[int] | None = None


class MappedSegments:
    """The parent's shared memory in a worker, mapped once and reused from call to call.

    Mapping a segment anew touches each of its pages, which takes as long as copying it. A segment
    that is used a second time is pinned, so that copies to the device and back run at full speed.

    Args:
        ordinal: the device.
    """

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal
        self._mappings: dict[str, _MappedSegment] = {}
        self._can_pin = True

    def arrays(self, shared: SharedArrays) -> list[Bytes]:
        """Return the shared arrays; the parent sees changes.

        Raises:
            NotSharedError: the parent is on another host, or has ended.
            CudadrvError: the device cannot be used.
        """
        mapping = self._mappings.pop(shared.name, None) or _MappedSegment(shared.mapped())
        mapping.uses += 1
        if mapping.memory.size <= MAX_REUSED_BYTES:
            self._mappings[shared.name] = mapping  # after the others
            for former in list(self._mappings)[:-_MAX_SEGMENTS]:
                del self._mappings[former]
            if mapping.uses == 2 and mapping.memory.size >= _MIN_PINNED_BYTES:
                self._pin(mapping)
        return shared.within(mapping.memory)

    def _pin(self, mapping: _MappedSegment) -> None:
        if not self._can_pin:
            return
        context = cuda_context_for(self._ordinal)
        try:
            mapping.pinned = registered_in(context._handle, mapping.memory)
        except CudadrvError as error:
            self._can_pin = False
            warnings.warn(
                f"tiles are copied to {context!r} from memory that is not pinned, and slower: "
                f"{error}",
                RuntimeWarning,
                stacklevel=2,
            )


class RequestHandler:
    """A process, or one of Dask's workers, that executes the calls of requests on its device.

    Args:
        name: the worker's name.
        ordinal: the device.
        share: returns shared memory of a size, for results.
    """

    def __init__(
        self, name: str, ordinal: int, share: Callable[[int], Segment] | None = None
    ) -> None:
        self.name: str = name
        self.ordinal: int = ordinal
        self._share = share
        # The code of functions that were not unpickled yet, or cannot be.
        self._functions: dict[str, bytes | Callable[..., object]] = {}
        self._segments = MappedSegments(ordinal)
        self._of_thread = threading.local()

    @property
    def is_broken(self) -> bool:
        """Return whether an error has left a context of the process unusable."""
        driver = current_or_none()
        return driver is not None and driver.has_failed

    def reply_to(self, request: Request) -> Reply:
        """Execute the call. An error that it raises is in the reply."""
        value: PickledValue | None = None
        error: PickledError | None = None
        began, was_called = time.perf_counter(), True
        watch = self._watch(request)
        try:
            value = self._call(request)
        except NotSharedError:
            was_called = False
        except BaseException as raised:
            error = PickledError.of(raised, self.name)
        finally:
            if watch is not None:
                watch.cancel()
        # Nothing could replace the caller's own process.
        is_broken = self.is_broken and request.caller != this_process()
        seconds = time.perf_counter() - began
        return Reply(value, error, is_broken, was_called, self.name, self.ordinal, seconds)

    def not_called(self) -> Reply:
        """Return the reply of a worker whose context was lost before the call."""
        return Reply(None, None, True, False, self.name, self.ordinal, 0.0)

    def _call(self, request: Request) -> PickledValue | None:
        function = self._function(request)  # first: it also caches broken pickles
        pickled = request.arguments
        if pickled.shared is None:
            arguments = pickled.value()
        else:
            arguments = pickled.over(self._segments.arrays(pickled.shared))
        args, kwargs = cast("tuple[tuple[object, ...], dict[str, object]]", arguments)
        if request.items:
            function = partial(function, self.ordinal)
        # A tile of a scatter within a process: its context is current, and it may have a stream.
        job = Job(self.ordinal, request.items, partial(function, *args, **kwargs))
        job.do(self._workplace())
        job.finish()
        if job.error is not None:
            raise job.error
        if request.returns is ReturnMode.NOTHING:
            return None
        value = args[0] if request.returns is ReturnMode.ITEMS else job.result
        return PickledValue.of(value, self._share)

    def _function(self, request: Request) -> Callable[..., object]:
        digest = request.function
        function = self._functions.get(digest, request.code)
        assert function is not None, "the caller knows which functions a worker has"
        if isinstance(function, bytes):
            # Cached even if it cannot be unpickled here: the caller does not send it again.
            cache_by_digest(self._functions, digest, function)
            function = cast("Callable[..., object]", pickle.loads(function))
            self._functions[digest] = function
        return function

    def _workplace(self) -> Workplace:
        workplace = getattr(self._of_thread, "workplace", None)
        if workplace is None:
            workplace = self._of_thread.workplace = Workplace()
        return cast(Workplace, workplace)

    def _watch(self, request: Request) -> threading.Timer | None:
        """Start the timer that ends the process if the call takes too long."""
        if request.seconds is None or request.caller == this_process():
            return None
        watch = threading.Timer(request.seconds, self._end, (request.seconds,))
        watch.daemon = True
        watch.start()
        return watch

    def _end(self, seconds: float) -> None:
        write_error(f"cudadrv: worker {self.name} hung for {seconds} s: it ends\n")
        os._exit(_HUNG_STATUS)


def serve(number: int, parent: int) -> None:
    """Execute the calls that the parent sends through a socket.

    The parent sends two calls at most before it has read the reply to the first. So a reply's
    shared memory is free again after one more call.

    Args:
        number: the socket's file number.
        parent: the process that started this one.
    """
    # Ctrl-C reaches all processes of a terminal: the parent decides how to react.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = Connection(number)
    messages: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(
        target=_read, args=(connection, parent, messages), name="cudadrv parent", daemon=True
    ).start()
    ordinal, profile = pickle.loads(messages.get())
    hello = _hello(ordinal, profile)
    connection.send_bytes(pickle.dumps(hello, 5))
    if not isinstance(hello, WorkerReport):
        return
    shared: deque[list[Segment]] = deque([[], []], maxlen=2)  # of the last two replies

    def share(nbytes: int) -> Segment:
        segment = Segment(nbytes)
        shared[-1].append(segment)
        return segment

    handler = RequestHandler(hello.name, ordinal, share if CAN_SHARE else None)
    while message := messages.get():
        shared.append([])
        request = pickle.loads(message)
        assert isinstance(request, Request)
        reply = handler.reply_to(request)
        del message, request
        flush_output()
        connection.send_bytes(pickle.dumps(reply, 5))
        if reply.is_broken:
            return  # and begin no call that was sent after it
        del reply


def _read(connection: Connection, parent: int, messages: SimpleQueue[bytes]) -> None:
    """Read the parent's messages; end this process when the parent has ended, however it ended.

    The socket reports that at once, unless a forked child of the parent holds its other end.
    """
    try:
        while os.getppid() == parent:
            if connection.poll(_WATCH_SECONDS):
                messages.put(connection.recv_bytes())
    except (EOFError, OSError):
        pass
    os._exit(1)


def _hello(ordinal: int, profile: dict[str, Any] | None) -> WorkerReport | PickledError:
    """Open the device, or emulate one from the fields of an `EmulatedDevice`."""
    try:
        if profile is not None:
            # A process on a GPU need not import these.
            from ..emulator import EmulatedDevice, use

            use([EmulatedDevice(**profile)])
        # Otherwise each tile's memory is freed where the tile waits for its stream.
        request_release_threshold(Device.get(ordinal), _POOL_BYTES)
        return report_of(ordinal)
    except Exception as error:
        return PickledError.of(error, f"process {os.getpid()}")
