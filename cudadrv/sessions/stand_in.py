"""Putting the emulator behind the C libraries of the driver: `cudadrv.emulator.stand_in`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import TracebackType
from typing import Final, Unpack

from ptx.emulate.threads.limits import Limits

from ..driver.driver_selection import emulated_devices, emulated_limits, set_current, set_default
from ..driver.locks import process_lock
from ..emulator.checks import CheckName
from ..emulator.emulator import NEWEST_DRIVER, Emulator
from ..emulator.profiles import DeviceProperties, EmulatedDevice
from ..emulator.shared_libraries.libcuda import Libcuda
from ..emulator.shared_libraries.libnvjitlink import LibnvJitLink
from ..emulator.shared_libraries.runtime_module import RuntimeModule
from ..emulator.timeline.schedule import OrderName
from ..errors import DriverSelectionError
from .session import devices_of, raising_findings


class _Substitutes:
    """The substitute libraries that the process has loaded.

    Attributes:
        libcuda, libnvjitlink: made for the first stand-in; others keep their addresses.
        runtime: what is replaced in `cuda.bindings.runtime`.
        standing: the stand-in there is, which nobody else may hold.
    """

    def __init__(self) -> None:
        self.lock = process_lock()
        self.libcuda: Libcuda | None = None
        self.libnvjitlink: LibnvJitLink | None = None
        self.runtime = RuntimeModule()
        self.standing: StandIn | None = None


_SUBSTITUTES: Final = _Substitutes()


class StandIn(AbstractContextManager[Emulator]):
    """The emulator in the place of the driver, from when it is made until `close`.

    Attributes:
        emulator: what executes.
    """

    def __init__(self, emulated: AbstractContextManager[Emulator]) -> None:
        with _SUBSTITUTES.lock, ExitStack() as stack:
            if _SUBSTITUTES.standing is not None:
                raise DriverSelectionError(
                    "an emulator already stands in for the CUDA driver: close it first"
                )
            libcuda = _SUBSTITUTES.libcuda = _SUBSTITUTES.libcuda or Libcuda()
            libnvjitlink = _SUBSTITUTES.libnvjitlink = _SUBSTITUTES.libnvjitlink or LibnvJitLink()
            self.emulator: Emulator = stack.enter_context(emulated)
            stack.callback(self._leave, libcuda, libnvjitlink)
            libcuda.use(self.emulator)
            libnvjitlink.use()
            _SUBSTITUTES.runtime.use(self.emulator)
            self._stack = stack.pop_all()
            _SUBSTITUTES.standing = self

    @staticmethod
    def _leave(libcuda: Libcuda, libnvjitlink: LibnvJitLink) -> None:
        _SUBSTITUTES.runtime.leave()
        libcuda.leave()
        libnvjitlink.leave()
        _SUBSTITUTES.standing = None

    def __enter__(self) -> Emulator:
        return self.emulator

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def close(self) -> None:
        """Put nothing in the place of the driver; what is still queued runs first.

        Raises:
            CheckError: a check found something.
        """
        self._stack.close()


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
    """Let other libraries run on an emulator, as long as the process lives or to the `with`'s end.

    A load of `libcuda.so.1` gets the emulator's: `cuda.bindings`, `cuda.core`, Numba. It is
    the driver of this library as well, so that both see one memory. Call it before anything has
    used the CUDA driver. Afterwards the functions answer CUDA_ERROR_DEINITIALIZED, until the next
    stand-in.

    `devices` is how many, or the devices; without it what CUDADRV_DRIVER says, else one, and
    CUDA_VISIBLE_DEVICES says which of them are visible. `limits`
    is without it what CUDADRV_EMULATOR_STEPS says. The other arguments are those of `session`.

    Raises:
        DriverSelectionError: the process has loaded a CUDA driver or nvJitLink already, an emulator
            stands in already, or the system is not Linux.
        ValueError: properties for devices that are given whole, or a device or an order that cannot
            be.
    """
    emulator = Emulator(
        devices_of((emulated_devices() or 1) if devices is None else devices, properties),
        driver_version=driver_version,
        limits=emulated_limits() if limits is None else limits,
        order=order,
        seed=seed,
        check=check,
        suppressions=suppressions,
    )
    if devices is None:
        emulator.follow_environment()
    return StandIn(_standing(emulator, raise_findings=raise_findings))


@contextmanager
def _standing(emulator: Emulator, *, raise_findings: bool) -> Iterator[Emulator]:
    """The emulator as the driver that the first call chooses, of this library too."""
    former = set_current(None)
    with raising_findings(emulator, raise_findings=raise_findings):
        set_default(emulator)
        try:
            yield emulator
            emulator.finish()
        finally:
            set_default(None)
            used = set_current(former)
            if used is not None:
                used.clear_caches()
