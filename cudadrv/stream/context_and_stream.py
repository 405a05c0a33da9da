"""`Context`, `Stream` and `StreamPool`: they refer to each other, so they share one file.

What a stream does with memory, and what a context compiles and loads, stand in files of their own.

Lower layers, such as memory and launches, see only their bases, `BaseContext` and `BaseStream`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from ptx.read_only import ReadOnly

from .. import border, errors
from ..driver._api import CUcontext, CUresult, CUstream, CUstream_flags
from ..driver.call_gate import CAPTURE_WAIT_S
from ..driver.context import BaseContext, require_context
from ..driver.default_stream import DefaultStream
from ..driver.device import Device
from ..driver.driver_selection import current, failure
from ..driver.event import Event, event_at
from ..driver.handle import NotCopyable
from ..driver.stream import BaseStream, gate_of, own_stream
from ..driver.stream_handle import StreamHandle, private_stream, wait_by_way
from ..driver.types import CudaStream
from ..errors import ArgumentIndexError, ArgumentValueError, WrongDeviceError
from ..memory.driver_pool import open_pool
from ..memory.resource import MemoryResource, choose
from .context_modules import ContextModules
from .stream_memory import StreamMemory

if TYPE_CHECKING:
    from ..graph.capture import Capture, CaptureMode
    from ..graph.graph import Graph
    from ..graph.node import After


# Graphs, host functions and other libraries are imported where they are used: many programs do not
# need them. Together they take 4 ms.

_MOST_OF_A_POOL: Final = 4096
_NON_BLOCKING: Final = int(CUstream_flags.CU_STREAM_NON_BLOCKING)
_BLOCKING: Final = int(CUstream_flags.CU_STREAM_DEFAULT)


class Stream(StreamMemory):
    """A queue of work on one context's device; made by `Context.new_stream`.

    Work on a stream with memory of another stream runs after the work that the other one has queued
    for the memory. Use `unordered` to order streams yourself.

    Attributes:
        context: the context, kept alive by the stream.
        handle: the CUstream; reading it after `close` raises `ClosedError`.
        capturing: whether a capture records its work.
        closed: whether it was closed.
    """

    __slots__ = ()

    context: ReadOnly[Context] = ReadOnly("_context")

    def record(self, *, timing: bool = True) -> Event:
        """Return a new event at this point of the stream."""
        return event_at(self, timing)

    def __await__(self) -> Generator[Any, None, None]:
        """Wait in asyncio until the current work is done: ``await stream``.

        Raises:
            CudaError: some queued work failed.
        """
        return self.record(timing=False).__await__()

    def wait(self, event: Event | BaseStream | DefaultStream | CudaStream) -> None:
        """Let later work wait for an event, or for the current work of a stream.

        The stream may be another library's. As the driver defines it, an event that was never
        recorded is done, so that no work waits for it.
        """
        if isinstance(event, Event):
            self._wait_event(event)
        elif isinstance(event, (Stream, DefaultStream)):
            if event is not self:
                self._wait_event(event.record(timing=False))
        else:
            from ..interop.foreign import stream_handle
            from ..interop.ordering import order_after

            order_after(self, (stream_handle(event),))

    def call_on_host(self, function: Callable[..., object], *args: object) -> None:
        """Call ``function(*args)`` at this point of the stream, in a thread of the driver.

        Later work of the stream waits for it. It must not make CUDA calls, of any library, nor wait
        for code that does. Its errors are passed to `sys.unraisablehook`. In a capture it becomes a
        node of the graph, and is called at each replay.
        """
        border.function("Stream.call_on_host: function", function)
        from ..graph import host_function  # in two thirds of the time of importing a function

        host_function.call_on_host(self, function, args)

    def use_memory(self, resource: MemoryResource | None) -> None:
        """Let new memory of this stream come from a resource; None is its context's choice."""
        self._handle.raw  # noqa: B018  # raises once it is closed
        self._resource = choose("Stream.use_memory: resource", resource)

    def capture(
        self,
        *,
        mode: CaptureMode = "relaxed",
        into: Graph | None = None,
        after: After = (),
        wait_limit_s: float = CAPTURE_WAIT_S,
    ) -> Capture:
        """Record the stream's work in the block as a graph: ``with stream.capture() as graph:``.

        Args:
            mode: the calls that invalidate the capture: "relaxed" none, "thread_local" unsafe ones
                of this thread, such as cuMemAlloc, "global" those of any thread.
            into: a graph that receives the recorded work, such as a body of a conditional node;
                None is a new one.
            after: the nodes of `into` that the recorded work comes after.
            wait_limit_s: the seconds that work of another thread on the stream waits for the end of
                the capture before it raises StreamCaptureIsolationError, and that the capture waits
                for their calls under way before it begins, or raises.
        """
        from ..graph.capture import Capture

        context = self.context
        return Capture(self, lambda: context.default_stream, mode, into, after, wait_limit_s)

    def _wait_event(self, event: Event) -> None:
        """Wait for an event, which may make the stream join the capture it was recorded in."""
        handle, event_handle = self._handle, event._handle
        capture = event_handle.capture
        if event._interprocess and event.context.ordinal != self.context.ordinal:
            wait_by_way(handle, event_handle)
            return
        if capture is not None:
            event_handle.require_outside()
        if capture is None or not capture.is_open or handle.capture is not None:
            handle.wait(event_handle)
            return
        try:
            self._join_capture(capture)
            self._handle.wait(event_handle)
        except BaseException:
            capture.dismiss(handle)
            raise


