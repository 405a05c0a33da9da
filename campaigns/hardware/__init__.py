"""The emulator beside a GPU: the same PTX and the same inputs on both, compared bit for bit.

Without a GPU the emulator is compared with the stored results of one. On a GPU the campaign also
runs new random programs on both.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import cudadrv
from cudadrv import emulator
from cudadrv.emulator.checks import CheckName

from ..report import Report
from .case import Bits, Case
from .comparison import differences
from .contended import contended_case
from .programs import program_case
from .running import run_case
from .stored import FORMS, KERNELS, PROGRAMS, Measured
from .warpgroup import warpgroup_case

_ORDERS: Final = 16
_CHECKS: Final[tuple[CheckName, ...]] = ("race", "init", "bounds")


def run_campaign(seconds: float, seed: int, *options: str) -> Report:
    """Compare forms and programs with stored results, then new programs if there is a GPU."""
    parser = argparse.ArgumentParser(prog="python -m campaigns hardware", allow_abbrev=False)
    parser.add_argument(
        "--results",
        type=Path,
        nargs="*",
        default=[FORMS, KERNELS, PROGRAMS],
        help="files of campaigns.hardware.measure (those of the repository)",
    )
    given = parser.parse_args(options)
    report, end = Report(), time.monotonic() + seconds
    work = [
        (case, gpu)
        for file in given.results
        for measured in [Measured.load(file)]
        for case, gpu in zip(measured.cases, measured.results, strict=True)
    ]
    random.Random(seed).shuffle(work)
    for case, gpu in work:
        if time.monotonic() > end:
            break
        if case.name.startswith("contended"):
            _compare_orders(case, gpu, report)
        else:
            _compare(case, on_emulator(case), gpu, report)
    _compare_new_programs(end, seed, report)
    return report


def on_emulator(case: Case, checks: tuple[CheckName, ...] = ()) -> list[Bits] | None:
    """Return the results of the emulator; None if a check reports a problem."""
    with emulator.session(devices=[emulator.H200], check=checks, raise_findings=False) as session:
        found = run_case(cudadrv.cuda_context_for(0), case)
        return None if session.findings else found


def _compare(case: Case, mine: list[Bits] | None, gpu: tuple[Bits, ...], report: Report) -> None:
    if mine is None:
        report.count("programs with a race or an unwritten value, left out")
        return
    report.count("forms compared" if case.forms else "programs compared", len(case.forms) or 1)
    report.failures += [str(each) for each in differences(case, mine, gpu)]


def _compare_orders(case: Case, gpu: tuple[Bits, ...], report: Report) -> None:
    """Compare a case whose results depend on the order of its threads."""
    orders = in_orders(case, range(_ORDERS))
    report.count("atomic operations on one cell compared", len(case.forms))
    report.failures += [str(each) for each in differences(case, orders[0], gpu, orders[1:])]


def in_orders(case: Case, seeds: Iterable[int]) -> list[list[Bits]]:
    """Return the results of the emulator in the orders of some seeds."""
    found = []
    for seed in seeds:
        with emulator.session(devices=[emulator.H200], order="random", seed=seed):
            found.append(run_case(cudadrv.cuda_context_for(0), case))
    return found


def _compare_new_programs(end: float, seed: int, report: Report) -> None:
    """Run new programs on the GPU of the driver in use, and on the emulator."""
    context = cudadrv.cuda_context_for(0)
    if context.device.is_emulated:
        report.skipped["new programs"] = "they need a GPU"
        return
    contended = contended_case(seed)
    _compare_orders(contended, tuple(run_case(context, contended)), report)
    number = 0
    while time.monotonic() < end:
        # One of ten is of `wgmma`, which only compute capability 9.0 has.
        has_wgmma = context.device.compute_capability == (9, 0) and number % 10 == 9
        case = (warpgroup_case if has_wgmma else program_case)(number, seed)
        try:
            _compare_program(context, case, report)
        except cudadrv.errors.CudaError as error:  # after a fault the process has no GPU
            report.failures.append(f"program {number} of seed {seed}, {case.name}: {error}")
            return
        number += 1


def _compare_program(context: cudadrv.Context, case: Case, report: Report) -> None:
    """Compare a program; a difference that ends without the assembler's optimiser is its fault."""
    gpu, mine = tuple(run_case(context, case)), on_emulator(case, _CHECKS)
    if mine is not None and any(differences(case, mine, gpu)):
        plain = tuple(run_case(context, case, jit=cudadrv.launch.JitOptions(optimization=0)))
        if not any(differences(case, mine, plain)):
            report.count("programs that the assembler's optimiser changes")
            return
    _compare(case, mine, gpu, report)
