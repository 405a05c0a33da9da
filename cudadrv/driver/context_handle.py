"""Owning handles of contexts, of objects that belong to a context, and of modules."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar, TypeVarTuple, Unpack
from weakref import ref

from ._api import (
    CUcontext,
    CUevent,
    CUgreenCtx,
    CUmemorytype,
    CUmodule,
    CUpointer_attribute,
    CUresult,
    CUstream,
)
from .call_gate import CallGate, CapturePeriod
from .driver_api import DriverApi
from .driver_selection import Driver, call_bound, failure
from .handle import Handle, check
from .registry import Registry

_RawT = TypeVar("_RawT")
_T = TypeVar("_T")
_Args = TypeVarTuple("_Args")


class _CreatedContext(Handle[CUcontext]):
    """Destroys a context that was created; only its `ContextHandle` refers to it."""

    __slots__ = ("_driver", "_green", "_ordinal")

    def __init__(
        self, driver: Driver, raw: CUcontext, ordinal: int, green: CUgreenCtx | None
    ) -> None:
        self._driver = driver
        self._ordinal = ordinal
        self._green = green
        super().__init__(raw)

    @property
    def driver(self) -> Driver:
        """The driver that made the context."""
        return self._driver

    def _destroy(self) -> None:
        if self._green is not None:
            (code,) = self.api.cuGreenCtxDestroy(self._green)
            doing = f"destroying a green context on device {self._ordinal}"
            check(self, code, "cuGreenCtxDestroy", doing)
        else:
            (code,) = self.api.cuCtxDestroy(self.raw)
            check(self, code, "cuCtxDestroy", f"destroying a context on device {self._ordinal}")


# The destroyer of each existing handle of a created context. A collection may destroy objects that
# a finalizer saved from an earlier one. It then does not destroy their context before them.
_created: Final[dict[ref[ContextHandle], _CreatedContext]] = {}


class ContextHandle(Handle[CUcontext]):
    """A context. A created one is destroyed with it; a primary one stays until it is reset.

    Attributes:
        is_primary: whether it is the device's primary one.
        ordinal: the device's ordinal.
        green: of a green context, its handle as such.
        is_alone: whether copies work whichever context is current, or none.
        is_lost: whether it was reset, so that nothing of it is left.
        peers: contexts of other devices whose memory its kernels may use.
        known_streams: other libraries' streams that belonged to this context when queried, by
            their numbers.
        captures: the captures of its streams that are under way.
        gate: lets a capture begin while no call that concerns all streams is under way.
        timed_events: events of `Stream.record` that nothing refers to, for its next calls; None
            where each event is destroyed at once.
        untimed_events: the same of events without timing.
    """

    __slots__ = (
        "_driver", "captures", "destroyer", "gate", "green", "is_alone", "is_lost", "is_primary",
        "known_streams", "ordinal", "peers", "timed_events", "untimed_events",
    )  # fmt: skip

    def __init__(
        self, driver: Driver, raw: CUcontext | None, ordinal: int, *, is_primary: bool
    ) -> None:
        super().__init__(raw)
        self._driver = driver
        self.ordinal: int = ordinal
        self.is_primary: bool = is_primary
        self.green: CUgreenCtx | None = None
        self.destroyer: _CreatedContext | None = None
        self.is_lost: bool = False
        self.is_alone: bool = not (driver.has_several_devices or driver.has_ranges)
        # Two may be each other's peers: neither keeps the other alive.
        self.peers: Registry[ContextHandle] = Registry()
        self.known_streams: dict[int, CUstream] = {}
        self.captures: list[CapturePeriod] = []
        self.gate: CallGate = CallGate()
        # They end with the context. The emulator reports uses of destroyed events, and leaks.
        self.timed_events: list[CUevent] | None = [] if driver.keeps_blocks else None
        self.untimed_events: list[CUevent] | None = [] if driver.keeps_blocks else None

    @property
    def driver(self) -> Driver:
        """The driver that made the context."""
        return self._driver

    def own(self, raw: CUcontext) -> None:
        """Own a context that the driver has made, and let other threads find it."""
        self.raw = raw
        self.destroyer = _CreatedContext(self._driver, raw, self.ordinal, self.green)
        _created[ref(self, _created.pop)] = self.destroyer
        self._driver.contexts.add(self)

    @property
    def is_gone(self) -> bool:
        """Whether it was reset, or destroyed while something still refers to it."""
        return self.is_lost or (self.destroyer is not None and self.destroyer.is_destroyed)

    def suits_copies(self) -> bool:
        """Return whether copies work with the thread's current context: this one, or often none.

        Raises:
            CudaError: the call failed, or reported the failure of earlier work.
        """
        code, now = self._driver.api.cuCtxGetCurrent()
        if code:
            doing = "querying the current context"
            raise failure(self._driver.api, code, "cuCtxGetCurrent", doing)
        # Comparing takes a tenth of reading both numbers.
        return now == self.raw or (not int(now) and not self._driver.has_ranges)

    def mind_ranges(self) -> None:
        """From now on let copies in all contexts query which context is current."""
        self._driver.has_ranges = True
        for handle in self._driver.contexts.alive():
            assert isinstance(handle, ContextHandle)
            handle.is_alone = False

    def reaches(self, other: ContextHandle) -> bool:
        """Return whether kernels may use memory of a context: this one, a peer or a shared one."""
        return other is self or self.shares_with(other) or other in self.peers.alive()

    def shares_with(self, other: ContextHandle) -> bool:
        """Return whether both are a device's primary context, or green ones of the same device."""
        is_one = other.ordinal == self.ordinal and other._driver is self._driver
        return is_one and self._is_of_primary and other._is_of_primary

    @property
    def _is_of_primary(self) -> bool:
        return self.is_primary or self.green is not None

    def call(self, function: Callable[[Unpack[_Args]], _T], *args: *_Args) -> _T:
        """Call a function with the context current, and make the former one current again."""
        return call_bound(self._driver.api, self.raw, function, *args)

    def call_between_captures(self, function: Callable[[Unpack[_Args]], _T], *args: *_Args) -> _T:
        """Call a function of the driver that concerns all streams of the context.

        The driver rejects it while a stream captures, and invalidates the capture. So this waits
        for captures of other threads.

        Raises:
            StreamCaptureIsolationError: that wait cannot end, or exceeds its limit.
        """
        return self._call_between(lambda period: True, partial(function, *args))

    def call_in_legacy_order(self, function: Callable[[Unpack[_Args]], _T], *args: *_Args) -> _T:
        """As `call_between_captures`, on the legacy stream, which only blocking streams follow.

        Raises:
            StreamCaptureIsolationError: the wait for a capture cannot end, or exceeds its limit.
        """
        return self._call_between(lambda period: period.is_blocking, partial(function, *args))

    def _call_between(
        self, concerns: Callable[[CapturePeriod], bool], function: Callable[[], _T]
    ) -> _T:
        while True:
            mine, passes = self.gate.enter(), self.gate.passes
            try:
                others = [each for each in self.captures.copy() if concerns(each)]
                others = [each for each in others if each.is_open and not each.is_own]
                if not others:
                    return function()
            finally:
                passes.append(mine)
            others[0].wait()

    def _destroy_and_report(self) -> None:
        """Do nothing: a primary context stays, and another one has a `destroyer`."""


