"""`CudaClient`: one device's context, streams, allocator and caches, after numr's client.

With the graphs that it captures, and the kernel sources that are registered for its preloading.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import ptx
from ptx.read_only import ReadOnly

from .. import border
from ..driver.call_gate import CAPTURE_WAIT_S, CapturePeriod, wait_limit
from ..driver.device import Device
from ..driver.event import Event
from ..errors import ClosedError, CudadrvError, InvalidValueError
from ..graph.executable import GraphExec
from ..graph.graph import Graph
from ..launch.module_and_kernel import Module
from ..memory.buffer import DeviceBuffer
from ..memory.driver_pool import request_release_threshold
from ..memory.reuse.allocator import DEFAULT_CAP_BYTES, CudaAllocator
from ..runtime.module_cache import PtxModuleCache, Source
from ..stream import Context, Stream, cuda_context_for
from .sobol import SobolDvCache

if TYPE_CHECKING:
    from ..blas import LinearAlgebra

_MOST_NAMED: Final = 4  # modules in the text of an error


class UnknownModuleError(CudadrvError):
    """No source is registered under a name.

    Attributes:
        name: the unknown name.
        available: the names that are registered.
    """

    def __init__(self, name: str, available: tuple[str, ...]) -> None:
        known = (
            ", ".join(border.shown_name(each)[1:-1] for each in available[:_MOST_NAMED]) or "none"
        )
        if len(available) > _MOST_NAMED:
            known += f" and {len(available) - _MOST_NAMED} more"
        super().__init__(
            f"no module is registered as {border.shown_name(name)}\n  there are: {known}\n"
            "  register it first: cudadrv.client.register_module(name, source)"
        )
        self.name = name
        self.available = available


@dataclass(frozen=True, slots=True)
class _RegisteredModule:
    """A source, how it is compiled, and its module on each context."""

    source: Source
    options: ptx.CompileOptions | None
    name_expressions: tuple[str, ...]
    cache: PtxModuleCache


class ModuleRegistry:
    """Sources by name; each is compiled once and loaded once a context."""

    __slots__ = ("__weakref__", "_entries")

    def __init__(self) -> None:
        self._entries: dict[str, _RegisteredModule] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The registered names, in the order of registration."""
        return tuple(self._entries)

    def register(
        self,
        name: str,
        source: Source,
        options: ptx.CompileOptions | None = None,
        *,
        name_expressions: tuple[str, ...] = (),
    ) -> None:
        """Register a source; nothing is compiled yet.

        Args:
            name: the name of the module.
            source: CUDA C++, or a function that makes it when it is needed.
            options: how to compile; a target left open is the context's.
            name_expressions: template instances by which kernels are found.

        Raises:
            InvalidValueError: the name is registered with another source or other options.
        """
        border.text("register_module: name", name)
        border.source("register_module: source", source)
        cache = PtxModuleCache(options, name_expressions=name_expressions)
        entry = _RegisteredModule(source, options, name_expressions, cache)
        known = self._entries.setdefault(name, entry)
        same = (known.source, known.options, known.name_expressions)
        if known is not entry and same != (source, options, name_expressions):
            raise InvalidValueError(f"registering {name!r}, which already names another source")

    def load(self, name: str, context: Context) -> Module:
        """Return the module of a name on a context; the first call compiles and loads it.

        Raises:
            UnknownModuleError: nothing is registered under the name.
            DriverCallFailed: it does not compile or load.
            RuntimeDependencyUnavailable: NVRTC is not installed.
        """
        entry = self._entries.get(border.instance_of("a module's name", name, str))
        if entry is None:
            raise UnknownModuleError(name, self.names)
        return entry.cache.get_or_compile(context, name, entry.source)


# The process's registry: filled by packages when they are imported.
registry: Final = ModuleRegistry()


def register_module(
    name: str,
    source: Source,
    options: ptx.CompileOptions | None = None,
    *,
    name_expressions: tuple[str, ...] = (),
) -> None:
    """Register a source for every client, as `ModuleRegistry.register` does."""
    registry.register(name, source, options, name_expressions=name_expressions)


