"""Putting the emulator in the place of the driver: `cudadrv.emulator.use` and `session`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Unpack, cast

from ptx.emulate import Limits
from ptx.shown_path import shown_path
from ptx.standard_streams import write_error
from ptx.visible_text import visible

from ..driver.driver_selection import (
    Driver,
    current,
    current_or_none,
    is_chosen,
    report_at_end,
    set_current,
    settled,
)
from ..driver.handle import Closeable, Handle, living
from ..driver.process_report import look_for_leaks
from ..emulator.call_site import user_call_site
from ..emulator.checks import CheckName
from ..emulator.emulator import NEWEST_DRIVER, Emulator
from ..emulator.hosting import is_broken, still_queued
from ..emulator.profiles import DeviceProperties, EmulatedDevice, given_devices
from ..emulator.timeline.schedule import OrderName
from ..errors import ArgumentValueError, CheckError, CudadrvError, DriverSelectionError

if TYPE_CHECKING:
    from ptx.emulate.check.findings import Found

    from ..emulator.counters import Counters


def use(
    devices: int | Sequence[EmulatedDevice] = 1,
    *,
    driver_version: tuple[int, int] = NEWEST_DRIVER,
    limits: Limits | None = None,
    order: OrderName | None = None,
    seed: int | None = None,
    check: CheckName | Sequence[CheckName] | None = None,
    suppressions: str | os.PathLike[str] | None = None,
    **properties: Unpack[DeviceProperties],
) -> Emulator:
    """Use the emulator as the driver of the process, and return it.

    The arguments are those of `session`. Findings are in `Emulator.findings`. They are also printed
    on standard error, and a process with findings ends with status 66 (docs/checks.md).

    Raises:
        DriverSelectionError: the process has used a driver already.
        ValueError: properties are given with devices, or a device or an order is not valid.
    """
    emulator = Emulator(
        devices_of(devices, properties),
        driver_version=driver_version,
        limits=limits,
        order=order,
        seed=seed,
        check=check,
        suppressions=suppressions,
    )
    chosen = Driver(emulator)
    former = current() if is_chosen() else set_current(chosen)
    if former is None:
        report_at_end(emulator, immediately=True)
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
    limits: Limits | None = None,
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
        driver_version: the CUDA version of the driver, such as (13, 0). If it is older than NVRTC,
            `Context.target` is a cubin as on a GPU, and its PTX is executed.
        limits: limits of the kernels' execution, by default those of the environment.
        order: when operations run. "immediate" is at their call, "late" when something needs them,
            "random" by `seed`. By default CUDADRV_EMULATOR_ORDER. An error that leaves the block
            under "random" has a note with the seed.
        seed: of the order "random".
        check: the checks of kernels, by default CUDADRV_CHECK. "race" finds unordered accesses to
            the same bytes. "init" finds reads of unwritten memory. "sync" finds barriers that some
            threads skip. "bounds" finds accesses outside of the array of a pointer. "divide"
            finds divisions of integers by zero. "nan" finds the instructions that make NaNs and
            infinities. "assemble" finds modules that NVIDIA's assembler rejects. "leak" finds
            objects that are not freed.
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
        driver_version=driver_version,
        limits=limits,
        order=order,
        seed=seed,
        check=check,
        suppressions=suppressions,
    )
    with opened(emulator, opened_here(), raise_findings=raise_findings):
        yield emulator


def opened_here() -> str:
    """Return the words after "session" for one that the user's code opens now."""
    place = shown_path(user_call_site())
    return f"opened at {place}" if place else "of this process"