class ChildHandle(Handle[_RawT]):
    """Owns an object that belongs to a context, whose handle it holds.

    Attributes:
        context: the context's handle.
    """

    __slots__ = ("context",)

    context: ContextHandle
    raw: _RawT

    def __init__(self, context: ContextHandle, raw: _RawT | None = None) -> None:
        super().__init__(raw)
        self.context = context

    @property
    def driver(self) -> Driver:
        """The driver that made the object."""
        return self.context._driver

    @property
    def api(self) -> DriverApi:
        """The driver's functions."""
        return self.context._driver.api

    def make(
        self, function: Callable[[Unpack[_Args]], tuple[CUresult, _RawT]], *args: *_Args
    ) -> CUresult:
        """Let the driver make the object, with the context current; return its result."""
        api = self.context._driver.api  # as `call_bound` does, in one function
        (code,) = api.cuCtxPushCurrent(self.context.raw)
        if code:
            raise failure(api, code, "cuCtxPushCurrent", "binding a context for one call")
        try:
            result, self.raw = function(*args)
        finally:
            code, _ = api.cuCtxPopCurrent()
        if code:
            raise failure(api, code, "cuCtxPopCurrent", "restoring the previous context")
        return result

    def _destroying_driver(self) -> Driver | None:
        context = self.context
        if context.is_lost or (context.destroyer is not None and context.is_gone):
            return None
        return context._driver

    def _destroy(self) -> None:
        raise NotImplementedError


class ModuleHandle(ChildHandle[CUmodule]):
    """Owns a loaded module. Unloading it waits for the device (measured with driver 580)."""

    __slots__ = ()

    def _destroy(self) -> None:
        (code,) = self.context.call(self.api.cuModuleUnload, self.raw)
        check(self, code, "cuModuleUnload", f"unloading a module of device {self.context.ordinal}")


MEMORY_TYPE: Final = CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
_KNOWN: Final = (
    int(CUmemorytype.CU_MEMORYTYPE_HOST),
    int(CUmemorytype.CU_MEMORYTYPE_DEVICE),
    int(CUmemorytype.CU_MEMORYTYPE_UNIFIED),
)


def known_at(
    context: ContextHandle, address: int, attributes: tuple[CUpointer_attribute, ...] = ()
) -> list[object] | None:
    """Return the driver's attributes of memory; None for memory unknown to it.

    This calls cuPointerGetAttributes, which returns nulls for other memory.
    cuPointerGetAttribute fails there, and tools that check a program's calls report each failure.

    Raises:
        CudaError: the call failed, or reported the failure of earlier work.
    """
    api, count = context._driver.api, 1 + len(attributes)
    queried = (MEMORY_TYPE, *attributes)
    code, values = api.cuPointerGetAttributes(count, queried, address)
    if code == CUresult.CUDA_ERROR_INVALID_CONTEXT:
        code, values = context.call(api.cuPointerGetAttributes, count, queried, address)
        # By the manual: with unified addresses the memory belongs to no context.
        if code == CUresult.CUDA_ERROR_INVALID_CONTEXT:
            return None
    if code:
        doing = f"querying the memory at {address:#x}"
        raise failure(api, code, "cuPointerGetAttributes", doing)
    kind, *values_after_kind = values
    return values_after_kind if isinstance(kind, int) and int(kind) in _KNOWN else None
