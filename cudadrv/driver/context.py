"""Contexts: the process-wide cache of primary contexts, and contexts of one's own."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import ptx

from .. import errors
from ..errors import ClosedError, WrongDeviceError
from ._api import CUcontext, CUstream, CUstream_flags, DriverApi
from .device import Device, driver_version
from .in_use import Bound, Handle, current, failure

if TYPE_CHECKING:
    from ..launch.module import ImageLike, Module
    from ..stream import Stream
    from .capability import GpuCapability
    from .types import ContextFlags, CudaStream, MemoryInfo

    class Child(Protocol):
        """What must lose its handle when its context is destroyed under it."""

        def discard(self) -> None:
            """The context was closed."""


_T = TypeVar("_T")

_NON_BLOCKING = int(CUstream_flags.CU_STREAM_NON_BLOCKING)
_BLOCKING = int(CUstream_flags.CU_STREAM_DEFAULT)


class Context(Handle):
    """A CUDA context: what streams, modules and memory belong to.

    `cuda_context_for` gives the primary one of a device, which PyTorch, CuPy and the runtime API
    share; `Context.create` makes one of its own, destroyed on `close`.

    Attributes:
        device: the device.
        handle: the CUcontext; reading it after `close` raises `ClosedError`.
        closed: whether it was closed.
    """

    __slots__ = (
        "__weakref__", "_children", "_default_stream", "_finalizer", "_target",
        "api", "closed", "device", "handle", "is_primary",
    )  # fmt: skip

    handle: CUcontext

    def __init__(self, device: Device, handle: CUcontext, *, is_primary: bool) -> None:
        self.api: DriverApi = device.driver.api
        self.device = device
        self.handle = handle
        self.is_primary = is_primary
        self.closed = False
        self._default_stream: Stream | None = None
        self._target: ptx.Target | None = None
        self._children: weakref.WeakSet[Child] = weakref.WeakSet()
        self._finalizer = None if is_primary else weakref.finalize(self, _destroy, self.api, handle)
        if self._finalizer is not None:
            self._finalizer.atexit = False

    @classmethod
    def create(cls, device: Device | int = 0, flags: ContextFlags | int = 0) -> Context:
        """A new context on a device (cuCtxCreate); the caller's current context stays as it was.

        Raises:
            InvalidDeviceError: there is no such device.
        """
        if isinstance(device, int):
            device = Device.get(device)
        api = device.driver.api
        code, handle = api.cuCtxCreate(None, int(flags), device.handle)
        if code:
            raise failure(api, code, "cuCtxCreate", f"making a context on {device!r}")
        code, _ = api.cuCtxPopCurrent()  # cuCtxCreate made it current
        if code:
            raise failure(api, code, "cuCtxPopCurrent", "putting the former context back")
        return cls(device, handle, is_primary=False)

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> object:
            if name == "handle":
                raise ClosedError(f"the context on device {self.device.ordinal} was closed")
            raise AttributeError(f"a Context has no attribute {name!r}")

    def __repr__(self) -> str:
        kind = "primary" if self.is_primary else "own"
        return f"<Context {kind}{', closed' if self.closed else ''} on device {self.ordinal}>"

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def ordinal(self) -> int:
        """The device's ordinal."""
        return self.device.ordinal

    @property
    def capability(self) -> GpuCapability:
        """What the device's compute capability offers."""
        from .capability import GpuCapability  # costs 2 ms that a start without it saves

        return GpuCapability.from_compute_capability(*self.device.compute_capability)

    @property
    def target(self) -> ptx.Target:
        """What to compile for: a cubin for this device, or PTX on the emulator.

        Raises:
            UnsupportedTargetError: the installed NVRTC makes nothing that this driver loads; the
                text names the versions and the remedy.
        """
        if self._target is None:
            capability = self.device.compute_capability
            if self.device.is_emulated:
                self._target = ptx.nearest_target(capability, ptx.ImageKind.PTX)
            else:
                self._target = ptx.choose_target(capability, driver_version())
        return self._target

    @property
    def default_stream(self) -> Stream:
        """The context's own stream, made on first use.

        It synchronises with the legacy default stream, so that it keeps the order of work that
        other libraries queue there, and unlike that stream it names its device.
        """
        if self._default_stream is None:
            with self.device.driver.lock:
                if self._default_stream is None:
                    self._default_stream = self._make_stream(_BLOCKING, 0)
        return self._default_stream

    def new_stream(self, *, priority: int = 0) -> Stream:
        """A stream that runs beside the others and does not wait for the legacy default stream.

        Args:
            priority: lower runs first; the driver clamps it to `priority_range`.
        """
        return self._make_stream(_NON_BLOCKING, priority)

    def external_stream(self, stream: CudaStream | CUstream | int) -> Stream:
        """A stream of another library, to be used here as one of this context; it stays theirs.

        Args:
            stream: what has ``__cuda_stream__``, as streams of CuPy, PyTorch and cuda.core do, or
                a CUstream or its number, which must then outlive the result. The legacy default
                stream, 0 or 1, gives `default_stream`, which keeps its order.

        Raises:
            WrongDeviceError: it belongs to another context.
            InvalidValueError: it is the per-thread default stream, which has no context of its own.
            TypeError: it is no stream.
        """
        from ..interop.foreign import stream_handle
        from ..stream import Stream

        if isinstance(stream, Stream) and stream.context is self:
            return stream
        number = stream_handle(stream)
        if number in (0, 1):
            return self.default_stream
        if number == 2:
            raise errors.InvalidValueError(
                "taking the per-thread default stream as a stream of one context: it is another "
                "one in each thread and context; use new_stream"
            )
        code, owner = self.api.cuStreamGetCtx(CUstream(number))
        if code:
            raise failure(self.api, code, "cuStreamGetCtx", f"taking {number:#x} as a stream")
        if int(owner) != int(self.handle):
            raise WrongDeviceError(f"stream {number:#x} belongs to another context than {self!r}")
        result = Stream(self, CUstream(number), owned=False, origin=stream)
        self.adopt(result)
        return result

    def priority_range(self) -> tuple[int, int]:
        """The least and the greatest priority of streams, such as (0, -5)."""
        code, least, greatest = self._call(self.api.cuCtxGetStreamPriorityRange)
        if code:
            raise failure(self.api, code, "cuCtxGetStreamPriorityRange", f"priorities of {self!r}")
        return least, greatest

    def bind(self) -> None:
        """Make this the calling thread's current context, whatever was current before."""
        (code,) = self.api.cuCtxSetCurrent(self.handle)
        if code:
            raise failure(self.api, code, "cuCtxSetCurrent", f"binding {self!r} to the thread")

    def synchronize(self) -> None:
        """Wait until all work of the context is done.

        Raises:
            CudaError: some of that work failed.
        """
        (code,) = self._call(self.api.cuCtxSynchronize)
        if code:
            raise failure(self.api, code, "cuCtxSynchronize", f"waiting for {self!r}")

    def memory_info(self) -> MemoryInfo:
        """Free and total bytes of the device, as of now."""
        from .types import MemoryInfo

        code, free, total = self._call(self.api.cuMemGetInfo)
        if code:
            raise failure(self.api, code, "cuMemGetInfo", f"the free memory of {self!r}")
        return MemoryInfo(free, total)

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

    def load_module(self, image: ImageLike) -> Module:
        """Load an image: a `ptx.Image`, PTX text, or the bytes of a cubin, fatbin or PTX.

        Raises:
            CudaError: the driver refuses the image; the JIT's log is in the text.
        """
        from ..launch.module import Module  # with all that runs on a device; not at import

        module = Module(self, image)
        self.adopt(module)
        return module

    def adopt(self, child: Child) -> None:
        """Remember what must lose its handle when the context is closed; primary ones never are."""
        if not self.is_primary:
            self._children.add(child)

    def close(self) -> None:
        """Destroy the context with all that belongs to it; a primary context stays. Idempotent."""
        if self._finalizer is not None and self._finalizer.alive:
            for child in tuple(self._children):
                child.discard()
            from ..memory.staging import release_ring  # few contexts copy much

            release_ring(self)
            self.closed = True
            del self.handle
            self._finalizer()

    def _make_stream(self, flags: int, priority: int) -> Stream:
        from ..stream import Stream  # with all that runs on a device; not at import

        with Bound(self.api, self.handle):
            code, handle = self.api.cuStreamCreateWithPriority(flags, priority)
        if code:
            raise failure(self.api, code, "cuStreamCreateWithPriority", f"a stream on {self!r}")
        stream = Stream(self, handle, owned=flags == _NON_BLOCKING)
        self.adopt(stream)
        return stream

    def _call(self, function: Callable[[], _T]) -> _T:
        """Call what works on the current context, with this one current."""
        with Bound(self.api, self.handle):
            return function()


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
    context = cache.get(ordinal)
    if context is None:
        device = Device.get(ordinal)
        context = Context(device, device.primary_context(), is_primary=True)
        context = cache.setdefault(ordinal, context)
    context.bind()
    return context


def _destroy(api: DriverApi, handle: CUcontext) -> None:
    api.cuCtxDestroy(handle)
