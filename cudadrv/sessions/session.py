"""Putting the emulator in the place of the driver: `cudadrv.emulator.use` and `session`."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Unpack, cast

from ptx.emulate.threads.limits import DEFAULT_LIMITS, Limits

from ..driver.context import BaseContext
from ..driver.deferred_release import run_deferred
from ..driver.driver_selection import Driver, current, current_or_none, is_chosen, set_current
from ..driver.handle import Closeable, Handle, living
from ..emulator.call_site import user_call_site
from ..emulator.checks import CheckName
from ..emulator.emulator import NEWEST_DRIVER, Emulator
from ..emulator.profiles import DeviceProperties, EmulatedDevice, given_devices
from ..emulator.report import still_queued
from ..emulator.timeline.schedule import OrderName
from ..errors import ArgumentValueError, CheckError, CudadrvError, DriverSelectionError

if TYPE_CHECKING:
    from ..emulator.counters import Counters


def use(
    devices: int | Sequence[EmulatedDevice] = 1,
    *,
    driver_version: tuple[int, int] = NEWEST_DRIVER,
    limits: Limits = DEFAULT_LIMITS,
    order: OrderName | None = None,
    seed: int | None = None,
    check: CheckName | Sequence[CheckName] | None = None,
    suppressions: str | os.PathLike[str] | None = None,
    **properties: Unpack[DeviceProperties],
) -> Emulator:
    """Use the emulator as the driver of the process, and return it.

    The arguments are those of `session`. Findings are in `Emulator.findings`.

    Raises:
        DriverSelectionError: the process has used a driver already.
        ValueError: properties are given with devices, or a device or an order is not valid.
    """
    emulator = Emulator(
        devices_of(devices, properties),
        driver_version=driver_version, limits=limits, order=order, seed=seed, check=check,
        suppressions=suppressions,
    )  # fmt: skip
    chosen = Driver(emulator)
    former = current() if is_chosen() else set_current(chosen)
    if former is not None:
        if current_or_none() is chosen:
            set_current(former)
        kind = "the emulator" if former.is_emulated else "the CUDA driver"
        raise DriverSelectionError(
            f"cudadrv.emulator.use() came after the first driver call, which chose {kind}\n"
            "  call it first, set CUDADRV_DRIVER=emulator, or use emulator.session() for a while"
        )
    return emulator


@contextmanager
def session(
    devices: int | Sequence[EmulatedDevice] = 1,
    *,
    driver_version: tuple[int, int] = NEWEST_DRIVER,
    limits: Limits = DEFAULT_LIMITS,
    order: OrderName | None = None,
    seed: int | None = None,
    check: CheckName | Sequence[CheckName] | None = None,
    suppressions: str | os.PathLike[str] | None = None,
    raise_findings: bool = True,
    **properties: Unpack[DeviceProperties],
) -> Iterator[Emulator]:
    """Use a new emulator as the driver of a `with` block; afterwards the former driver again.

    The driver is that of the whole process: do not open sessions in several threads at once.
    Operations that are still queued run at the end of the block. Then its objects are closed: every
    later use raises `ClosedError`.

    Args:
        devices: the number of devices, or the devices.
        driver_version: the CUDA version of the driver, such as (13, 0).
        limits: limits of the kernels' execution.
        order: when operations run. "immediate" is at their call, "late" when something needs them,
            "random" by `seed`. By default CUDADRV_EMULATOR_ORDER. An error that leaves the block
            under "random" has a note with the seed.
        seed: of the order "random".
        check: the checks of kernels, by default CUDADRV_CHECK. "race" finds unordered accesses to
            the same bytes. "init" finds reads of unwritten memory. "sync" finds barriers that some
            threads skip. "bounds" finds accesses outside of the array of a pointer. "assemble"
            finds modules that NVIDIA's assembler rejects. "leak" finds objects that are not freed.
        suppressions: a file of findings to leave out, by default CUDADRV_CHECK_SUPPRESSIONS.
        raise_findings: whether findings raise `CheckError` at the end of the block. They are in
            `Emulator.findings` anyway.
        properties: those of each device, as of `EmulatedDevice`.

    Raises:
        CheckError: a check found something; not for findings that can be intended.
        ValueError: properties are given with devices, or a device or an order is not valid.
    """
    emulator = Emulator(
        devices_of(devices, properties),
        driver_version=driver_version, limits=limits, order=order, seed=seed, check=check,
        suppressions=suppressions,
    )  # fmt: skip
    with opened(emulator, opened_here(), raise_findings=raise_findings):
        yield emulator


def opened_here() -> str:
    """Return the words after "session" for one that the user's code opens now."""
    place = user_call_site()
    return f"opened at {place}" if place else "of this process"


