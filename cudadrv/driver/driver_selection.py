"""The driver in use: the CUDA driver or the emulator, chosen once per process; and failed calls."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    TypeVar,
    TypeVarTuple,
    Unpack,
    cast,
    overload,
)

from ..environment import emulated_devices, switch
from ..errors import (
    CudadrvError,
    CudaError,
    DriverAnswerError,
    DriverSelectionError,
    ForkedProcessError,
)
from ._api import CopyWatch, CUcontext, CUresult, HostAccesses, MemoryWatch, NamesKernels
from .deferred_start import register_at_exit, take_start
from .driver_api import DriverApi
from .driver_log import DriverLog
from .loading import load_cuda
from .locks import process_lock
from .registry import Registry
from .types import Dependent

if TYPE_CHECKING:
    from ..emulator.emulator import Emulator

_T = TypeVar("_T")
_S = TypeVar("_S")
_Ts = TypeVarTuple("_Ts")


class Ending:
    """A cached object that threads refer to, so that it needs an explicit end."""

    __slots__ = ()

    def end(self) -> None:
        """Release the driver's objects."""
        raise NotImplementedError


class Driver:
    """One `DriverApi` in use, with objects cached per device ordinal for its lifetime.

    Attributes:
        api: the functions.
        accepts_newer_ptx: whether it is an emulated driver that accepts PTX of every NVRTC.
        keeps_blocks: whether freed memory is cached for later allocations: small blocks by their
            streams, large results on the host. False on an emulator, which detects uses of freed
            memory.
        is_emulated: whether `api` is the emulator. Only the choice of image format reads it.
        lock: held while a cached object is made; re-entrant, as a finalizer may need it.
        contexts: the handles of its contexts, for waiting for all of them.
        streams: the streams made on it, for observers.
        launchers: the launchers made on it, which have its functions built in.
        sharing: public objects whose handles refer to objects of the user.
        host_memory: the handles of host memory that it allocated.
        is_gone: whether nothing of it is destroyed any more: this process was forked after another
            one initialised it, or this process ends and the driver with it.
        memory_watch: receives reports of cached and reused memory; None nearly always.
        host_accesses: receives reports of arrays that the host itself reads; None nearly always.
        copy_watch: receives reports of arrays that are copied to the host; None nearly always.
        name_kernels: receives the name expressions of modules; None for the driver.
        has_failed: whether an error that leaves a context unusable was raised.
        has_ranges: whether memory was ever mapped into reserved ranges; copies then check contexts.
    """

    __slots__ = (
        "__weakref__", "_caches", "_has_several_devices", "_pid", "accepts_newer_ptx", "api",
        "contexts", "copy_watch", "has_failed", "has_ranges", "host_accesses", "host_memory",
        "is_emulated", "is_gone", "keeps_blocks", "launchers", "lock", "memory_watch",
        "name_kernels", "sharing", "streams",
    )  # fmt: skip

    def __init__(self, api: DriverApi) -> None:
        (code,) = api.cuInit(0)
        if code:
            raise failure(api, code, "cuInit", "initialising the CUDA driver")
        self.api: DriverApi = api
        self.is_emulated: bool = getattr(api, "is_emulated", False)
        self.accepts_newer_ptx: bool = getattr(api, "accepts_newer_ptx", False)
        self.keeps_blocks: bool = _keeps_blocks(api)
        self.memory_watch: MemoryWatch | None = getattr(api, "memory_watch", None)
        self.host_accesses: HostAccesses | None = getattr(api, "host_accesses", None)
        self.copy_watch: CopyWatch | None = getattr(api, "copy_watch", None)
        self.name_kernels: NamesKernels | None = getattr(api, "name_kernels", None)
        self.lock: threading.RLock = process_lock()
        self._pid = os.getpid()
        self._has_several_devices: bool | None = None
        self._caches: dict[type, dict[int, object]] = {}
        self.contexts: Registry[object] = Registry()
        self.streams: Registry[object] = Registry()
        self.launchers: Registry[Dependent] = Registry()
        self.sharing: Registry[object] = Registry()
        self.host_memory: Registry[object] = Registry()
        self.is_gone: bool = False
        self.has_failed: bool = False
        self.has_ranges: bool = False
        _drivers.add(self)

    @property
    def has_several_devices(self) -> bool:
        """Return whether a context of another device may be current; the driver is queried once.

        Raises:
            CudaError: the driver reported an error.
        """
        if self._has_several_devices is None:
            self._has_several_devices = device_count(self.api) > 1
        return self._has_several_devices

    def cache(self, kind: type[_T]) -> dict[int, _T]:
        """Return the cache of objects of `kind` by device ordinal, which lives as the driver."""
        # One dict holds caches of several types; the key determines the type, so the cast is
        # correct.
        return cast(dict[int, _T], self._caches.setdefault(kind, {}))

    def one_of(self, kind: type[_T], ordinal: int = 0) -> _T:
        """Return the one object of `kind` for a device, or with 0 for the driver."""
        # The key determines the type, as in `cache`.
        cache: dict[int, Any] = self._caches.setdefault(kind, {})
        instance: _T | None = cache.get(ordinal)
        if instance is None:
            stored: _T = cache.setdefault(ordinal, kind())  # another thread's, if that was faster
            return stored
        return instance

    def cached(self) -> dict[type, dict[int, object]]:
        """Return all caches, by the type of their objects."""
        return self._caches

    def clear_caches(self) -> None:
        """Empty all caches, as the driver is no longer the one in use.

        Cached objects have handles, and those refer to this driver. A collection could not free
        such a cycle, as `_live` keeps handles alive.

        Raises:
            CudaError: the driver failed to destroy an object, or reported the failure of earlier
                work.
        """
        try:
            for cache in list(self._caches.values()):
                for cached in list(cache.values()):
                    if isinstance(cached, Ending):
                        cached.end()
        finally:
            self._caches.clear()

    @property
    def forked_from(self) -> int | None:
        """The process that initialised the driver, if this one is a fork of it."""
        return None if self._pid == os.getpid() else self._pid