class _ExternalStream(Stream):
    """A stream of another library, equal to all objects for the same one while both are open."""

    __slots__ = ("_number",)

    _number: int

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, _ExternalStream):
            return self is other
        is_same = self._number == other._number and self.context is other.context
        return is_same and not self.closed and not other.closed

    def __hash__(self) -> int:
        return hash(self._number)


class StreamPool(NotCopyable):
    """Streams of one context, handed out in turn; made by `Context.new_stream_pool`.

    Threads may take streams concurrently. ``with`` closes them at its end.
    """

    __slots__ = ("_numbers", "_streams")

    def __init__(self, streams: Sequence[Stream]) -> None:
        border.sequence_of("StreamPool: streams", streams, Stream)
        self._streams = tuple(streams)
        if not self._streams:
            raise ArgumentValueError("StreamPool: streams is empty: give one or more")
        self._numbers = itertools.count()

    def __repr__(self) -> str:
        return f"<StreamPool of {len(self)} streams>"

    def __len__(self) -> int:
        return len(self._streams)

    def __getitem__(self, number: int) -> Stream:
        index = border.integer("StreamPool: number", number)
        if not -len(self) <= index < len(self):
            raise ArgumentIndexError(f"{self!r} has no stream {index}")
        return self._streams[index]

    def __iter__(self) -> Iterator[Stream]:
        return iter(self._streams)

    def __enter__(self) -> StreamPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def next_stream(self) -> Stream:
        """Return the next stream in turn. It stays the pool's: closing it closes it for all."""
        return self._streams[next(self._numbers) % len(self._streams)]

    def fork(self, stream: Stream) -> None:
        """Let all of them wait for the current work of a stream."""
        border.instance_of("StreamPool.fork: stream", stream, Stream)
        event = stream.record(timing=False)
        for member in self._streams:
            member.wait(event)

    def join(self, stream: Stream) -> None:
        """Let a stream wait for the current work of all of them."""
        border.instance_of("StreamPool.join: stream", stream, Stream)
        for member in self._streams:
            stream.wait(member)

    def synchronize(self) -> None:
        """Wait until everything queued on them is done.

        Raises:
            CudaError: some queued work failed.
        """
        for stream in self._streams:
            stream.synchronize()

    def close(self) -> None:
        """Close the streams. Idempotent."""
        for stream in self._streams:
            stream.close()


