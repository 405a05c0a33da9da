"""`Context`, `Stream` and `StreamPool`: they refer to each other, so they share one file.

Lower layers, such as memory and launches, see only their bases, `BaseContext` and `BaseStream`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

import numpy as np

import ptx
from ptx.read_only import ReadOnly

from .. import border, errors
from ..driver._api import CUcontext, CUresult, CUstream, CUstream_flags
from ..driver.call_gate import CAPTURE_WAIT_S
from ..driver.context import BaseContext, require_context
from ..driver.default_stream import DefaultStream
from ..driver.device import Device, driver_version
from ..driver.driver_selection import current, failure
from ..driver.event import Event
from ..driver.handle import NotCopyable
from ..driver.stream import BaseStream, gate_of
from ..driver.stream_handle import StreamHandle, wait_by_way
from ..driver.types import CudaStream
from ..errors import ArgumentIndexError, ArgumentValueError, CopyError, WrongDeviceError
from ..memory.array import (
    C_ORDER,
    AnyDeviceArray,
    DeviceArray,
    empty as new_array,
    empty_pitched as new_pitched,
    is_fortran,
)
from ..memory.assign import assign
from ..memory.buffer import DeviceBuffer, alloc, owning
from ..memory.copy import (
    contiguous as new_contiguous,
    copy as copy_memory,
    copy_of_host,
    download_any,
)
from ..memory.driver_pool import open_pool
from ..memory.dtypes import TypedDType
from ..memory.fill import fill
from ..memory.host_copy import as_array, require_plain, upload
from ..memory.layout import Shape, checked_shape
from ..memory.managed import is_managed
from ..memory.resource import MemoryResource, choose
from ..memory.reuse.host_results import host_result
from ..memory.staging import LEAST_STAGED_BYTES

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..graph.capture import Capture, CaptureMode
    from ..graph.graph import Graph
    from ..graph.node import After
    from ..launch.images import ImageLike
    from ..launch.jit_options import JitOptions
    from ..launch.linking import LinkerName
    from ..launch.module_and_kernel import Kernel, Module
    from ..memory.copy_batch import CopySide, SourceOrder
    from ..memory.managed import Attachment


# Imported where they are used: graphs, host functions and other libraries, which many programs do
# not need. Together they take 4 ms.

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
_MOST_OF_A_POOL: Final = 4096
_NON_BLOCKING: Final = int(CUstream_flags.CU_STREAM_NON_BLOCKING)
_BLOCKING: Final = int(CUstream_flags.CU_STREAM_DEFAULT)


class Stream(BaseStream):
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

    context: ReadOnly[Context]

    def record(self, *, timing: bool = True) -> Event:
        """Return a new event at this point of the stream."""
        event = Event(self.context, timing=timing)
        event.record(self)
        return event

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

    # `alloc`, `empty` and `copy` are the functions themselves: one call less per array.
    alloc = alloc

    if TYPE_CHECKING:

        @overload
        def empty(
            self, shape: Shape, dtype: TypedDType[_ScalarT], order: str = "C"
        ) -> DeviceArray[_ScalarT]: ...
        # A dtype given as text has no static type.
        @overload
        def empty(
            self, shape: Shape, dtype: npt.DTypeLike, order: str = "C"
        ) -> DeviceArray[Any]: ...
        def empty(self, shape: Shape, dtype: npt.DTypeLike, order: str = "C") -> DeviceArray[Any]:
            """Return an uninitialised device array; in order "F" the first axis is innermost."""

        @overload
        def empty_pitched(
            self, shape: Shape, dtype: TypedDType[_ScalarT]
        ) -> DeviceArray[_ScalarT]: ...
        @overload
        def empty_pitched(self, shape: Shape, dtype: npt.DTypeLike) -> DeviceArray[Any]: ...
        def empty_pitched(self, shape: Shape, dtype: npt.DTypeLike) -> DeviceArray[Any]:
            """Return an uninitialised device array whose rows begin at multiples of 512 bytes."""

        def contiguous(self, array: DeviceArray[_ScalarT]) -> DeviceArray[_ScalarT]:
            """Return the array if it is contiguous in C order, else such a copy.

            Raises:
                WrongDeviceError: the array is of another context.
            """
    else:
        empty, empty_pitched, contiguous = new_array, new_pitched, new_contiguous

    @overload
    def zeros(
        self, shape: Shape, dtype: TypedDType[_ScalarT], order: str = "C"
    ) -> DeviceArray[_ScalarT]: ...
    @overload
    def zeros(self, shape: Shape, dtype: npt.DTypeLike, order: str = "C") -> DeviceArray[Any]: ...
    def zeros(self, shape: Shape, dtype: npt.DTypeLike, order: str = "C") -> DeviceArray[Any]:
        """Return a device array of zeros; in the order "F" the first axis is innermost."""
        if order is not C_ORDER and is_fortran(order):
            return owning(self.zeros(checked_shape(shape)[::-1], dtype).T)
        array = self.empty(shape, dtype)
        if array._nbytes:
            handle, pointer = self._handle, array._pointer or array._make_pointer()
            function, passes = handle.context._driver.api.cuMemsetD8Async, handle.passes
            try:
                mine = passes.pop()  # as `submit` does, at half the cost
            except IndexError:
                mine, passes = handle.gate.enter(), handle.passes
            try:
                (code,) = function(pointer, 0, array._nbytes, handle.raw)
            finally:
                passes.append(mine)
            if code:
                raise failure(handle.api, code, "cuMemsetD8Async", f"zeroing {array.nbytes} bytes")
        return array

    @overload
    def to_device(
        self, array: npt.NDArray[_ScalarT], order: str = "C"
    ) -> DeviceArray[_ScalarT]: ...
    @overload
    def to_device(self, array: npt.ArrayLike, order: str = "C") -> DeviceArray[Any]: ...
    def to_device(self, array: npt.ArrayLike, order: str = "C") -> DeviceArray[Any]:
        """Copy a host array of any strides to a new device array, in the order "C" or "F".

        The host array may be changed as soon as this returns.

        Raises:
            CopyError: it has masked elements.
            DTypeError: its elements are Python objects.
        """
        source = array if type(array) is np.ndarray else as_array(array)
        if order is not C_ORDER and is_fortran(order):
            return owning(self.to_device(source.T).T)
        # A graph reads its array at each replay: it gets a copy of its own.
        if self.capturing:
            source = np.array(source, order="C")
        result = self.empty(source.shape, source.dtype)
        if source.base is not None and is_managed(source):
            copy_of_host(self, result, source)
        else:
            upload(self, result, source)
        return result

    def to_host(
        self,
        array: DeviceArray[_ScalarT],
        out: npt.NDArray[_ScalarT] | None = None,
        *,
        wait: bool = True,
    ) -> npt.NDArray[_ScalarT]:
        """Copy a device array of any strides to the host, into `out` if given; waits for it.

        Args:
            array: the device array.
            out: a host array of its shape and dtype, of any strides.
            wait: whether to wait for a pinned C-contiguous `out`; without it the values are
                complete once the stream is synchronised. Other arrays are always waited for. A
                capture cannot wait: without it the copy is recorded, and each replay writes the
                array.

        Raises:
            CopyError: `out` has another shape or dtype, or is read-only.
        """
        if type(array) is not DeviceArray:
            border.instance("Stream.to_host: array", array, DeviceArray)
        if out is not None and type(out) is not np.ndarray:
            require_plain(border.instance("Stream.to_host: out", out, np.ndarray))
        if out is None:
            try:
                if array._nbytes < LEAST_STAGED_BYTES or not self._handle.driver.keeps_blocks:
                    out = np.empty(array._shape, array._dtype)
                else:
                    out = host_result(array.shape, array.dtype, array.nbytes)
            except ValueError as error:  # NumPy has fewer axes
                raise CopyError(f"{array!r} has no counterpart on the host: {error}") from None
        elif out.shape != array._shape or not (
            out.dtype is array._dtype or out.dtype == array._dtype
        ):
            raise CopyError(
                f"out is {out.shape} {out.dtype}, the device array {array.shape} {array.dtype}: "
                "both must have one shape and dtype"
            )
        download_any(self, out, array, wait)
        return out

    copy = copy_memory

    def copy_batch(
        self,
        pairs: Iterable[tuple[CopySide, CopySide]],
        *,
        source_order: SourceOrder = "stream",
        source_location: int | str | None = None,
        target_location: int | str | None = None,
        wait: bool = True,
    ) -> None:
        """Copy many pairs of arrays at once, which is faster than `copy` of each.

        The copies run in no defined order: no copy may read or write what another one writes. A
        kernel makes small copies within the context's memory, unless there are few, the order is
        "call", or a location is given. One call of the driver makes the others.

        Args:
            pairs: destinations and sources, as `copy` takes them; host arrays, and what is copied
                from or to them, are contiguous in C order.
            source_order: when the sources may be read. "stream" is after the stream's earlier work,
                "call" before this function returns, "any" at any time: the sources then have their
                values already, and keep them until the copies are done.
            source_location: a hint for managed sources: the ordinal of a device, or "host".
            target_location: the same for the destinations.
            wait: whether to wait for pinned host arrays, as `copy` does. Other host arrays are
                always waited for. With the order "call", sources need no wait.

        Raises:
            CopyError: the two sides of a pair do not match or overlap, a copy from or to the host
                is strided, or one of device arrays is of more than 1,024 boxes.
            WrongDeviceError: the stream belongs to neither side's device.
            StreamCaptureUnsupportedError: the stream is capturing.
            UnsupportedError: the driver makes copies, and it or the bindings are older than
                CUDA 12.8.
        """
        from ..memory.copy_batch import copy_batch

        copy_batch(
            self,
            pairs,
            source_order=source_order,
            source_location=source_location,
            target_location=target_location,
            wait=wait,
        )

    def assign(self, dst: AnyDeviceArray, value: object) -> None:
        """Assign elements from another array, or one value, as `dst[...] = value` does.

        A device or host array is broadcast to the shape, by NumPy's rules. Host values of another
        dtype are converted if NumPy calls that "same kind", integers if they are in range. One
        value is converted as by `fill`.

        Raises:
            CopyError: the shapes do not fit.
            DTypeError: the values have another dtype, which cannot be cast to the array's.
            InvalidValueError: an element cannot hold the value unchanged.
        """
        assign(self, dst, value)

    def fill(self, dst: AnyDeviceArray | DeviceBuffer | npt.NDArray[Any], value: object) -> None:
        """Set every element of an array, or every byte of a buffer, to `value`.

        Host arrays in pinned, registered or managed memory are filled in place, after the earlier
        work of the stream. This waits for them; a capture cannot.

        Raises:
            CopyError: the host array is in ordinary memory, or read-only.
            InvalidValueError: an element cannot hold the value unchanged.
        """
        fill(self, dst, value)

    def import_array(self, value: object) -> AnyDeviceArray:
        """Return an array over another library's memory, by DLPack or the CUDA array interface.

        Nothing is copied. This stream is ordered after the work that the memory waits for. The
        producer orders it, or this waits for the stream that DLPack's exchange functions report, if
        the type has them. Let the other library's stream wait for this one before it uses the
        memory again. The object stays alive as long as the array, and until the work queued with it
        is done. The array is read-only if the object says so: then copies to it and fills raise,
        and kernels take it for pointers to const alone.

        Raises:
            CopyError: it has a mask, or its bytes are not its values, as of a negated view.
            DTypeError: neither NumPy nor a loaded ml_dtypes has such a dtype.
            TypeError: it is not a device array.
            WrongDeviceError: the memory lies on another device.
        """
        from ..interop.foreign import import_array

        return import_array(self, value)

    @overload
    def in_place(self, array: npt.NDArray[_ScalarT]) -> DeviceArray[_ScalarT]: ...
    @overload
    def in_place(self, array: npt.NDArray[Any]) -> DeviceArray[Any]: ...
    def in_place(self, array: npt.NDArray[Any]) -> DeviceArray[Any]:
        """Return a device array over a pinned, registered or managed host array, without a copy.

        Strides are arbitrary. The host array stays alive as long as the device array, and until the
        work queued with it is done. The host must not access it meanwhile. The array of a read-only
        one is read-only.

        Raises:
            CopyError: it is in ordinary memory.
        """
        from ..memory.managed import on_device

        return on_device(self, array)

    def prefetch(
        self, array: npt.NDArray[Any] | AnyDeviceArray, to: int | str | None = None
    ) -> None:
        """Move managed memory to where it is used next, in the order of the stream.

        Args:
            array: a C-contiguous array of `managed_empty`, or a part, or `in_place` of it.
            to: the ordinal of a device, or "host"; None is the stream's device.

        Raises:
            InvalidValueError: it is not managed memory.
            InvalidDeviceError: the device does not prefetch, or does not exist.
        """
        from ..memory.managed import prefetch

        prefetch(self, array, to)

    def prefetch_batch(
        self,
        arrays: Iterable[npt.NDArray[Any] | AnyDeviceArray],
        to: int | str | None = None,
        *,
        discard: bool = False,
    ) -> None:
        """Move several managed arrays in one call of the driver; otherwise as `prefetch`.

        Args:
            arrays: arrays as `prefetch` takes them.
            to: the ordinal of a device, or "host"; None is the stream's device.
            discard: whether the content is no longer needed, so that the driver need not move it.

        Raises:
            InvalidValueError: an array is not in managed memory.
            UnsupportedError: the driver or the bindings are older than CUDA 13.0.
        """
        from ..memory.managed import prefetch_batch

        self._handle.raw  # noqa: B018  # raises once it is closed
        prefetch_batch(self, arrays, to, discard)

    def discard_batch(self, arrays: Iterable[npt.NDArray[Any] | AnyDeviceArray]) -> None:
        """Let managed arrays have undefined content, which the driver need not move any more.

        Write the arrays, or prefetch them, before they are read again.

        Args:
            arrays: arrays as `prefetch` takes them.

        Raises:
            InvalidValueError: an array is not in managed memory.
            UnsupportedError: the driver or the bindings are older than CUDA 13.0.
        """
        from ..memory.managed import discard_batch

        discard_batch(self, arrays)

    def attach(self, array: npt.NDArray[Any], to: Attachment) -> None:
        """Set the streams that may use managed memory during kernels, in the order of the stream.

        For devices without `CONCURRENT_MANAGED_ACCESS`, where the host may access managed memory
        only while no kernel may use it.

        Args:
            array: an array of `managed_empty`, as a whole.
            to: all streams, the host, or this stream alone.
        """
        from ..memory.managed import attach

        attach(self, array, to)

    def call_on_host(self, function: Callable[..., object], *args: object) -> None:
        """Call ``function(*args)`` at this point of the stream, in a thread of the driver.

        Later work of the stream waits for it. It must not make CUDA calls, of any library, nor wait
        for code that does. Its errors are passed to `sys.unraisablehook`. In a capture it becomes a
        node of the graph, and is called at each replay.
        """
        border.function("Stream.call_on_host: function", function)
        from ..graph.host_function import call_on_host

        call_on_host(self, function, args)

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
                the capture before it raises StreamCaptureIsolationError.
        """
        from ..graph.capture import Capture

        context = self.context
        return Capture(self, lambda: context.default_stream, mode, into, after, wait_limit_s)

    def _wait_event(self, event: Event) -> None:
        """Wait for an event, which may make the stream join the capture it was recorded in."""
        handle, event_handle = self._handle, event._handle
        capture = event_handle.capture
        if event.interprocess and event.context.ordinal != self.context.ordinal:
            wait_by_way(handle, event_handle)
            return
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