@contextmanager
def opened(emulator: Emulator, name: str, *, raise_findings: bool) -> Iterator[None]:
    """Use an emulator as the driver of a `with` block; then end it, and close all its objects.

    Args:
        emulator: the emulator.
        name: the words after "session", for the errors of uses after the block.
        raise_findings: as of `session`.
    """
    driver = Driver(emulator)
    is_done = False
    try:
        with raising_findings(emulator, raise_findings=raise_findings), _installed(driver):
            yield
            emulator.finish()
            is_done = True
    finally:
        end(driver, emulator, name, destroys=is_done)


def end(driver: Driver, emulator: Emulator, name: str, *, destroys: bool) -> None:
    """Close every object of a session that has ended, and let each later use raise `ClosedError`.

    Args:
        driver: the driver of the session.
        emulator: its emulator, which raises for every call from now on.
        name: as of `opened`.
        destroys: whether objects are destroyed, which calls the functions of their owners. Without
            it nothing of the session runs any more, such as work that was queued at an error.
    """
    cause = (
        f"\n  its emulator session has ended: the session {name}\n"
        "  make the object in each session, or get it from a cudadrv.CachedBackend"
    )
    if not destroys or any(device.fault for device in emulator._devices):
        driver.is_gone = True
        emulator.end(cause)
    for public in _open_objects(driver):
        with suppress(Exception):  # of work that failed; no caller waits for it
            public._close_with_parent()
        public._mark_closed(cause)
    driver.is_gone = True
    emulator.end(cause)
    for public in _open_objects(driver):
        public._mark_closed(cause)  # made meanwhile by a finalizer or another thread


def _open_objects(driver: Driver) -> list[Closeable]:
    """Return the open public objects of a driver, contexts last: they close what they own."""
    sharing = [public for public in driver.sharing.alive() if isinstance(public, Closeable)]
    objects = [
        public
        for public in (*living(), *sharing)
        if isinstance(public._handle, Handle) and public._handle.driver is driver
    ]
    return sorted(objects, key=lambda public: isinstance(public, BaseContext))


@contextmanager
def _installed(driver: Driver) -> Iterator[None]:
    """The driver in use within the block."""
    former = set_current(driver)
    try:
        yield
    finally:
        set_current(former)
        driver.clear_caches()


@contextmanager
def raising_findings(emulator: Emulator, *, raise_findings: bool) -> Iterator[None]:
    """Look for leaks of a block that has ended, and raise its findings."""
    try:
        yield
        look_for_leaks(emulator)
        if raise_findings:
            _raise_findings(emulator)
    except Exception as error:
        queued = still_queued(emulator.queued, "When this error left the session")
        if queued and not isinstance(error, CudadrvError):  # those say themselves what was wrong
            error.add_note(queued)
        if emulator.order.startswith("random"):
            error.add_note(emulator.repeated_by)
        raise


def look_for_leaks(emulator: Emulator) -> None:
    """Look for what is left of a program that has ended, where that is checked."""
    if "leak" in emulator.checks.names:
        emulator.look_for_leaks()
        if emulator.checks.leaks:  # a collection costs more than most sessions
            gc.collect()
            run_deferred()  # what graphs kept
            emulator.look_for_leaks()


@contextmanager
def counting() -> Iterator[Counters]:
    """Count what the launches of a `with` block execute, on the emulator in use (docs/counters.md).

    Queued operations run before the block and at its end.

    Raises:
        DriverSelectionError: the driver in use is not the emulator.
    """
    driver = current()
    if not driver.is_emulated:
        raise DriverSelectionError(
            "counting needs the emulator, and this process uses the CUDA driver\n"
            "  set CUDADRV_DRIVER=emulator, or use cudadrv.emulator.session() around the block; "
            "on a GPU use Nsight Compute"
        )
    # An emulated driver is an Emulator, or a trace around it, which has its attributes.
    with cast(Emulator, driver.api).counting() as counters:
        yield counters


def _raise_findings(emulator: Emulator) -> None:
    """Raise what nobody was told of: faults failed a launch, orders have their own warning."""
    findings = tuple(
        finding
        for finding in emulator.findings
        if finding.check != "order" and not finding.benign and not finding.is_told
    )
    if findings:
        raise CheckError("\n".join(map(str, findings)), findings)


def devices_of(
    devices: int | Sequence[EmulatedDevice], properties: DeviceProperties
) -> Sequence[EmulatedDevice]:
    """The devices that a count with properties means, or that are given."""
    is_count = hasattr(devices, "__index__")
    if properties and not is_count:
        raise ArgumentValueError(
            f"{', '.join(properties)} cannot be given with devices of DeviceProperties: "
            "use dataclasses.replace on a device"
        )
    return given_devices(devices, lambda: EmulatedDevice(**properties))
