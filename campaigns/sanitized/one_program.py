"""One program of the ground truth in a process of its own: launched, or checked on the emulator."""

from __future__ import annotations

import gc
import json

import numpy as np

import cudadrv
import ptx
from campaigns.race_truth.graph_inputs import Input
from campaigns.race_truth.judging import MOST_STEPS, inputs, programs, source_of
from campaigns.race_truth.program import Program
from cudadrv import emulator
from cudadrv.errors import CudaError

ALL_RAN = "every launch has ended"
MEANT_SO = "race, may be meant so"


def named(name: str) -> Program:
    """The program of this name."""
    return next(each for each in programs() if each.name == name)


def launch(name: str, size: str) -> None:
    """Launch it on the GPU over all inputs of a size; an error ends that, and is printed.

    The status stays 0, as what a tool says of a failed process is no finding of its own.
    """
    program = named(name)
    try:
        for given in inputs(program, size):
            _launch_once(program, given)
    except CudaError as error:
        print(f"{type(error).__name__}: {error}", flush=True)
    else:
        print(ALL_RAN, flush=True)


def check(name: str, size: str) -> None:
    """Print what the emulator's checks find, a text for each check, of the first input with any."""
    program = named(name)
    found: dict[str, str] = {}
    for given in inputs(program, size):
        found = found or _check_once(program, given)
    print(json.dumps(found), flush=True)


def _check_once(program: Program, given: Input) -> dict[str, str]:
    limits = emulator.Limits(max_steps=MOST_STEPS)
    failed = ""
    with emulator.session(
        devices=[emulator.H100],
        check=("race", "init", "sync", "bounds"),
        raise_findings=False,
        limits=limits,
    ) as driver:
        try:
            _launch_once(program, given)
        except CudaError as error:
            failed = f"{type(error).__name__}: {error}"
        gc.collect()
    found: dict[str, str] = {}
    for each in driver.findings:
        found.setdefault(MEANT_SO if each.benign else each.check, str(each))
    if failed and not found:
        found["fault"] = failed
    return found


def _launch_once(program: Program, given: Input) -> None:
    """With arrays that are allocations of their own, and as long as they are, for memcheck."""
    context = cudadrv.cuda_context_for(0)
    options = ptx.CompileOptions(target=context.target, lineinfo=True, extra=("-w",))
    module = context.load_module(ptx.compile(source_of([program]), options, name="truth.cu"))
    stream = context.new_stream()
    arguments = [
        stream.to_device(each) if isinstance(each, np.ndarray) else each for each in given.values
    ]
    clusters = -(-given.threads // (program.block * program.cluster))
    config = cudadrv.LaunchConfig(
        clusters * program.cluster,
        program.block,
        cluster=program.cluster if program.cluster > 1 else None,
        cooperative=program.cooperative,
    )
    module.kernel(program.symbol).launch(stream, config, *arguments)
    stream.synchronize()
