"""The emulated driver: all its functions in one class."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from ptx.emulate.threads.limits import DEFAULT_LIMITS, Limits

from ..driver.driver_api import DriverApi
from .calls.array import ArrayCalls
from .calls.blocking import BlockingCalls
from .calls.checkpoint import CheckpointCalls
from .calls.context_settings import ContextSettingCalls
from .calls.device import DeviceCalls
from .calls.graph_memory_calls import GraphMemoryCalls
from .calls.graph_read import GraphReadCalls
from .calls.interprocess import InterprocessCalls
from .calls.linking import LinkCalls
from .calls.managed_attributes import ManagedAttributeCalls
from .calls.pointer import PointerCalls
from .calls.registered import RegistrationCalls
from .calls.sm_groups import SmGroupCalls
from .calls.stream_attributes import StreamAttributeCalls
from .calls.tensor_map import TensorMapCalls
from .calls.texture import TextureCalls
from .calls.virtual import VirtualCalls
from .checks import CheckName, chosen_checks
from .counters import Counters
from .fault_injection import FaultInjection
from .profiles import EmulatedDevice, given_devices
from .timeline.choice import OrderName, chosen_order

# Newer than any compiler of its major, so that no PTX is refused unless a test asks for it.
NEWEST_DRIVER: Final = (13, 9)


class Emulator(
    DeviceCalls,
    SmGroupCalls,
    StreamAttributeCalls,
    RegistrationCalls,
    ManagedAttributeCalls,
    PointerCalls,
    BlockingCalls,
    ContextSettingCalls,
    ArrayCalls,
    TextureCalls,
    TensorMapCalls,
    GraphReadCalls,
    GraphMemoryCalls,
    CheckpointCalls,
    LinkCalls,
    VirtualCalls,
    InterprocessCalls,
    FaultInjection,
):
    """The driver API, executed on the PTX emulator.

    It has the functions that `DriverApi` names, and a few that other libraries call. Every function
    has the signature, the result tuple and the error codes of cuda.bindings 13. Operations run at
    their call, unless another order was asked for. A kernel's fault spoils its device for good: the
    launch and every later call on the device's contexts return its code, `last_fault` is the typed
    error and cuGetErrorString its text. Devices are independent and may be used by several threads
    at once; the launches of one device follow each other.

    Attributes:
        is_emulated: True; what images to compile depends on it.
        limits: how far a kernel may run before it counts as a runaway.
    """

    is_emulated: Final = True
    keeps_blocks: Final = False

    def __init__(
        self,
        devices: int | Sequence[EmulatedDevice] = 1,
        *,
        driver_version: tuple[int, int] = NEWEST_DRIVER,
        limits: Limits = DEFAULT_LIMITS,
        order: OrderName | None = None,
        seed: int | None = None,
        check: CheckName | Sequence[CheckName] | None = None,
        suppressions: str | os.PathLike[str] | None = None,
    ) -> None:
        """`devices` is how many of the default kind, or the devices themselves.

        `driver_version` is what cuDriverGetVersion says, and which PTX is too new. `order` is when
        operations run (docs/orders.md): "immediate" at their call, "late" when something needs
        them, "random" as `seed` says; without it what CUDADRV_EMULATOR_ORDER says. `check` is what
        is checked of a program (docs/checks.md): "race", "init", "sync", "bounds", "assemble",
        "leak"; without it what CUDADRV_CHECK says. `suppressions` is a file of findings that are
        not told; without it that of CUDADRV_CHECK_SUPPRESSIONS.

        Raises:
            ValueError: a count, a device, an order or a check that cannot be.
        """
        super().__init__(
            given_devices(devices, EmulatedDevice),
            driver_version,
            chosen_checks(limits, check, suppressions),
            chosen_order(order, seed),
        )

    @contextmanager
    def counting(self) -> Iterator[Counters]:
        """Count what the launches of a `with` block execute (docs/counters.md).

        What is queued runs before the block and at its end.
        """
        counters = Counters()
        self.finish()
        for device in self._devices:
            with device.lock:
                device.counters = (*device.counters, counters)
        try:
            yield counters
            self.finish()
        finally:
            for device in self._devices:
                with device.lock:
                    device.counters = tuple(c for c in device.counters if c is not counters)


def _the_emulator_is_a_driver(emulator: Emulator) -> DriverApi:
    """For the type checker alone."""
    return emulator