class CapturedGraph:
    """The graph of `CudaClient.capture_graph`, which can be launched any number of times.

    A graph holds addresses, so this keeps their memory: write new data into `inputs`,
    launch, and read `outputs`.

    Attributes:
        stream: the stream that it was captured from and is launched on.
        inputs: the caller's inputs.
        outputs: the caller's outputs.
        arena: the memory of the capture's own allocations; None without an arena.
        node_count: the number of captured operations.
    """

    __slots__ = (
        "__weakref__",
        "_arena",
        "_executable",
        "_graph",
        "_inputs",
        "_launch_count",
        "_lock",
        "_node_count",
        "_outputs",
        "_stream",
    )

    stream: ReadOnly[Stream] = ReadOnly("_stream")
    inputs: ReadOnly[tuple[object, ...]] = ReadOnly("_inputs")
    outputs: ReadOnly[tuple[object, ...]] = ReadOnly("_outputs")
    arena: ReadOnly[DeviceBuffer | None] = ReadOnly("_arena")
    node_count: ReadOnly[int] = ReadOnly("_node_count")

    def __init__(
        self,
        graph: Graph,
        stream: Stream,
        inputs: tuple[object, ...],
        outputs: tuple[object, ...],
        arena: DeviceBuffer | None,
    ) -> None:
        self._stream = stream
        self._inputs: tuple[object, ...] = inputs
        self._outputs: tuple[object, ...] = outputs
        self._arena = arena
        self._node_count: int = graph.node_count
        self._graph = graph
        self._executable: GraphExec | None = graph.instantiate()
        self._launch_count = 0
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        state = "closed" if self._executable is None else f"launched {self._launch_count} times"
        return f"<CapturedGraph of {self._node_count} nodes, {state}>"

    def __enter__(self) -> CapturedGraph:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def launch_count(self) -> int:
        """The number of launches."""
        return self._launch_count

    def launch(self) -> None:
        """Queue the whole graph on its stream.

        Raises:
            ClosedError: it was closed.
            CudaError: the driver returned an error.
        """
        # An executable runs once at a time, so threads that launch one queue anyway. A thread that
        # has the lock may wait for the end of this thread's capture, in which no graph is launched.
        with nullcontext() if self._stream.capturing else self._lock:
            executable = self._executable
            if executable is None:
                raise ClosedError("the captured graph was closed")
            executable.launch(self._stream)
            self._launch_count += 1

    def close(self) -> None:
        """Destroy the graph after its queued launches, and release inputs, outputs and arena.

        Idempotent.
        """
        with self._lock:
            executable, self._executable = self._executable, None
        if executable is not None:
            executable.close()
            self._graph.close()
            self._inputs = self._outputs = ()
            # In the order of the stream that the launches are in.
            self._arena = None


_POOL_RELEASE_THRESHOLD_MB: Final = "CUDADRV_POOL_RELEASE_THRESHOLD_MB"
_FREE_LIST_CAP_MB: Final = "CUDADRV_FREE_LIST_CAP_MB"
DEFAULT_POOL_RELEASE_THRESHOLD_BYTES: Final = 512 << 20
_MIB: Final = 1 << 20
_MOST_MIB: Final = (1 << 64) // _MIB - 1  # the driver keeps a threshold in 64 bits


@dataclass(frozen=True, slots=True)
class CudaRawHandle:
    """The context and the stream for kernels of a caller's own, in a client's order."""

    context: Context
    stream: Stream

    def __post_init__(self) -> None:
        border.instance_of("CudaRawHandle: context", self.context, Context)
        border.instance_of("CudaRawHandle: stream", self.stream, Stream)