class Context(ContextModules):
    """A CUDA context: the owner of streams, modules and memory.

    `cuda_context_for` returns the primary one of a device, which PyTorch, CuPy and the runtime API
    share. `Context.create` makes a separate one, which is destroyed when it is closed and nothing
    of it is left.

    Attributes:
        device: the device.
        is_primary: whether it is the device's primary context, which stays until it is reset.
        handle: the CUcontext; reading it after `close` raises `ClosedError`.
        closed: whether it was closed.
    """

    __slots__ = ("_default_stream",)

    def __init__(self, device: Device, handle: CUcontext | None, *, is_primary: bool) -> None:
        super().__init__(device, handle, is_primary=is_primary)
        self._default_stream: Stream | None = None

    def _mark_closed(self, cause: str = "") -> None:
        self._default_stream = None  # so that a use of it raises
        super()._mark_closed(cause)

    @property
    def default_stream(self) -> Stream:
        """The context's own stream, made on first use.

        It synchronises with the legacy default stream, so that its work is in order with work that
        other libraries queue there. Unlike that stream it identifies its device. The one of a green
        context does not synchronise with other streams.
        """
        stream = self._default_stream
        if stream is None:
            with self.device.driver.lock:
                stream = self._default_stream
                if stream is None:
                    stream = self._make_stream(_BLOCKING, 0, is_default=True)
                    self._default_stream = stream
        return stream

    @property
    def legacy_stream(self) -> DefaultStream:
        """The context's legacy default stream, which other libraries may use."""
        self._handle.raw  # noqa: B018  # raises once it is closed
        return DefaultStream(self, is_per_thread=False)

    @property
    def per_thread_stream(self) -> DefaultStream:
        """The default stream of this context and the calling thread, different for each caller."""
        self._handle.raw  # noqa: B018  # raises once it is closed
        return DefaultStream(self, is_per_thread=True)

    def new_stream(self, *, priority: int = 0, blocking: bool = False) -> Stream:
        """Return a stream that runs concurrently with the others.

        Args:
            priority: lower runs first; the driver clamps it to `priority_range`.
            blocking: whether it and the legacy default stream wait for each other; streams of
                green contexts do not.
        """
        if blocking and self.is_green:
            raise errors.ArgumentValueError(
                f"a blocking stream on {self!r}: those of green contexts wait for no legacy stream"
            )
        if type(priority) is not int or priority:
            where = "Context.new_stream: priority"
            priority = border.int_in_range(where, priority, -(2**31), 2**31 - 1)
        return self._make_stream(_BLOCKING if blocking else _NON_BLOCKING, priority)

    def new_stream_pool(self, size: int, *, priority: int = 0) -> StreamPool:
        """Return several streams, to be used in turn."""
        size = border.int_in_range(
            "Context.new_stream_pool: size", size, least=1, most=_MOST_OF_A_POOL
        )
        with ExitStack() as stack:
            streams = [stack.enter_context(self.new_stream(priority=priority)) for _ in range(size)]
            stack.pop_all()
        return StreamPool(streams)

    def external_stream(self, stream: CudaStream | int) -> Stream:
        """Return another library's stream as one of this context; the library still owns it.

        Closing the result, or leaving its block, releases the stream and does not destroy it.

        Args:
            stream: an object with ``__cuda_stream__``, as streams of CuPy, PyTorch and cuda.core,
                or a CUstream or its number. It must live until the result is closed, or until the
                result and the memory used on it are freed. A `Stream` of this context lives until
                then, also if you close it. The legacy default stream, 0 or 1,
                returns `default_stream`, which keeps its order and closes with its context.

        Raises:
            WrongDeviceError: it belongs to another context.
            InvalidValueError: it is the per-thread default stream, which has no context of its own.
            TypeError: it is not a stream.
        """
        if self._default_stream is not None and stream is self._default_stream:
            return self._default_stream
        from ..interop.foreign import stream_handle

        is_own = isinstance(stream, Stream) and stream.context is self
        number = stream_handle(stream)
        if number in (0, 1):
            return self.default_stream
        if number == 2:
            raise errors.InvalidValueError(
                "wrapping the per-thread default stream as a stream of one context\n"
                "  each thread and context has its own: use new_stream"
            )
        if not is_own:
            self._reject_stream_of_another(number)
        known = own_stream(self._handle.driver, number)
        handle = StreamHandle(self._handle, CUstream(number), is_owned=False, keeps=(stream, known))
        handle.gate = gate_of(handle) if known is None else known.gate
        external = _ExternalStream(self, handle)
        external._number = number
        return external

    def _reject_stream_of_another(self, number: int) -> None:
        code, owner = self._api.cuStreamGetCtx(CUstream(number))
        if code:
            raise failure(self._api, code, "cuStreamGetCtx", f"wrapping {number:#x} as a stream")
        if int(owner) != int(self.handle):
            raise WrongDeviceError(f"stream {number:#x} belongs to another context than {self!r}")

    def _make_stream(self, flags: int, priority: int, *, is_default: bool = False) -> Stream:
        handle = self._handle
        if flags == _NON_BLOCKING and priority == 0 and handle.green is None:
            return Stream(self, private_stream(handle))
        owned = StreamHandle(handle, None, is_owned=True)
        call = "cuStreamCreateWithPriority"
        if handle.green is None:
            code = owned.make(handle.api.cuStreamCreateWithPriority, flags, priority)
        else:
            call = "cuGreenCtxStreamCreate"
            code = owned.make(
                handle.api.cuGreenCtxStreamCreate, handle.green, _NON_BLOCKING, priority
            )
        if code:
            raise failure(handle.api, code, call, f"a stream on {self!r}")
        return Stream(self, owned, is_default=is_default)

    def use_memory(self, resource: MemoryResource | None) -> None:
        """Let new memory of its streams come from a resource; None restores the driver's pool."""
        self._handle.raw  # noqa: B018  # raises once it is closed
        self._resource = choose("Context.use_memory: resource", resource)

    def new_graph(self) -> Graph:
        """Return an empty graph, for adding nodes one by one."""
        from ..graph.graph import Graph

        return Graph._new(self, lambda: self.default_stream)

    def enable_peer_access(self, other: BaseContext) -> None:
        """Let kernels of this context use memory of another device's context in place.

        This is one way; the other way needs a call of its own. It is permanent. Uses are ordered
        and memory is kept alive as on one device. Copies between devices need no call. The other
        device's pool is opened to this device for the whole process. Idempotent.

        Raises:
            PeerAccessUnsupportedError: the hardware does not connect the two devices in that way.
        """
        peer = require_context("Context.enable_peer_access: other", other)._handle
        handle = self._handle
        raw = peer.raw
        if handle.reaches(peer):
            return
        doing = f"enabling peer access of {self!r} to {other!r}"
        code = handle.call(self._api.cuCtxEnablePeerAccess, raw, 0)[0]
        if code and code != CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED:
            raise failure(self._api, code, "cuCtxEnablePeerAccess", doing)
        open_pool(other.device, self.device)
        handle.peers.add(peer)

    def reset(self) -> None:
        """Destroy all objects of the device's primary context in this process.

        The context and its streams, arrays, modules, graphs and all other objects are closed, and
        raise `ClosedError` from now on; `cuda_context_for` returns a new one. Objects of other
        libraries, such as tensors of PyTorch, are destroyed under them. Nothing else may use the
        device meanwhile. A failure that has broken the context remains: restart the process.

        Raises:
            ResetRejectedError: a stream captures, or arrays of pinned or managed memory that were
                made in the context are in use; nothing was closed.
            InvalidValueError: it is not a primary context: close other contexts instead.
            CudaError: work on it has failed, or the driver reported an error.
        """
        from .reset import reset

        self._handle.raw  # noqa: B018  # raises once it is closed
        reset(self)


def cuda_context_for(ordinal: int) -> Context:
    """Return the primary context of a device, current on the calling thread.

    Each process has one per ordinal, shared by all threads. It is bound at each call, whichever
    context another library made current in between.

    Raises:
        DriverNotFoundError: there is no CUDA driver.
        InvalidDeviceError: there is no device of this ordinal.
    """
    context = current().cache(Context).get(ordinal) if type(ordinal) is int else None
    if context is None:
        context = Context._primary_of(Device.get(ordinal))
    context.bind()
    return context