@contextmanager
def opened(
    emulator: Emulator,
    name: str,
    *,
    raise_findings: bool,
    roots: Callable[[], Iterable[object]] | None = None,
) -> Iterator[None]:
    """Use an emulator as the driver of a `with` block; then end it, and close all its objects.

    Args:
        emulator: the emulator.
        name: the words after "session", for the errors of uses after the block.
        raise_findings: as of `session`.
        roots: for a whole program, whose modules may hold objects; as of `look_for_leaks`.
    """
    driver = Driver(emulator)
    process = os.getpid()
    is_done = False
    try:
        with (
            reported_if_open(emulator, raise_findings=raise_findings),
            raising_findings(emulator, raise_findings=raise_findings, roots=roots),
            _installed(driver),
        ):
            yield
            if os.getpid() == process:  # not in a child that the block has forked
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
        "  make the object in each session, or get it from a cudadrv.runtime.CachedBackend"
    )
    if not destroys or is_broken(emulator):
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
    """Return the open public objects of a driver, contexts last: they close what they own.

    It imports nothing: an abandoned session may end after the interpreter's modules.
    """
    sharing = [public for public in driver.sharing.alive() if isinstance(public, Closeable)]
    objects = [
        public
        for public in (*living(), *sharing)
        if isinstance(public._handle, Handle) and public._handle.driver is driver
    ]
    return sorted(objects, key=lambda public: public._has_unregistered)


@contextmanager
def _installed(driver: Driver) -> Iterator[None]:
    """The driver in use within the block."""
    with settled():
        former = current_or_none()
    try:
        set_current(driver)  # inside, so that an interrupt in it takes it back
        yield
    finally:
        try:
            set_current(former)
        finally:
            set_current(former)  # again, as an interrupt may have come at the call before
            driver.clear_caches()


@contextmanager
def reported_if_open(emulator: Emulator, *, raise_findings: bool) -> Iterator[None]:
    """Report the findings of a block at the end of the process, if the program never leaves it."""
    cancel = report_at_end(emulator, immediately=False) if raise_findings else None
    try:
        yield
    finally:
        if cancel is not None:
            cancel()


@contextmanager
def raising_findings(
    emulator: Emulator,
    *,
    raise_findings: bool,
    roots: Callable[[], Iterable[object]] | None = None,
) -> Iterator[None]:
    """Look for leaks of a block that has ended, and raise its findings.

    If an error leaves the block, they become a note of the error.
    """
    process = os.getpid()
    try:
        yield
        if os.getpid() != process:
            return  # a child that the block has forked: its parent reports
        look_for_leaks(emulator, roots)
        if raise_findings:
            _raise_findings(emulator)
    except Exception as error:
        _add_notes(error, emulator, with_findings=raise_findings)
        raise
    except BaseException as error:
        if raise_findings:
            _report_at_exit(error, emulator)
        raise


def _add_notes(error: Exception, emulator: Emulator, *, with_findings: bool) -> None:
    """Add to an error that leaves a session what may explain it."""
    queued = still_queued(emulator.queued, "When this error left the session")
    if queued and not isinstance(error, CudadrvError):  # those say themselves what was wrong
        error.add_note(queued)
    if with_findings and not isinstance(error, CheckError):
        for finding in _unseen(emulator):
            error.add_note(visible(str(finding)))
    if emulator.order.startswith("random"):
        error.add_note(emulator.repeated_by)


def _report_at_exit(leaving: BaseException, emulator: Emulator) -> None:
    """Report the findings of a session that SystemExit, KeyboardInterrupt or the like leaves.

    Raises:
        CheckError: the program would have ended as if it had succeeded.
    """
    findings = _unseen(emulator)
    if isinstance(leaving, SystemExit) and leaving.code in (None, 0):
        _raise_findings(emulator)
    for finding in findings:
        write_error(f"{finding}\n")


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


def _unseen(emulator: Emulator) -> tuple[Found, ...]:
    """Return the findings that no call has raised; orders have a warning of their own."""
    return tuple(
        finding
        for finding in emulator.findings
        if finding.check != "order" and not finding.benign and not finding.is_told
    )


def _raise_findings(emulator: Emulator) -> None:
    """Raise the findings that no call has raised."""
    findings = _unseen(emulator)
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