def _keeps_blocks(api: DriverApi) -> bool:
    setting = switch("CUDADRV_KEEP_BLOCKS")
    return getattr(api, "keeps_blocks", True) if setting is None else setting


# Every driver of the process, for a forked child and for the process's end.
_drivers: Final[Registry[Driver]] = Registry()


# Reports of this process's end, by a token of each. This module is imported before all that uses a
# driver, so its exit handler runs after most others, whose work is reported too.
_at_end: Final[dict[object, Callable[[], object]]] = {}


def _end() -> None:
    try:
        for report in list(_at_end.values()):
            report()
    finally:
        _leave()


register_at_exit(_end)


def _leave() -> None:
    _at_end.clear()
    for driver in _drivers.alive():
        driver.is_gone = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave)


def report_at_end(emulator: Emulator, *, immediately: bool) -> Callable[[], object]:
    """Run queued work and report findings when the process ends; return a function to cancel it.

    Args:
        emulator: the emulator.
        immediately: whether each finding is also reported after the call that found it.
    """
    if emulator.order == "immediate" and not emulator.checks.names:
        return _at_end.keys  # nothing to cancel
    from .process_report import ProcessReport  # only with checks or another order

    def roots() -> Iterable[object]:
        return [driver.cached() for driver in _drivers.alive() if driver.api is emulator]

    report = ProcessReport(emulator, roots, immediately=immediately)
    _at_end[report] = report.finish
    return partial(_at_end.pop, report, None)


class _Selection:
    """The driver that the process uses.

    Attributes:
        driver: the one in use; None while none is chosen.
        standing: replaces the CUDA driver of the whole process, whatever CUDADRV_DRIVER selects.
        opener: sets the driver at the first call, instead of a choice; None nearly always.
    """

    def __init__(self) -> None:
        self.lock = process_lock()
        self.driver: Driver | None = None
        self.standing: DriverApi | None = None
        self.opener: Callable[[], object] | None = None

    def first(self) -> Driver:
        """Return the driver for the first call; the lock is held."""
        self.settle()
        if self.opener is not None:
            self.opener()
            self.opener = None
        if self.driver is None:
            self.driver = Driver(self.choose())
        return self.driver

    def settle(self) -> None:
        """Start what replaces the driver of the process, if that waits; the lock is held."""
        start = take_start()
        if start is not None:
            start()

    def choose(self) -> DriverApi:
        """Load the driver that CUDADRV_DRIVER selects: "cuda" (the default), "emulator[:N]"."""
        if self.standing is not None:
            return self.standing
        count = emulated_devices()
        if count is None:
            return load_cuda()
        from ..emulator.emulator import Emulator  # most processes need no emulator: 20 ms

        try:
            emulator = Emulator(devices=count)
        except ValueError as error:  # of CUDADRV_EMULATOR_ORDER
            raise DriverSelectionError(str(error)) from None
        emulator.follow_environment()
        report_at_end(emulator, immediately=True)
        return emulator


_MOST_DEVICES: Final = 1 << 16  # more than any host has, and quickly counted

_selection: Final = _Selection()


def current() -> Driver:
    """Return the driver in use, initialised; the first call chooses it.

    Raises:
        DriverNotFoundError: there is no CUDA driver; another call is safe and raises the same.
        CudaError: cuInit failed.
        ForkedProcessError: it was initialised before this process was forked.
    """
    driver = _selection.driver
    if driver is None:
        with _selection.lock:
            driver = _selection.driver
            if driver is None:
                driver = _selection.first()
    return driver


def current_or_none() -> Driver | None:
    """Return the driver in use, or None while none is chosen."""
    return _selection.driver


def set_current(driver: Driver | None) -> Driver | None:
    """Replace the driver in use by `driver`; return the former one, None if there was none."""
    with settled():
        former, _selection.driver = _selection.driver, driver
        return former


