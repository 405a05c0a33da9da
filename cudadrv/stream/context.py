"""Contexts and streams as users hold them; each gives the other, so they are one file.

What only the driver is asked for is in `driver.context` and `driver.stream_core`.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from .. import border, errors
from ..driver._api import CUcontext, CUresult, CUstream, CUstream_flags
from ..driver.context import ContextCore
from ..driver.default_stream import DefaultStream
from ..driver.device import Device
from ..driver.driver_selection import current, failure
from ..driver.stream_box import StreamHandle
from ..driver.types import CudaStream
from ..errors import WrongDeviceError
from ..memory.driver_pool import open_pool
from ..memory.resource import MemoryResource, choose
from .context_code import ContextCode
from .stream_pool import StreamPool
from .stream_work import StreamWork

if TYPE_CHECKING:
    from ..graph.capture import Capture, CaptureMode
    from ..graph.graph import Graph
    from ..graph.node import After

# Graphs are imported where they are used: many programs do without.

_MOST_OF_A_POOL: Final = 4096
_NON_BLOCKING: Final = int(CUstream_flags.CU_STREAM_NON_BLOCKING)
_BLOCKING: Final = int(CUstream_flags.CU_STREAM_DEFAULT)


class Stream(StreamWork):
    """A queue of work on one context's device; made by `Context.new_stream`.

    Work on a stream with memory of another one runs after what that has queued for the memory;
    see `unordered` for who orders streams himself.

    Attributes:
        context: the context, kept alive by the stream.
        handle: the CUstream; reading it after `close` raises `ClosedError`.
        capturing: whether a capture records what it is given.
        closed: whether it was closed.
    """

    __slots__ = ()

    context: Context

    def capture(
        self, *, mode: CaptureMode = "relaxed", into: Graph | None = None, after: After = ()
    ) -> Capture:
        """``with stream.capture() as graph:`` records what the stream is given in the block.

        Args:
            mode: which calls break the capture: "relaxed" none, "thread_local" unsafe ones of this
                thread, such as cuMemAlloc, "global" those of any thread.
            into: a graph that gets what is recorded, such as a body of a conditional node; a new
                one without.
            after: the nodes of `into` that it comes after.
        """
        from ..graph.capture import Capture

        context = self.context
        return Capture(self, lambda: context.default_stream, mode, into, after)


class _ExternalStream(Stream):
    """A stream of another library, equal to all that stand for the same one while both are open."""

    __slots__ = ("_number",)

    _number: int

    def __eq__(self, other: object) -> bool:
        if self is other or not isinstance(other, _ExternalStream):
            return self is other
        is_same = self._number == other._number and self.context is other.context
        return is_same and not self.closed and not other.closed

    def __hash__(self) -> int:
        return hash(self._number)


class Context(ContextCode):
    """A CUDA context: what streams, modules and memory belong to.

    `cuda_context_for` gives the primary one of a device, which PyTorch, CuPy and the runtime API
    share; `Context.create` makes one of its own, which goes when it is closed and nothing of it
    is left.

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

    @property
    def default_stream(self) -> Stream:
        """The context's own stream, made on first use.

        It synchronises with the legacy default stream, so that it keeps the order of work that
        other libraries queue there, and unlike that stream it names its device. That of a green
        context synchronises with nothing.
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
        return DefaultStream(self, is_per_thread=False)

    @property
    def per_thread_stream(self) -> DefaultStream:
        """The default stream that the context has for the calling thread, whichever calls."""
        return DefaultStream(self, is_per_thread=True)

    def new_stream(self, *, priority: int = 0, blocking: bool = False) -> Stream:
        """A stream that runs beside the others.

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

    def new_stream_pool(self, size: int, *, priority: int = 0) -> StreamPool[Stream]:
        """Several streams, to be used in turn."""
        size = border.whole("Context.new_stream_pool: size", size, least=1, most=_MOST_OF_A_POOL)
        with ExitStack() as made:
            streams = [made.enter_context(self.new_stream(priority=priority)) for _ in range(size)]
            made.pop_all()
        return StreamPool(streams)

    def external_stream(self, stream: CudaStream | int) -> Stream:
        """A stream of another library, to be used here as one of this context; it stays theirs.

        Args:
            stream: what has ``__cuda_stream__``, as streams of CuPy, PyTorch and cuda.core do, or
                a CUstream or its number, which must live until the result is closed, or until that
                and the memory that was used on it are gone. The legacy default stream, 0 or 1,
                gives `default_stream`, which keeps its order.

        Raises:
            WrongDeviceError: it belongs to another context.
            InvalidValueError: it is the per-thread default stream, which has no context of its own.
            TypeError: it is no stream.
        """
        if isinstance(stream, Stream) and stream.context is self:
            return stream
        from ..interop.foreign import stream_handle

        number = stream_handle(stream)
        if number in (0, 1):
            return self.default_stream
        if number == 2:
            raise errors.InvalidValueError(
                "taking the per-thread default stream as a stream of one context: it is another "
                "one in each thread and context; use new_stream"
            )
        code, owner = self._api.cuStreamGetCtx(CUstream(number))
        if code:
            raise failure(self._api, code, "cuStreamGetCtx", f"taking {number:#x} as a stream")
        if int(owner) != int(self.handle):
            raise WrongDeviceError(f"stream {number:#x} belongs to another context than {self!r}")
        box = StreamHandle(self._handle, CUstream(number), is_owned=False, keeps=(stream,))
        external = _ExternalStream(self, box)
        external._number = number
        return external

    def use_memory(self, resource: MemoryResource | None) -> None:
        """Let new memory of its streams come from a resource; None is the driver's pool again."""
        self._resource = choose("Context.use_memory: resource", resource)

    def new_graph(self) -> Graph:
        """An empty graph, to which nodes are added one by one."""
        from ..graph.graph import Graph

        return Graph._made(self, lambda: self.default_stream)

    def enable_peer_access(self, other: ContextCore) -> None:
        """Let kernels of this context use memory of another device's context, where it lies.

        That is one way; the other takes a call of its own. It stays so. Uses are ordered and memory
        is kept as on one device. Copies between devices need no call. The other device's pool is
        opened to this device for the whole process. Idempotent.

        Raises:
            PeerAccessUnsupportedError: the hardware has no such way between the devices.
        """
        peer = border.instance("Context.enable_peer_access: other", other, ContextCore)._handle
        box = self._handle
        raw = peer.raw
        if box.reaches(peer):
            return
        doing = f"letting kernels of {self!r} use memory of {other!r}"
        code = box.call(self._api.cuCtxEnablePeerAccess, raw, 0)[0]
        if code and code != CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED:
            raise failure(self._api, code, "cuCtxEnablePeerAccess", doing)
        open_pool(other.device, self.device)
        box.peers.add(peer)

    def reset(self) -> None:
        """Destroy everything that the device's primary context has in this process.

        The context, its streams, arrays, modules, graphs and all else of it are closed, and raise
        `ClosedError` from now on; `cuda_context_for` gives a new one. What other libraries have
        there, such as tensors of PyTorch, is destroyed under them. Nothing else may use the device
        meanwhile. A failure that has broken the context remains: its process must be started again.

        Raises:
            ResetRefusedError: a stream captures, or arrays of pinned or managed memory that were
                made in the context are in use; nothing was closed.
            InvalidValueError: it is no primary context: close such.
            CudaError: work on it has failed, or the driver refused.
        """
        from .reset import reset

        self._handle.raw  # noqa: B018  # raises once it is closed
        reset(self)

    def _make_stream(self, flags: int, priority: int, *, is_default: bool = False) -> Stream:
        priority = border.whole("Context.new_stream: priority", priority, -(2**31), 2**31 - 1)
        box = self._handle
        owned = StreamHandle(box, None, is_owned=True)
        call = "cuStreamCreateWithPriority"
        if box.green is None:
            code = owned.make(box.api.cuStreamCreateWithPriority, flags, priority)
        else:
            call = "cuGreenCtxStreamCreate"
            code = owned.make(box.api.cuGreenCtxStreamCreate, box.green, _NON_BLOCKING, priority)
        if code:
            raise failure(box.api, code, call, f"a stream on {self!r}")
        return Stream(self, owned, is_default=is_default)


def cuda_context_for(ordinal: int) -> Context:
    """The primary context of a device, current on the calling thread.

    There is one an ordinal for the process, whichever thread asks. It is bound at each call: what
    another library made current in between does not matter.

    Raises:
        DriverNotFoundError: there is no CUDA driver.
        InvalidDeviceError: there is no device of this ordinal.
    """
    context = current().cache(Context).get(ordinal) if type(ordinal) is int else None
    if context is None:
        context = Context._primary_of(Device.get(ordinal))
    context.bind()
    return context
