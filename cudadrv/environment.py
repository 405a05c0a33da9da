"""Variables of the environment that need no emulator to be read.

`cudadrv.emulator.environment` rejects wrong values of all documented variables at once.
"""

from __future__ import annotations

import os
from typing import Final

from . import border
from .errors import DriverSelectionError

FAULT_POLICIES: Final = ("sticky", "test", "continue")
"""The effects of a kernel's fault on other libraries; the first is the default."""
RULED: Final = frozenset({
    "CUDADRV_CACHE_MAX_MB", "CUDADRV_CHECK", "CUDADRV_CHECK_SUPPRESSIONS", "CUDADRV_DEVICE_DEBUG",
    "CUDADRV_DRIVER", "CUDADRV_EMULATOR_COMPUTE_CAPABILITY", "CUDADRV_EMULATOR_FAULT",
    "CUDADRV_EMULATOR_LOCK_SECONDS", "CUDADRV_EMULATOR_ORDER", "CUDADRV_EMULATOR_STEPS",
    "CUDADRV_EMULATOR_THREADS", "CUDADRV_EMULATOR_TRACE", "CUDADRV_HEADERS",
    "CUDADRV_KEEP_BLOCKS", "CUDADRV_NO_STAND_IN",
})  # fmt: skip
"""The variables that `cudadrv.emulator.environment` reads, so that others need not import it."""
_LOCK_WAIT_SECONDS: Final = 300


def emulated_devices(value: str | None = None) -> int | None:
    """Return how many emulated devices CUDADRV_DRIVER selects; None if it selects the driver.

    Args:
        value: the variable's value; None reads it.

    Raises:
        DriverSelectionError: it has another value.
    """
    value = (os.environ.get("CUDADRV_DRIVER", "") if value is None else value).strip() or "cuda"
    if value == "cuda":
        return None
    kind, _, text = value.partition(":")
    count = border.integer_of_text(text, 1) if text else 1
    if kind != "emulator" or count is None:
        raise DriverSelectionError(
            f'CUDADRV_DRIVER is {value!r}: use "cuda", "emulator" or "emulator:N" for N devices'
        )
    return count


def lock_wait_seconds() -> int:
    """Return how long a call may wait for the interpreter lock before the process ends.

    Raises:
        DriverSelectionError: CUDADRV_EMULATOR_LOCK_SECONDS has another value.
    """
    seconds = border.positive_variable("CUDADRV_EMULATOR_LOCK_SECONDS", "seconds such as 600")
    return seconds or _LOCK_WAIT_SECONDS


def fault_policy() -> str:
    """Return the value of CUDADRV_EMULATOR_FAULT, "sticky" by default.

    Raises:
        DriverSelectionError: it has another value.
    """
    policy = os.environ.get("CUDADRV_EMULATOR_FAULT", "").strip() or FAULT_POLICIES[0]
    if policy not in FAULT_POLICIES:
        raise DriverSelectionError(
            f"CUDADRV_EMULATOR_FAULT is {policy!r}: use one of {', '.join(FAULT_POLICIES)}"
        )
    return policy


def switch(variable: str) -> bool | None:
    """Return the value of a variable that is 0 or 1; None if it is not set.

    Raises:
        DriverSelectionError: it has another value.
    """
    setting = os.environ.get(variable, "").strip()
    if setting not in ("", "0", "1"):
        raise DriverSelectionError(f"{variable} is {border.shown(setting)}: use 0 or 1")
    return setting == "1" if setting else None
