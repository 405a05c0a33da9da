"""Running a case through the library's ordinary calls, whatever driver is in use."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cudadrv
from cudadrv import emulator
from ptx.emulate.threads.limits import DEFAULT_LIMITS, Limits
from tests.emulator.differential.case import Argument, Case, Held, In, Out
from tests.emulator.differential.inputs import make


@contextmanager
def machine(limits: Limits = DEFAULT_LIMITS) -> Iterator[cudadrv.Context]:
    """The GPU where CUDADRV_DRIVER says so, otherwise an emulated one like the recorded one's."""
    if os.environ.get("CUDADRV_DRIVER", "emulator") == "cuda":
        yield cudadrv.cuda_context_for(0)
        return
    with emulator.session(devices=[emulator.H100], limits=limits):
        yield cudadrv.cuda_context_for(0)


def prepared(case: Case) -> list[Argument | NDArray[Any]]:
    """The arguments with their arrays made, each from a seed of its own.

    No lane has two NaNs of float64: PTX does not say whose payload a result takes, and the driver's
    compiler may exchange the operands.
    """
    made: list[Argument | NDArray[Any]] = []
    taken: dict[int, NDArray[np.bool_]] = {}
    for position, argument in enumerate(case.arguments):
        if isinstance(argument, (In, Held)):
            values = make(argument.kind, argument.count, case.seed + 1000 * position)
            if values.dtype == np.float64:
                unique = taken.setdefault(len(values), np.zeros(len(values), np.bool_))
                nans = np.isnan(values)
                values[nans & unique] = 1.0
                unique |= nans
            made.append(values)
        elif isinstance(argument, Out):
            made.append(np.zeros(argument.count, argument.dtype))
        else:
            made.append(argument)
    return made


def digest_of_inputs(case: Case) -> str:
    """What changes when the inputs' bits do."""
    digest = 0
    for value in prepared(case):
        if isinstance(value, np.ndarray):
            digest = zlib.crc32(value.astype(value.dtype.newbyteorder("<")).tobytes(), digest)
    return f"{digest:08x}"


def run(module: cudadrv.Module, stream: cudadrv.Stream, case: Case) -> list[NDArray[Any]]:
    """Launch once; the bits of each `Out` and `Held` as unsigned integers, in their order."""
    config = cudadrv.LaunchConfig(
        case.grid, case.block, case.shared_bytes, case.cluster, case.cooperative
    )
    arguments: list[object] = []
    compared = []
    for wanted, value in zip(case.arguments, prepared(case), strict=True):
        if isinstance(value, np.ndarray):
            array = stream.to_device(value)
            arguments.append(array)
            if isinstance(wanted, (Out, Held)):
                compared.append(array)
        else:
            arguments.append(value)
    module.kernel(case.name).launch(stream, config, *arguments)
    found = [stream.to_host(array) for array in compared]
    return [bits.view(f"u{bits.itemsize}") for bits in found]
