"""Programs in processes of their own, as a library that stands in for another stays loaded."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from tests.emulator.kernels import FILL, INCREMENT, MISALIGNED, SPIN
from tests.patience import SECONDS

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
BINDINGS = f"""
import ctypes, sys
import numpy as np
from cuda.bindings import driver
from cudadrv.emulator import stand_in

PTX = {HEADER + FILL + INCREMENT + MISALIGNED + SPIN!r}.encode()

def ok(result):
    assert result[0] == 0, result
    return result[1] if len(result) == 2 else result[1:]

def prepare():
    ok(driver.cuInit(0))
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))

def kernel(name):
    return ok(driver.cuModuleGetFunction(ok(driver.cuModuleLoadData(PTX)), name))

def launch(function, *values, threads=1, stream=0):
    kinds = tuple(ctypes.c_uint32 if isinstance(v, int) else None for v in values)
    ok(driver.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, stream, (values, kinds), 0))

def read(pointer, count):
    found = np.zeros(count, np.uint32)
    ok(driver.cuMemcpyDtoH(found.ctypes.data, pointer, found.nbytes))
    return found.tolist()
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that has ended: its status and what it wrote."""

    status: int
    out: str
    err: str


def environment(names: Mapping[str, str] | None = None) -> dict[str, str]:
    """That of a process without an emulator, and some variables."""
    own = {k: v for k, v in os.environ.items() if not k.startswith("CUDADRV_EMULATOR")}
    return {**own, "CUDADRV_DRIVER": "cuda", **(names or {})}


def run(*arguments: str, names: Mapping[str, str] | None = None, given: str = "") -> Ended:
    """Run Python with some arguments, variables of the environment, and a standard input."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment(names),
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def run_program(program: str, names: Mapping[str, str] | None = None) -> str:
    """What a program prints that must succeed; `BINDINGS` stands before it."""
    ended = run("-c", BINDINGS + textwrap.dedent(program), names=names)
    assert ended.status == 0, ended.err
    return ended.out
