"""Contexts and streams as users hold them; each gives the other, so they are one file.

What only the driver is asked for is in `driver.context` and `driver.stream_core`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import ptx

from .. import border, errors
from ..driver._api import CUcontext, CUresult, CUstream, CUstream_flags
from ..driver.context import ContextCore
from ..driver.default_stream import DefaultStream
from ..driver.device import Device, driver_version
from ..driver.in_use import current, failure
from ..driver.stream_box import StreamBox
from ..driver.types import CudaStream
from ..errors import WrongDeviceError
from ..launch.images import ImageLike
from ..launch.jit_options import JitOptions
from ..launch.module import Kernel, Module
from ..memory.driver_pool import open_pool
from ..memory.resource import MemoryResource, choose
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


class Context(ContextCore):
    """A CUDA context: what streams, modules and memory belong to.

    `cuda_context_for` gives the primary one of a device, which PyTorch, CuPy and the runtime API
    share; `Context.create` makes one of its own, which goes when it is closed and nothing of it
    is left.

    Attributes:
        device: the device.
        is_primary: whether it is the device's primary context, which is never destroyed.
        handle: the CUcontext; reading it after `close` raises `ClosedError`.
        closed: whether it was closed.
    """

    __slots__ = ("_default_stream", "_target")

    def __init__(self, device: Device, handle: CUcontext | None, *, is_primary: bool) -> None:
        super().__init__(device, handle, is_primary=is_primary)
        self._default_stream: Stream | None = None
        self._target: ptx.Target | None = None

    @property
    def target(self) -> ptx.Target:
        """What to compile for: a cubin for this device, or PTX on the emulator.

        Raises:
            UnsupportedTargetError: the installed NVRTC makes nothing that this driver loads; the
                text names the versions and the remedy.
        """
        target = self._target
        if target is None:
            capability = self.device.compute_capability
            try:
                if self.device.is_emulated:
                    target = ptx.nearest_target(capability, ptx.ImageKind.PTX)
                else:
                    target = ptx.choose_target(capability, driver_version())
            except ptx.UnsupportedTargetError as error:
                raise errors.UnsupportedTargetError(
                    str(error), error.target, error.supported
                ) from error
            self._target = target
        return target

    @property
    def default_stream(self) -> Stream:
        """The context's own stream, made on first use.

        It synchronises with the legacy default stream, so that it keeps the order of work that
        other libraries queue there, and unlike that stream it names its device.
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
            blocking: whether it and the legacy default stream wait for each other.
        """
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
                a CUstream or its number, which must then outlive the result and the memory that
                was used on it. The legacy default stream, 0 or 1, gives `default_stream`, which
                keeps its order.

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
        box = StreamBox(self._box, CUstream(number), is_owned=False, keeps=(stream,))
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
        peer = border.instance("Context.enable_peer_access: other", other, ContextCore)._box
        box = self._box
        raw = peer.raw
        if box.reaches(peer):
            return
        doing = f"letting kernels of {self!r} use memory of {other!r}"
        code = box.call(self._api.cuCtxEnablePeerAccess, raw, 0)[0]
        if code and code != CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED:
            raise failure(self._api, code, "cuCtxEnablePeerAccess", doing)
        open_pool(other.device, self.device)
        box.peers.add(peer)

    def compile(
        self,
        source: str,
        options: ptx.CompileOptions | None = None,
        *,
        name: str = "kernel.cu",
        name_expressions: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Module:
        """Compile CUDA C++ for this device (or take it from the cache) and load it.

        The arguments are those of `ptx.compile`; a target left open is `self.target`.

        Raises:
            ptx.PtxError: the source does not compile, or NVRTC is missing.
            CudaError: the driver refuses the image.
        """
        if options is None:
            options = ptx.CompileOptions()
        if isinstance(options, ptx.CompileOptions):  # anything else, `compile` refuses
            options = options.for_target(self.target)
        image = ptx.compile(
            source, options, name=name, name_expressions=name_expressions, headers=headers
        )
        return self.load_module(image)

    def compile_kernel(
        self,
        source: str,
        name: str | None = None,
        options: ptx.CompileOptions | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Kernel:
        """Compile CUDA C++ and take a kernel of it: ``kernel(stream, config, *args)`` launches it.

        Args:
            source: the source.
            name: the kernel's, or a name expression such as "scale<float>"; the only one without.
            options: as for `compile`.
            headers: as for `compile`.

        Raises:
            KernelNotFoundError: there is none of the name, or without one not just one kernel.
            ptx.PtxError: the source does not compile, or NVRTC is missing.
        """
        expressions = () if name is None else (name,)
        module = self.compile(source, options, name_expressions=expressions, headers=headers)
        if name is None:
            names = module.kernel_names
            if len(names) != 1:
                raise errors.KernelNotFoundError(
                    f"the source has {len(names)} kernels ({', '.join(names)}): name the one",
                    name="",
                    available=names,
                )
            name = names[0]
        return module.kernel(name)

    def when_module_loaded(self, function: Callable[[Module], object]) -> None:
        """Let a function be called with each module that is loaded here from now on.

        What it raises, `load_module` raises. `Module.when_closed` tells of the end.
        """
        border.function("Context.when_module_loaded: function", function)
        self._loading.append(function)

    def load_module(self, image: ImageLike, *, jit: JitOptions | None = None) -> Module:
        """Load an image: a `ptx.Image`, PTX text, the bytes of a cubin, fatbin or PTX, or a file.

        A file is given as a `Path`; a str is PTX. `jit` is for the driver's compiler of PTX.

        Raises:
            CudaError: the driver refuses the image; the JIT's log is in the text.
            OSError: a file cannot be read.
        """
        return Module(self, image, lambda: self.default_stream, jit)

    def _make_stream(self, flags: int, priority: int, *, is_default: bool = False) -> Stream:
        priority = border.whole("Context.new_stream: priority", priority, -(2**31), 2**31 - 1)
        box = self._box
        owned = StreamBox(box, None, is_owned=True)
        code = owned.make(box.api.cuStreamCreateWithPriority, flags, priority)
        if code:
            raise failure(box.api, code, "cuStreamCreateWithPriority", f"a stream on {self!r}")
        return Stream(self, owned, is_default=is_default)


def cuda_context_for(ordinal: int) -> Context:
    """The primary context of a device, current on the calling thread.

    There is one an ordinal for the process, whichever thread asks. It is bound at each call: what
    another library made current in between does not matter.

    Raises:
        DriverNotFoundError: there is no CUDA driver.
        InvalidDeviceError: there is no device of this ordinal.
    """
    driver = current()
    cache = driver.cache(Context)
    context = cache.get(ordinal) if type(ordinal) is int else None
    if context is None:
        device = Device.get(ordinal)
        context = Context(device, device.primary_context(), is_primary=True)
        context = cache.setdefault(device.ordinal, context)
    context.bind()
    return context
