"""Contexts as the layers below the public `Context` see them, and a context's settings.

Memory, launches and graphs take contexts, and `Context` has methods that make streams and load
modules. So those layers use its base class, which depends only on the driver layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from ptx.read_only import ReadOnly

from .. import border
from ._api import CUcontext, CUfunc_cache, CUlimit
from .context_handle import ContextHandle
from .deferred_release import run_deferred
from .device import Device
from .driver_api import DriverApi
from .driver_selection import failure
from .handle import Closeable, NotCopyable, living_with
from .stream_handle import EventHandle, free_cached_blocks
from .types import ContextFlags, MemoryInfo

if TYPE_CHECKING:
    from .capability import GpuCapability
    from .sm_resource import SmResource
    from .workqueue_resource import WorkqueueResource


class CachePreference(Enum):
    """How a multiprocessor divides its memory between the L1 cache and shared memory.

    Source: CUfunc_cache in the CUDA Driver API manual. It is a hint; many devices divide by need.
    """

    NONE = int(CUfunc_cache.CU_FUNC_CACHE_PREFER_NONE)
    SHARED = int(CUfunc_cache.CU_FUNC_CACHE_PREFER_SHARED)
    L1 = int(CUfunc_cache.CU_FUNC_CACHE_PREFER_L1)
    EQUAL = int(CUfunc_cache.CU_FUNC_CACHE_PREFER_EQUAL)


_STACK: Final = CUlimit.CU_LIMIT_STACK_SIZE
_HEAP: Final = CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE
_PRINTF: Final = CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE
_PERSISTING_L2: Final = CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE


class ContextLimits(NotCopyable):
    """Limits of device code in a context; reads query the driver, assignments set it.

    The driver may round a value up. Change the heap and the buffer of `printf` before the first
    launch of a kernel that uses them.

    Attributes:
        stack_bytes: the stack of each thread.
        heap_bytes: the heap that `malloc` and `new` allocate from.
        printf_bytes: the buffer of kernels' output until the next synchronisation.
    """

    __slots__ = ("_context",)

    def __init__(self, context: BaseContext) -> None:
        self._context = context

    def __repr__(self) -> str:
        names = ("stack_bytes", "heap_bytes", "printf_bytes")
        return f"<ContextLimits {', '.join(f'{name}={getattr(self, name)}' for name in names)}>"

    @property
    def stack_bytes(self) -> int:
        """The stack of each thread."""
        return self._get(_STACK)

    @stack_bytes.setter
    def stack_bytes(self, nbytes: int) -> None:
        self._set(_STACK, nbytes)

    @property
    def heap_bytes(self) -> int:
        """The heap of `malloc` and `new` in kernels."""
        return self._get(_HEAP)

    @heap_bytes.setter
    def heap_bytes(self, nbytes: int) -> None:
        self._set(_HEAP, nbytes)

    @property
    def printf_bytes(self) -> int:
        """The buffer of `printf`, until the next synchronisation."""
        return self._get(_PRINTF)

    @printf_bytes.setter
    def printf_bytes(self, nbytes: int) -> None:
        self._set(_PRINTF, nbytes)

    @property
    def persisting_l2_bytes(self) -> int:
        """The part of the L2 cache for persisting accesses (`AccessWindow`)."""
        return self._get(_PERSISTING_L2)

    @persisting_l2_bytes.setter
    def persisting_l2_bytes(self, nbytes: int) -> None:
        self._set(_PERSISTING_L2, nbytes)

    def _get(self, limit: CUlimit) -> int:
        handle = self._context._handle
        code, value = handle.call(handle.api.cuCtxGetLimit, limit)
        if code:
            raise failure(handle.api, code, "cuCtxGetLimit", f"a limit of {limit.name}")
        return value

    def _set(self, limit: CUlimit, nbytes: int) -> None:
        nbytes = border.int_in_range("a limit of a context", nbytes)
        handle = self._context._handle
        (code,) = handle.call(handle.api.cuCtxSetLimit, limit, nbytes)
        if code:
            doing = f"setting {limit.name} to {nbytes}"
            raise failure(handle.api, code, "cuCtxSetLimit", doing)


_T = TypeVar("_T")
_GREEN_FLAGS: Final = 1  # CU_GREEN_CTX_DEFAULT_STREAM, which is required


class BaseContext(Closeable):
    """A CUDA context: the owner of streams, modules and memory; every instance is a `Context`.

    Attributes:
        device: the device.
        is_primary: whether it is the device's primary context, which stays until it is reset.
        handle: the CUcontext; reading it after `close` raises `ClosedError`.
        closed: whether it was closed.
    """

    __slots__ = ("_device", "_is_primary", "_kept", "_loading", "_resource")

    device: ReadOnly[Device] = ReadOnly("_device")
    is_primary: ReadOnly[bool] = ReadOnly("_is_primary")

    _handle: ContextHandle
    _has_unregistered = True

    def __init__(self, device: Device, handle: CUcontext | None, *, is_primary: bool) -> None:
        self._device: Device = device
        self._is_primary: bool = is_primary
        self._kept: dict[type, object] = {}
        # Functions called with each module that is loaded; the type is above this layer.
        self._loading: list[Callable[[Any], object]] = []
        # The resource of new memory, if one was chosen; the type is above this layer.
        self._resource: object | None = None
        self._own(ContextHandle(device.driver, handle, device.ordinal, is_primary=is_primary))
        if handle is not None:
            device.driver.contexts.add(self._handle)

    @classmethod
    def _primary_of(cls, device: Device) -> Self:
        """Return the primary context of a device, one object per process."""
        cache = device.driver.cache(cls)
        context = cache.get(device.ordinal)
        if context is None:
            primary = cls(device, device.primary_context(), is_primary=True)
            context = cache.setdefault(device.ordinal, primary)
        return context

    @classmethod
    def create(cls, device: Device | int = 0, flags: ContextFlags | int = 0) -> Self:
        """Create a context on a device (cuCtxCreate); the caller's current context stays as it was.

        Raises:
            InvalidDeviceError: there is no such device.
        """
        if not isinstance(device, Device):
            device = Device.get(device)
        flags = border.int_in_range("Context.create: flags", flags, most=2**32 - 1)
        api = device.driver.api
        context, pop = cls(device, None, is_primary=False), api.cuCtxPopCurrent
        handle = context._handle
        try:
            code, raw = api.cuCtxCreate(None, flags, device.handle)
            if code:
                raise failure(api, code, "cuCtxCreate", f"creating a context on {device!r}")
            handle.own(raw)
        finally:
            if handle.raw is not None:
                code, _ = pop()  # cuCtxCreate made it current
        if code:
            raise failure(api, code, "cuCtxPopCurrent", "restoring the previous context")
        return context

    @classmethod
    def create_green(
        cls,
        resources: SmResource | WorkqueueResource | Sequence[SmResource | WorkqueueResource],
    ) -> Self:
        """Create a green context: its kernels run on a part of the device's multiprocessors.

        It shares memory and modules with the device's primary context, which it is based on.

        Args:
            resources: parts of one `SmResource.split`, one or several, and at most one
                `WorkqueueResource`. Without a part it has all multiprocessors.

        Raises:
            ArgumentValueError: there are none, or they are of several devices.
            CudaError: the driver reported an error; it needs CUDA 12.4.
            UnsupportedError: the driver has no workqueues as a resource; they need CUDA 13.1.
        """
        from .sm_resource import description  # rarely needed at start

        device, desc = description("Context.create_green: resources", resources)
        device.primary_context()  # else each green context makes one and destroys it
        api, context = device.driver.api, cls(device, None, is_primary=False)
        handle = context._handle
        doing = f"creating a green context on {device!r}"
        code, green = api.cuGreenCtxCreate(desc, device.handle, _GREEN_FLAGS)
        if code:
            raise failure(api, code, "cuGreenCtxCreate", doing)
        code, raw = api.cuCtxFromGreenCtx(green)
        if code:
            api.cuGreenCtxDestroy(green)
            raise failure(api, code, "cuCtxFromGreenCtx", doing)
        handle.green = green
        # The end of a green context does not end its events.
        handle.timed_events = handle.untimed_events = None
        handle.own(raw)
        return context

    @property
    def is_green(self) -> bool:
        """Whether `create_green` made it, so that it has only a part of the multiprocessors."""
        return self._handle.green is not None

    @property
    def sm_resource(self) -> SmResource:
        """Query the multiprocessors that its kernels run on."""
        from .sm_resource import SM, SmResource

        handle, api = self._handle, self._api
        call = "cuDeviceGetDevResource" if handle.green is None else "cuCtxGetDevResource"
        if handle.green is None:
            code, native = api.cuDeviceGetDevResource(self._device.handle, SM)
        else:
            code, native = api.cuCtxGetDevResource(handle.raw, SM)
        if code:
            raise failure(api, code, call, f"querying the multiprocessors of {self!r}")
        return SmResource(self._device, native)

    @property
    def workqueues(self) -> WorkqueueResource:
        """Query the queues through which its streams submit work.

        Raises:
            UnsupportedError: the driver or cuda-bindings is older than CUDA 13.1.
        """
        from .workqueue_resource import workqueues_of

        handle = self._handle
        green = None if handle.green is None else handle.raw
        return workqueues_of(self._device, green, f"querying the workqueues of {self!r}")

    def __repr__(self) -> str:
        kind = "primary" if self._is_primary else "own"
        handle: object = self._handle
        if isinstance(handle, ContextHandle) and handle.green is not None:
            kind = "green"
        return f"<Context {kind}{', closed' if self.closed else ''} on device {self.ordinal}>"

    @property
    def _closed_text(self) -> str:
        handle: object = self._handle  # once closed, not a context's handle
        is_lost = isinstance(handle, ContextHandle) and handle.is_lost
        return f"the context on device {self.ordinal} was {'reset' if is_lost else 'closed'}"

    def _children(self) -> tuple[Closeable, ...]:
        # Events are many and short-lived: they are not registered, which would cost 1 µs each.
        events = living_with(EventHandle)
        own = [event for event in events if getattr(event, "_context", None) is self]
        return (*super()._children(), *own)

    @property
    def handle(self) -> CUcontext:
        """The CUcontext.

        Raises:
            ClosedError: it was closed.
        """
        return self._handle.raw

    @property
    def _api(self) -> DriverApi:
        return self._device.driver.api

    @property
    def ordinal(self) -> int:
        """The device's ordinal."""
        return self._device.ordinal

    @property
    def capability(self) -> GpuCapability:
        """The features of the device's compute capability."""
        from .capability import GpuCapability  # 2 ms, which few programs need

        return GpuCapability.from_compute_capability(*self._device.compute_capability)

    def priority_range(self) -> tuple[int, int]:
        """The lowest and the highest priority of streams, such as (0, -5)."""
        code, least, greatest = self._handle.call(self._api.cuCtxGetStreamPriorityRange)
        if code:
            doing = f"priorities of {self!r}"
            raise failure(self._api, code, "cuCtxGetStreamPriorityRange", doing)
        return least, greatest

    def bind(self) -> None:
        """Make this the calling thread's current context, in place of any other.

        `bound` does so for a block.
        """
        (code,) = self._api.cuCtxSetCurrent(self._handle.raw)
        if code:
            raise failure(self._api, code, "cuCtxSetCurrent", f"binding {self!r} to the thread")

    @contextmanager
    def bound(self) -> Iterator[None]:
        """Make this the calling thread's current context for a block, then the former one again."""
        code, former = self._api.cuCtxGetCurrent()
        if code:
            raise failure(self._api, code, "cuCtxGetCurrent", "querying the current context")
        try:
            self.bind()  # inside, so that an interrupt right after it takes it back
            yield
        finally:
            (code,) = self._api.cuCtxSetCurrent(former)
            if code:
                doing = "binding the former context to the thread"
                raise failure(self._api, code, "cuCtxSetCurrent", doing)

    def synchronize(self) -> None:
        """Wait until all work of the context is done, and return cached blocks to the pool.

        Raises:
            CudaError: some of that work failed.
        """
        run_deferred()
        free_cached_blocks(self._device.driver, self.ordinal)
        (code,) = self._handle.call_between_captures(self._handle.call, self._api.cuCtxSynchronize)
        if code:
            raise failure(self._api, code, "cuCtxSynchronize", f"waiting for {self!r}")
        run_deferred()

    @property
    def limits(self) -> ContextLimits:
        """Stack, heap and print buffer of its device code; readable and settable."""
        self._handle.raw  # noqa: B018  # raises once it is closed
        self._handle.raw  # noqa: B018  # raises once it is closed
        return ContextLimits(self)

    @property
    def cache_preference(self) -> CachePreference:
        """The preference for kernels without one of their own; queries and sets the driver's."""
        code, value = self._handle.call(self._api.cuCtxGetCacheConfig)
        if code:
            raise failure(self._api, code, "cuCtxGetCacheConfig", f"querying {self!r}")
        return CachePreference(int(value))

    @cache_preference.setter
    def cache_preference(self, preference: CachePreference) -> None:
        border.instance_of("Context.cache_preference", preference, CachePreference)
        config = CUfunc_cache(preference.value)
        (code,) = self._handle.call(self._api.cuCtxSetCacheConfig, config)
        if code:
            raise failure(self._api, code, "cuCtxSetCacheConfig", f"telling {self!r} {preference}")

    @contextmanager
    def profiling(self) -> Iterator[None]:
        """Let a profiler record only the block: ``with context.profiling():``.

        Start the profiler so that it waits for the block, such as by ``nsys profile -c
        cudaProfilerApi``.
        """
        (code,) = self._handle.call(self._api.cuProfilerStart)
        if code:
            raise failure(self._api, code, "cuProfilerStart", f"profiling {self!r}")
        try:
            yield
        finally:
            (code,) = self._handle.call(self._api.cuProfilerStop)
        if code:
            raise failure(self._api, code, "cuProfilerStop", f"profiling {self!r}")

    def memory_info(self) -> MemoryInfo:
        """Query the current free and total bytes of the device."""
        free_cached_blocks(self._device.driver, self.ordinal)
        code, free, total = self._handle.call(self._api.cuMemGetInfo)
        if code:
            raise failure(self._api, code, "cuMemGetInfo", f"the free memory of {self!r}")
        return MemoryInfo(free, total)

    def close(self) -> None:
        """Close the context and its streams, events, modules, graphs and textures.

        They raise `ClosedError` from now on, and the driver's context is destroyed with the last of
        its memory. A primary context stays. Idempotent.

        Raises:
            CudaError: the driver failed to destroy one of the objects.
            ExceptionGroup: it failed for several.
        """
        if not self._is_primary:
            self._give_up()

    def _give_up(self) -> None:
        self._kept.clear()
        self._resource = None
        super().close()

    def _adopt(self, child: Closeable) -> None:
        """Record an object that closes with the context; a primary one is never closed."""
        if not self._is_primary:
            super()._adopt(child)

    def _keep(self, kind: type[_T], make: Callable[[], _T]) -> _T:
        """Return the context's one object of `kind`; made at the first call."""
        instance = self._kept.get(kind)
        if instance is None:
            instance = self._kept.setdefault(kind, make())
            if self.closed:  # another thread has closed it meanwhile
                self._kept.clear()
                raise self._closed_error()
        # The key is the type of the value.
        assert isinstance(instance, kind)
        return instance

    def _drop(self, kind: type) -> None:
        """Drop the one object of `kind`."""
        self._kept.pop(kind, None)


def require_context(where: str, value: object) -> BaseContext:
    """Return the value, which is a context of cudadrv.

    Args:
        where: the name of the argument, for the error.
        value: the argument.
    """
    if isinstance(value, BaseContext):
        return value
    raise border.wrong_type(where, value, "give a Context")