@contextmanager
def settled() -> Iterator[None]:
    """Hold the lock of the choice of the driver; what replaces the process's driver has started."""
    with _selection.lock:
        _selection.settle()
        yield


def set_default(api: DriverApi | None) -> None:
    """Let the first call choose `api`; None restores the choice by CUDADRV_DRIVER.

    It is not initialised before its first use, so that the process may be forked until then.
    """
    _selection.standing = api


def set_opener(opener: Callable[[], object] | None) -> None:
    """Let the first call, while no driver is in use, call `opener`, which sets one."""
    with _selection.lock:
        _selection.opener = opener


def is_chosen() -> bool:
    """Return whether a driver is in use, or the choice is made."""
    with settled():
        choices = (_selection.driver, _selection.standing, _selection.opener)
    return any(choice is not None for choice in choices)


def call_bound(
    api: DriverApi,
    context: CUcontext,
    function: Callable[[Unpack[_Ts]], _T],
    *args: *_Ts,
) -> _T:
    """Call a function with a context current, and make the former one current again.

    For functions of the driver that take no stream and so use whichever context is current.
    """
    (code,) = api.cuCtxPushCurrent(context)
    if code:
        raise failure(api, code, "cuCtxPushCurrent", "binding a context for one call")
    try:
        result = function(*args)
    finally:
        code, _ = api.cuCtxPopCurrent()
    if code:
        raise failure(api, code, "cuCtxPopCurrent", "restoring the previous context")
    return result


def device_count(api: DriverApi) -> int:
    """Return how many devices a driver has.

    Raises:
        DriverAnswerError: it returned an impossible number.
        CudaError: it failed.
    """
    code, count = api.cuDeviceGetCount()
    if code == CUresult.CUDA_ERROR_NO_DEVICE:
        return 0
    if code:
        raise failure(api, code, "cuDeviceGetCount", "counting devices")
    if not 0 <= count <= _MOST_DEVICES:
        raise DriverAnswerError(
            f"cuDeviceGetCount returned {count} devices: the driver is damaged or no CUDA driver\n"
            "  update or reinstall the NVIDIA driver, or run on the emulator: set "
            "CUDADRV_DRIVER=emulator"
        )
    return count


@overload
def checked(api: DriverApi, call: str, result: tuple[CUresult], doing: str) -> None: ...
@overload
def checked(api: DriverApi, call: str, result: tuple[CUresult, _T], doing: str) -> _T: ...
@overload
def checked(
    api: DriverApi, call: str, result: tuple[CUresult, _T, _S, *_Ts], doing: str
) -> tuple[_T, _S, *_Ts]: ...
def checked(api: DriverApi, call: str, result: tuple[Any, ...], doing: str) -> object:
    """Return the results of a driver call without its CUresult: None, one value or a tuple.

    For calls that are not time-critical, in one line:
    ``size = checked(api, "cuDeviceTotalMem", api.cuDeviceTotalMem(device), "reading the size")``.

    Raises:
        CudaError: the call failed while `doing` something.
    """
    code, *values = result
    if code:
        raise failure(api, code, call, doing)
    return tuple(values) if len(values) > 1 else values[0] if values else None


def _driver_with(api: DriverApi) -> Driver | None:
    """Return the driver that has these functions; else the one in use."""
    driver = _selection.driver
    if driver is None or driver.api is not api:
        return next((other for other in _drivers.alive() if other.api is api), driver)
    return driver


def forked_error(doing: str, parent: int) -> ForkedProcessError:
    """Return the error of a use of CUDA in a child of the process that initialised it."""
    return ForkedProcessError(
        f"{doing}: CUDA was initialised in process {parent} before the fork\n"
        '  the driver rejects the child: start processes with multiprocessing "spawn"'
    )


def failure(api: DriverApi, code: CUresult, call: str, doing: str) -> CudadrvError:
    """Return the typed error for a driver call that returned `code` while `doing` something.

    The text is the driver's own; the emulator's names the kernel, thread and address of a fault.
    The log of the driver is read here alone, so it costs calls that succeed nothing.
    """
    value = int(code)
    driver = _driver_with(api)
    if value == CUresult.CUDA_ERROR_NOT_INITIALIZED and driver is not None:
        parent = driver.forked_from
        if parent is not None:
            return forked_error(doing, parent)
    log: DriverLog | None = getattr(api, "driver_log", None)
    reason = "" if log is None else log.reason(value, call)
    _, text = api.cuGetErrorString(code)
    fault: Exception | None = getattr(api, "last_fault", None)
    error = CudaError.for_code(value)(
        doing,
        call=call,
        code=value,
        text=text.decode(errors="replace") if text else "",
        explained=fault is not None,
        reason=reason,
    )
    if error.sticky and driver is not None:
        driver.has_failed = True
    error.fault = fault
    return error
