"""Variables of the environment: limits of kernels' execution, and wrong values of all variables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from ptx.emulate import DEFAULT_LIMITS, Limits

from .. import border
from ..environment import RULED, emulated_devices, fault_policy, lock_wait_seconds, switch
from ..errors import CudadrvError, DriverSelectionError
from .checks import Checks, suppressions_of
from .profiles import default_capability
from .timeline.schedule import Schedule
from .timeline.timeline import trace_of_environment


def emulated_limits() -> Limits:
    """Return the emulator's limits; variables of the environment replace the defaults.

    Raises:
        DriverSelectionError: a variable has another value.
    """
    limits = DEFAULT_LIMITS
    steps = border.positive_variable("CUDADRV_EMULATOR_STEPS", "steps such as 50000000")
    if steps:
        limits = replace(limits, max_steps=steps)
    threads = border.positive_variable("CUDADRV_EMULATOR_THREADS", "threads such as 4")
    return replace(limits, threads=threads) if threads else limits


def _device_debug() -> object:
    from ptx.options import is_for_debuggers  # a session that sets neither loads no compiler

    return is_for_debuggers()


def _headers() -> object:
    from ptx.options import headers_from_environment  # as above

    return headers_from_environment()


def _cache_settings() -> object:
    from ptx.cache.folder import cache_settings  # as above

    return cache_settings()


READERS: Final[Mapping[str, Callable[[], object]]] = {
    "CUDADRV_DRIVER": emulated_devices,
    Schedule.VARIABLE: lambda: Schedule.chosen(None, None),
    "CUDADRV_EMULATOR_COMPUTE_CAPABILITY": default_capability,
    Schedule.TRACE_VARIABLE: trace_of_environment,
    "CUDADRV_EMULATOR_STEPS": emulated_limits,
    "CUDADRV_EMULATOR_THREADS": emulated_limits,
    "CUDADRV_EMULATOR_FAULT": fault_policy,
    "CUDADRV_EMULATOR_LOCK_SECONDS": lock_wait_seconds,
    Checks.VARIABLE: lambda: Checks.read(os.environ[Checks.VARIABLE]),
    Checks.SUPPRESSIONS_VARIABLE: lambda: suppressions_of(None),
    "CUDADRV_NO_STAND_IN": lambda: switch("CUDADRV_NO_STAND_IN"),
    "CUDADRV_KEEP_BLOCKS": lambda: switch("CUDADRV_KEEP_BLOCKS"),
    "CUDADRV_DEVICE_DEBUG": _device_debug,
    "CUDADRV_HEADERS": _headers,
    "CUDADRV_CACHE_MAX_MB": _cache_settings,
}


def reject_wrong_variables() -> None:
    """Read each variable, so that a wrong value is an error also where nothing reads it later.

    The two limits of a client issue a warning when it is made.

    Raises:
        CudadrvError: a variable has a wrong value; the text has its name.
    """
    for name in RULED & os.environ.keys():
        try:
            READERS[name]()
        except CudadrvError as error:
            if name in str(error):
                raise
            raise DriverSelectionError(f"{name}: {error}") from None