# Signatures show them as methods; their modules know only the base of streams.
for _function in (alloc, copy_memory, new_array, new_pitched, new_contiguous):
    _function.__annotations__.pop("self", None)


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
        border.several("StreamPool: streams", streams, Stream)
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
        """Return the next stream in turn."""
        return self._streams[next(self._numbers) % len(self._streams)]

    def fork(self, stream: Stream) -> None:
        """Let all of them wait for the current work of a stream."""
        border.instance("StreamPool.fork: stream", stream, Stream)
        event = stream.record(timing=False)
        for member in self._streams:
            member.wait(event)

    def join(self, stream: Stream) -> None:
        """Let a stream wait for the current work of all of them."""
        border.instance("StreamPool.join: stream", stream, Stream)
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


class Context(BaseContext):
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

    __slots__ = ("_default_stream", "_target")

    def __init__(self, device: Device, handle: CUcontext | None, *, is_primary: bool) -> None:
        super().__init__(device, handle, is_primary=is_primary)
        self._default_stream: Stream | None = None
        self._target: ptx.Target | None = None

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
        return self._make_stream(_BLOCKING if blocking else _NON_BLOCKING, priority)

    def new_stream_pool(self, size: int, *, priority: int = 0) -> StreamPool:
        """Return several streams, to be used in turn."""
        size = border.whole("Context.new_stream_pool: size", size, least=1, most=_MOST_OF_A_POOL)
        with ExitStack() as stack:
            streams = [stack.enter_context(self.new_stream(priority=priority)) for _ in range(size)]
            stack.pop_all()
        return StreamPool(streams)

    def external_stream(self, stream: CudaStream | int) -> Stream:
        """Return another library's stream as one of this context; the library still owns it.

        Args:
            stream: an object with ``__cuda_stream__``, as streams of CuPy, PyTorch and cuda.core,
                or a CUstream or its number. It must live until the result is closed, or until the
                result and the memory used on it are freed. The legacy default stream, 0 or 1,
                returns `default_stream`, which keeps its order.

        Raises:
            WrongDeviceError: it belongs to another context.
            InvalidValueError: it is the per-thread default stream, which has no context of its own.
            TypeError: it is not a stream.
        """
        if isinstance(stream, Stream) and stream.context is self:
            return stream
        from ..interop.foreign import stream_handle

        number = stream_handle(stream)
        if number in (0, 1):
            return self.default_stream
        if number == 2:
            raise errors.InvalidValueError(
                "wrapping the per-thread default stream as a stream of one context\n"
                "  each thread and context has its own: use new_stream"
            )
        code, owner = self._api.cuStreamGetCtx(CUstream(number))
        if code:
            raise failure(self._api, code, "cuStreamGetCtx", f"wrapping {number:#x} as a stream")
        if int(owner) != int(self.handle):
            raise WrongDeviceError(f"stream {number:#x} belongs to another context than {self!r}")
        handle = StreamHandle(self._handle, CUstream(number), is_owned=False, keeps=(stream,))
        handle.share(gate_of(handle))
        external = _ExternalStream(self, handle)
        external._number = number
        return external

    def _make_stream(self, flags: int, priority: int, *, is_default: bool = False) -> Stream:
        priority = border.whole("Context.new_stream: priority", priority, -(2**31), 2**31 - 1)
        handle = self._handle
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

    @property
    def target(self) -> ptx.Target:
        """The target to compile for: a cubin for this device, or PTX on the emulator.

        Raises:
            UnsupportedTargetError: the driver cannot load any output of the installed NVRTC; the
                text has the versions and the remedy.
        """
        target = self._target
        if target is None:
            capability = self.device.compute_capability
            if self.device.is_emulated:
                target = ptx.nearest_target(capability, ptx.ImageKind.PTX)
            else:
                target = ptx.choose_target(capability, driver_version())
            self._target = target
        return target

    def compile(
        self,
        source: str,
        options: ptx.CompileOptions | None = None,
        *,
        name: str = "kernel.cu",
        name_expressions: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        cancel: ptx.Cancel | None = None,
    ) -> Module:
        """Compile CUDA C++ for this device (or read it from the cache) and load it.

        The arguments are those of `ptx.compile`; the target defaults to `self.target`.

        Raises:
            ptx.PtxError: the source does not compile, or NVRTC is missing.
            CudaError: the driver rejects the image.
        """
        self._handle.raw  # noqa: B018  # raises once it is closed
        if options is None:
            options = ptx.CompileOptions()
        if isinstance(options, ptx.CompileOptions):  # `compile` rejects any other type
            options = options.for_target(self.target, lineinfo=self.device.is_emulated)
        image = ptx.compile(
            source, options, name=name, name_expressions=name_expressions, headers=headers,
            cancel=cancel,
        )  # fmt: skip
        return self.load_module(image)

    def compile_kernel(
        self,
        source: str,
        name: str | None = None,
        options: ptx.CompileOptions | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Kernel:
        """Compile CUDA C++ and return one kernel: ``kernel(stream, config, *args)`` launches it.

        Args:
            source: the source.
            name: the kernel's, or a name expression such as "scale<float>"; None is the only
                kernel.
            options: as for `compile`.
            headers: as for `compile`.

        Raises:
            KernelNotFoundError: no kernel has the name, or without a name there is not exactly one.
            ptx.PtxError: the source does not compile, or NVRTC is missing.
        """
        expressions = () if name is None else (name,)
        module = self.compile(source, options, name_expressions=expressions, headers=headers)
        if name is None:
            from ..launch.kernel_names import not_the_only_one

            names = module.kernel_names
            if len(names) != 1:
                raise not_the_only_one(names)
            name = names[0]
        return module.kernel(name)

    def compile_nvvm(
        self,
        ir: ptx.NvvmIr | Sequence[ptx.NvvmIr],
        options: ptx.NvvmOptions | None = None,
        *,
        name: str = "kernel.ll",
    ) -> Module:
        """Compile NVVM IR for this device (or read it from the cache) and load it.

        The arguments are those of `ptx.compile_nvvm`. The result is linked, so that a driver older
        than libNVVM can load it.

        Raises:
            ptx.NvvmError: libNVVM rejects the IR or an option; it carries the log.
            ptx.NvvmNotFoundError: libNVVM is not installed.
            CudaError: the driver rejects the image.
            OSError: a file cannot be read.
        """
        self._handle.raw  # noqa: B018  # raises once it is closed
        chosen = border.optional("Context.compile_nvvm: options", options, ptx.NvvmOptions)
        target = self.target.as_kind(ptx.ImageKind.PTX)
        image = ptx.compile_nvvm(ir, (chosen or ptx.NvvmOptions()).for_target(target), name=name)
        return self.link([image])

    def when_module_loaded(self, function: Callable[[Module], object]) -> None:
        """Call a function with each module that is loaded here from now on.

        Its errors are raised by `load_module`. `Module.when_closed` reports the end.
        """
        border.function("Context.when_module_loaded: function", function, takes=1)
        self._handle.raw  # noqa: B018  # raises once it is closed
        self._loading.append(function)

    def load_module(self, image: ImageLike, *, jit: JitOptions | None = None) -> Module:
        """Load an image: a `ptx.Image`, PTX text, the bytes of a cubin, fatbin or PTX, or a file.

        A file is given as a `Path`; a str is PTX. `jit` is for the driver's compiler of PTX.

        Raises:
            CudaError: the driver rejects the image; the JIT's log is in the text.
            OSError: a file cannot be read.
        """
        from ..launch.module_and_kernel import Module  # with the first module: saves 25 ms

        return Module(self, image, lambda: self.default_stream, jit)

    def link(
        self,
        images: Sequence[ptx.Linkable],
        options: ptx.LinkOptions | None = None,
        *,
        cache: ptx.ImageCache | bool = True,
        linker: LinkerName | None = None,
    ) -> Module:
        """Link for this device and load the result, in which the inputs can call each other.

        Args:
            images: as for `ptx.link`: images, PTX, bytes, files. An emulated device takes PTX and
                LTO-IR.
            options: of the link.
            cache: as for `ptx.link`.
            linker: the linker; None is nvJitLink, or the driver if that is not installed, which the
                image's `log` then reports. The driver accepts no LTO-IR.

        Raises:
            ptx.LinkError: the inputs do not link; it carries the linker's log.
            CudaError: the driver rejects the result.
            OSError: a file cannot be read.
        """
        self._handle.raw  # noqa: B018  # raises once it is closed
        from ..launch.linking import linked

        chosen = border.optional("Context.link: options", options, ptx.LinkOptions)
        image = linked(
            self._handle, images, self.target, chosen or ptx.LinkOptions(), cache, linker
        )
        return self.load_module(image)

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
