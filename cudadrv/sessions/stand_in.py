"""Putting the emulator behind the C libraries of the driver: `cudadrv.emulator.stand_in`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from types import TracebackType
from typing import Final, Unpack

from ptx.emulate import Limits
from ptx.read_only import Guarded, ReadOnly

from ..driver.driver_selection import Driver, set_current, set_default, settled
from ..driver.locks import process_lock
from ..driver.once_task import complete
from ..emulator.checks import CheckName
from ..emulator.emulator import NEWEST_DRIVER, Emulator
from ..emulator.hosting import clear_faults as clear_faults_of, keep_no_faults
from ..emulator.profiles import DeviceProperties, EmulatedDevice
from ..emulator.shared_libraries.libcuda import Libcuda
from ..emulator.shared_libraries.libnvidia_ml import LibnvidiaMl
from ..emulator.shared_libraries.libnvjitlink import LibnvJitLink
from ..emulator.shared_libraries.libnvrtc import LibNvrtc
from ..emulator.shared_libraries.library_files import (
    LIBCUDA,
    LIBNVIDIA_ML,
    early_folder_here,
    library_folder,
)
from ..emulator.shared_libraries.lock_wait import lock_functions
from ..emulator.shared_libraries.runtime_module import RuntimeModule
from ..emulator.shared_libraries.shared_object import is_loaded
from ..emulator.timeline.schedule import OrderName
from ..environment import emulated_devices, fault_policy, lock_wait_seconds
from ..errors import DriverSelectionError
from .session import devices_of, end, opened_here, raising_findings, reported_if_open


class _Substitutes:
    """The substitute libraries that the process has loaded.

    Attributes:
        libcuda, libnvjitlink: made for the first stand-in; others keep their addresses.
        libnvidia_ml: same, unless the process had loaded the driver's before.
        libnvrtc: changes of the real libraries.
        runtime: what is replaced in `cuda.bindings.runtime`.
        standing: the stand-in there is, which nobody else may hold.
    """

    def __init__(self) -> None:
        self.lock = process_lock()
        self.libcuda: Libcuda | None = None
        self.libnvjitlink: LibnvJitLink | None = None
        self.libnvidia_ml: LibnvidiaMl | None = None
        self.libnvrtc = LibNvrtc()
        self.runtime = RuntimeModule()
        self.standing: StandIn | None = None


_SUBSTITUTES: Final = _Substitutes()


class StandIn(Guarded, AbstractContextManager[Emulator]):
    """The emulator in the place of the driver, from when it is made until `close`.

    Attributes:
        emulator: what executes.
    """

    emulator: ReadOnly[Emulator] = ReadOnly("_emulator")

    def __init__(self, emulated: _Emulated) -> None:
        self._emulated = emulated
        # Owns each change from its first moment: an interrupt at any later point takes all back.
        self._stack = ExitStack()
        self._block = ExitStack()
        try:
            with settled(), _SUBSTITUTES.lock:
                self._replace_driver()
        except BaseException:
            with self._stack:
                raise

    def _replace_driver(self) -> None:
        if _SUBSTITUTES.standing is not None:
            raise DriverSelectionError(
                "an emulator already stands in for the CUDA driver: close it first"
            )
        folder = library_folder()
        libcuda = _SUBSTITUTES.libcuda = _SUBSTITUTES.libcuda or Libcuda(
            folder and folder / LIBCUDA
        )
        libnvjitlink = _SUBSTITUTES.libnvjitlink = _SUBSTITUTES.libnvjitlink or LibnvJitLink(
            early_folder_here()
        )
        self._stack.enter_context(self._block)
        self._emulator: Emulator = self._block.enter_context(self._emulated.standing())
        self._stack.callback(setattr, _SUBSTITUTES, "standing", None)
        self._stack.callback(complete, partial(self._leave, libcuda, libnvjitlink))
        functions = lock_functions()
        if functions is not None:
            functions.end_after(lock_wait_seconds())
        libcuda.use(self._emulator)
        own_nvml = folder and folder / LIBNVIDIA_ML
        if _SUBSTITUTES.libnvidia_ml is None and not is_loaded(LIBNVIDIA_ML, own_nvml):
            _SUBSTITUTES.libnvidia_ml = LibnvidiaMl(own_nvml)
        if _SUBSTITUTES.libnvidia_ml is not None:
            _SUBSTITUTES.libnvidia_ml.use(self._emulator)
        libnvjitlink.use()
        _SUBSTITUTES.libnvrtc.use()
        _SUBSTITUTES.runtime.use(self._emulator)
        _SUBSTITUTES.standing = self

    @staticmethod
    def _leave(libcuda: Libcuda, libnvjitlink: LibnvJitLink) -> None:
        _SUBSTITUTES.runtime.leave()
        _SUBSTITUTES.libnvrtc.is_used = False
        libcuda.leave()
        libnvjitlink.leave()
        if _SUBSTITUTES.libnvidia_ml is not None:
            _SUBSTITUTES.libnvidia_ml.leave()

    def __enter__(self) -> Emulator:
        return self._emulator

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._stack.__exit__(kind, error, trace)
        finally:
            self._emulated.end(destroys=error is None)

    def finish(self) -> None:
        """Run queued work and look for leaks, at the end of a process.

        Other libraries keep the emulator while the interpreter ends, as global objects of modules
        free their memory then.
        """
        self._block.close()

    def close(self) -> None:
        """Put nothing in the place of the driver; what is still queued runs first.

        Objects of cudadrv that were made meanwhile are closed.

        Raises:
            CheckError: a check found something.
        """
        with self:
            pass


def stand_in(
    devices: int | Sequence[EmulatedDevice] | None = None,
    *,
    driver_version: tuple[int, int] = NEWEST_DRIVER,
    limits: Limits | None = None,
    order: OrderName | None = None,
    seed: int | None = None,
    check: CheckName | Sequence[CheckName] | None = None,
    suppressions: str | os.PathLike[str] | None = None,
    raise_findings: bool = True,
    **properties: Unpack[DeviceProperties],
) -> StandIn:
    """Run other libraries on an emulator, to the end of the process or of a `with` block.

    The emulator replaces `libcuda.so.1` for `cuda.bindings`, `cuda.core`, Numba and others. It is
    the driver of this library too, so both use the same memory. Call this before anything uses the
    CUDA driver. Afterwards the functions return CUDA_ERROR_DEINITIALIZED, until the next call of
    `stand_in`.

    Args:
        devices: the number of devices, or the devices; by default those of CUDADRV_DRIVER, else
            one. CUDA_VISIBLE_DEVICES selects from the default ones.
        limits: limits of the kernels' execution, by default those of the environment.
        driver_version, order, seed, check, suppressions, raise_findings, properties: as of
            `session`.

    Raises:
        DriverSelectionError: the process has loaded a CUDA driver or nvJitLink already, an emulator
            replaces the driver already, or the system is not Linux.
        ValueError: properties are given with devices, or a device or an order is not valid.
    """
    emulator = Emulator(
        devices_of((emulated_devices() or 1) if devices is None else devices, properties),
        driver_version=driver_version,
        limits=limits,
        order=order,
        seed=seed,
        check=check,
        suppressions=suppressions,
    )
    if devices is None:
        emulator.follow_environment()
    if fault_policy() == "continue":
        keep_no_faults(emulator)
    return StandIn(_Emulated(emulator, raise_findings=raise_findings))


def is_standing() -> bool:
    """Return whether an emulator stands in for the driver."""
    return _SUBSTITUTES.standing is not None


def clear_faults() -> None:
    """Let the devices of the stand-in work again after kernels' faults."""
    standing = _SUBSTITUTES.standing
    if standing is not None:
        clear_faults_of(standing.emulator)


class _Emulated:
    """The emulator as the driver that the first call chooses, of this library too."""

    def __init__(self, emulator: Emulator, *, raise_findings: bool) -> None:
        self._emulator = emulator
        self._raises_findings = raise_findings
        self._name = opened_here()
        self._used: Driver | None = None

    @contextmanager
    def standing(self) -> Iterator[Emulator]:
        """Choose the emulator within the block, and run what is still queued at its end."""
        former = set_current(None)
        reported = reported_if_open(self._emulator, raise_findings=self._raises_findings)
        with reported, raising_findings(self._emulator, raise_findings=self._raises_findings):
            set_default(self._emulator)
            try:
                yield self._emulator
                self._emulator.finish()
            finally:
                set_default(None)
                self._used = set_current(former)
                if self._used is not None:
                    self._used.clear_caches()

    def end(self, *, destroys: bool) -> None:
        """Close the objects of this library that were made in the block."""
        used, self._used = self._used, None
        if used is not None:
            end(used, self._emulator, self._name, destroys=destroys)