class CudaClient:
    """A device's context, its compute and copy streams, and the objects shared on them.

    There is one client a device for the process: ``CudaClient(device)`` returns it in every
    thread. Kernels are launched on `stream`, whose order the allocator follows.

    Two environment variables are read when a device's client is made, each in MiB:
    ``CUDADRV_POOL_RELEASE_THRESHOLD_MB`` (512), the limit of the driver's default pool, and
    ``CUDADRV_FREE_LIST_CAP_MB`` (1024), the limit of the allocator's free lists. A device without
    memory pools has no first limit: `pool_info` raises `NotSupportedError` there.

    Args:
        device: the device or its ordinal.

    Attributes:
        device: the device.
        context: its primary context.
        stream: the compute stream.
        copy_stream: a second stream, for copies that overlap with computing.
        allocator: raw memory in the compute stream's order.
        raw_handle: context and compute stream.
        sobol_dv_cache: Sobol direction vectors on the device.

    Raises:
        InvalidDeviceError: there is no such device.
    """

    __slots__ = (
        "__weakref__", "_algebra", "_allocator", "_context", "_copy_stream", "_device",
        "_raw_handle", "_sobol_dv_cache", "_stream",
    )  # fmt: skip

    _device: Device
    device: ReadOnly[Device] = ReadOnly("_device")
    _context: Context
    context: ReadOnly[Context] = ReadOnly("_context")
    _stream: Stream
    stream: ReadOnly[Stream] = ReadOnly("_stream")
    _copy_stream: Stream
    copy_stream: ReadOnly[Stream] = ReadOnly("_copy_stream")
    _allocator: CudaAllocator
    allocator: ReadOnly[CudaAllocator] = ReadOnly("_allocator")
    _raw_handle: CudaRawHandle
    raw_handle: ReadOnly[CudaRawHandle] = ReadOnly("_raw_handle")
    _sobol_dv_cache: SobolDvCache
    sobol_dv_cache: ReadOnly[SobolDvCache] = ReadOnly("_sobol_dv_cache")
    _algebra: LinearAlgebra | None

    def __new__(cls, device: Device | int = 0) -> CudaClient:
        """The device's client, made at the first call."""
        requested = Device.get(device)
        cache = requested.driver.cache(CudaClient)
        client = cache.get(requested.ordinal)
        if client is None:
            with requested.driver.lock:
                client = cache.get(requested.ordinal)
                if client is None:
                    client = super().__new__(cls)
                    client._open(requested)
                    cache[requested.ordinal] = client
        return client

    def _open(self, device: Device) -> None:
        self._device = device
        self._context = context = cuda_context_for(device.ordinal)
        self._stream = stream = context.new_stream()
        self._copy_stream = context.new_stream()
        threshold = _mebibytes(_POOL_RELEASE_THRESHOLD_MB, DEFAULT_POOL_RELEASE_THRESHOLD_BYTES)
        request_release_threshold(device, threshold)  # numr ignores that there is no pool
        cap = _mebibytes(_FREE_LIST_CAP_MB, DEFAULT_CAP_BYTES)
        self._allocator = CudaAllocator(stream, cap_bytes=cap)
        self._raw_handle = CudaRawHandle(context, stream)
        self._sobol_dv_cache = SobolDvCache(stream)
        self._algebra = None

    def __repr__(self) -> str:
        return f"<CudaClient on {self._device!r}>"

    def __reduce__(self) -> tuple[object, ...]:
        return CudaClient, (self._device.ordinal,)

    @property
    def is_capturing(self) -> bool:
        """Whether the calling thread captures on the compute stream."""
        return self._stream.capturing

    @property
    def compute_stream_handle(self) -> int:
        """The compute stream's CUstream as an integer."""
        return int(self._stream.handle)

    @property
    def blas(self) -> LinearAlgebra:
        """Linear algebra on the compute stream; its handles are made at the first operation."""
        if self._algebra is None:
            # Imported when it is used: most clients multiply no matrices.
            from ..blas import LinearAlgebra

            self._algebra = LinearAlgebra.for_stream(self._stream)
        return self._algebra

    def synchronize(self) -> None:
        """Wait until all work of the compute stream is done.

        Raises:
            CudaError: some of that work failed.
        """
        self._stream.synchronize()

    def record_event_on_compute(self) -> Event:
        """Record an event at this point of the compute stream, for `copy_stream_wait_event`."""
        return self._stream.record(timing=False)

    def copy_stream_wait_event(self, event: Event) -> None:
        """Make the copy stream wait for an event.

        Raises:
            ClosedError: the event was destroyed.
        """
        border.instance_of("CudaClient.copy_stream_wait_event: event", event, Event)
        self._copy_stream.wait(event)

    def destroy_event(self, event: Event) -> None:
        """Destroy an event; waits for it continue. A repeated destroy is harmless."""
        border.instance_of("CudaClient.destroy_event: event", event, Event).close()

    def preload_modules(self, names: Iterable[str]) -> None:
        """Compile and load registered modules now, so that their first launch does not wait.

        Args:
            names: the names of `register_module`; modules that are loaded already cost nothing.

        Raises:
            UnknownModuleError: nothing is registered under a name.
            DriverCallFailed: a source does not compile or load.
        """
        for name in border.sequence_of("CudaClient.preload_modules: names", names, str):
            self.module(name)

    def module(self, name: str) -> Module:
        """Return the registered module of a name on this device.

        Raises:
            UnknownModuleError, DriverCallFailed: as `preload_modules`.
        """
        return registry.load(name, self._context)

    def warmup_sobol(self, dimension: int) -> None:
        """Copy the Sobol direction vectors of a dimension to the device, where they stay.

        Call it once outside any capture; again it costs nothing. `sobol_dv_cache` has them then.

        Raises:
            SobolDimensionError: `dimension` is not in 1 to 21201.
            RuntimeDependencyUnavailable: SciPy is not installed.
            StreamCaptureUnsupportedError: within a capture, unless they are there.
        """
        self._sobol_dv_cache.warmup(dimension)

    def capture_graph(
        self,
        inputs: Sequence[object],
        outputs: Sequence[object],
        fn: Callable[[CudaClient], object],
        arena_bytes: int | None = None,
        *,
        wait_limit_s: float = CAPTURE_WAIT_S,
    ) -> CapturedGraph:
        """Capture the work that `fn` launches on the compute stream, at addresses that stay.

        The allocator is frozen meanwhile. Allocations of `fn` come from the graph's own arena, each
        address once. Without an arena they come from the graph itself, which frees them at its end
        unless `fn` did. Either way they are the graph's scratch memory: allocate results that are
        read later before, and name them in `outputs`. If `fn` raises, the capture is cancelled, and
        stream and allocator are usable as before. Work of other threads on the stream and the
        allocator waits meanwhile, and captures of several threads take turns. So `fn` must not wait
        for other threads that use the client.

        Args:
            inputs: the objects that the graph reads; kept alive with it.
            outputs: the objects that the graph writes; kept alive with it.
            fn: launches the work; called once, with this client.
            arena_bytes: the arena's size; None is no arena.
            wait_limit_s: the seconds that work of another thread waits before it raises
                StreamCaptureIsolationError.

        Raises:
            OutOfMemoryError: the arena does not fit the device, or `fn` does not fit the arena.
            StreamCaptureIsolationError: the wait for another thread's capture cannot end, or
                exceeds its limit.
            CudaError: a capture cannot record a call of `fn`.
        """
        border.function("CudaClient.capture_graph: fn", fn, takes=1)
        inputs = border.sequence_of("CudaClient.capture_graph: inputs", inputs, object)
        outputs = border.sequence_of("CudaClient.capture_graph: outputs", outputs, object)
        if arena_bytes is not None:
            arena_bytes = border.integer("CudaClient.capture_graph: arena_bytes", arena_bytes)
        if arena_bytes is not None and arena_bytes <= 0:
            raise InvalidValueError(f"a capture arena of {arena_bytes} bytes: more than 0")
        if self._stream.capturing:
            raise InvalidValueError(f"capture_graph within a capture of {self._stream!r}")
        graph, arena = self._captured(
            fn, arena_bytes, wait_limit("CudaClient.capture_graph", wait_limit_s)
        )
        return CapturedGraph(graph, self._stream, inputs, outputs, arena)

    def _captured(
        self, fn: Callable[[CudaClient], object], arena_bytes: int | None, wait_limit_s: float
    ) -> tuple[Graph, DeviceBuffer | None]:
        """Return the graph of what `fn` launches, and its arena, with a frozen allocator."""
        allocator, period = self._allocator, CapturePeriod(wait_limit_s)
        try:
            allocator._freeze(period)
            arena = None if arena_bytes is None else self._installed_arena(arena_bytes)
            with self._stream.capture(wait_limit_s=wait_limit_s) as graph:
                fn(self)
                allocator.free_captured()
        except BaseException:
            if allocator._frozen is period:
                allocator.forget_captured()
            raise
        finally:
            if allocator._frozen is period:
                # No interrupt comes before these, as they call nothing.
                allocator._frozen = allocator._captures.arena = None
                period.end()
                allocator.unfreeze()
        return graph, arena

    def _installed_arena(self, nbytes: int) -> DeviceBuffer:
        """Return memory from which the frozen allocator serves the capture."""
        arena = self._stream.alloc(nbytes)
        self._allocator.install_arena(arena.ptr, arena.nbytes)
        return arena


def _mebibytes(name: str, default_bytes: int) -> int:
    """Return the bytes that an environment variable gives in MiB, an integer.

    A variable that is not set or empty is the default; one that cannot be read is the default
    too, with a `RuntimeWarning`.
    """
    text = os.environ.get(name, "").strip()
    if not text:
        return default_bytes
    number = border.integer_of_text(text, most=_MOST_MIB)
    if number is not None:
        return number * _MIB
    warnings.warn(
        f"{name} is {text!r}, which is no number of MiB from 0 to {_MOST_MIB} in digits alone: "
        f"using {default_bytes // _MIB}",
        RuntimeWarning,
        stacklevel=2,
    )
    return default_bytes
