"""The limits of kernels' execution by variables of the environment."""

from __future__ import annotations

from dataclasses import replace

from ptx.emulate import DEFAULT_LIMITS, Limits

from .. import border


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
