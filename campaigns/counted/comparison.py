"""The emulator's numbers beside those of Nsight Compute, and why some of them differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

import cudadrv
from campaigns.counted.launching import launches
from campaigns.counted.metrics import QUANTITIES, Quantity
from campaigns.counted.nsight import Values
from cudadrv import emulator
from cudadrv.emulator import Counts


@dataclass(frozen=True, slots=True)
class Compared:
    """One number of one kernel, on both sides."""

    kernel: str
    quantity: Quantity
    own: int
    measured: int

    @property
    def reason(self) -> str:
        """Why it differs; "" for no known reason."""
        return next(
            (
                reason
                for kernels, quantities, reason in _REASONS
                if any(fnmatchcase(self.kernel, each) for each in kernels.split())
                and any(fnmatchcase(self.quantity.name, each) for each in quantities.split(", "))
            ),
            "",
        )

    def __str__(self) -> str:
        return f"{self.quantity.name} {self.own}, ncu {self.measured}"


_REASONS: Final = (
    (
        "global_quarter_of_lanes global_half_of_warp shared_*half_of_warp shared_*even* "
        "shared_*missing shared_*lanes shared_*broken shared_*pairs_* branch_early_return "
        "branch_continue reduce shuffle",
        "divergent branches",
        "the assembler makes guards, selections or a guarded exit of a short branch",
    ),
    (
        "branch_trips_by_lane",
        "divergent branches, global load sectors",
        "the assembler unrolls the loop again, so that other turns of it are executed together",
    ),
    (
        "arithmetic_division arithmetic_square_root mandelbrot",
        "fadd, fmul, ffma, divergent branches",
        "a division or root is one instruction of PTX and many of the machine",
    ),
    (
        "arithmetic_special",
        "fmul",
        "sine and exponential multiply before their instruction",
    ),
    (
        "*_store_float4 stored_float4* branch_* atomic_double_* arithmetic_shuffle "
        "arithmetic_division matmul shuffle",
        "hfma",
        "the assembler loads constants with HFMA2",
    ),
    (
        "arithmetic_h*",
        "hadd",
        "the assembler converts a half with HADD2",
    ),
    (
        "reduce",
        "warps: shared loads, warps: shared stores",
        "guarded instructions are executed by warps with no thread left, where PTX branches",
    ),
    (
        "matmul",
        "shared load wavefronts, warps: shared loads",
        "the assembler joins four loads of 4 bytes to one of 16",
    ),
    (
        "reduce shuffle",
        "fadd",
        "the assembler guards the last addition, whose sum one lane alone uses",
    ),
    (
        "histogram",
        "shared atomic turns",
        "the assembler makes a count of lanes with one address of an increment by one",
    ),
    (
        "atomic_vector_of_block",
        "global atomic turns",
        "the assembler adds up a warp first where all threads have one address",
    ),
    (
        "atomic_shared_long",
        "shared *, warps: shared *, divergent branches",
        "64-bit addition in shared memory is a loop of compare and swap",
    ),
    (
        "shared_copies*",
        "global load requests, global load sectors",
        "ncu counts cp.async among the loads, and lines of 128 bytes where it goes around the L1",
    ),
    (
        "shared_copies*",
        "warps: shared loads",
        "ncu counts three instructions more for the copies of each warp, which load nothing",
    ),
)


def counted(names: set[str]) -> dict[str, Counts]:
    """What the emulator counts of each kernel."""
    found: dict[str, Counts] = {}
    with emulator.session():
        for name, launch in launches(cudadrv.cuda_context_for(0)):
            if name in names:
                with emulator.counting() as counters:
                    launch()
                found[name] = counters[name]
    return found


def compared(mine: Mapping[str, Counts], theirs: Values) -> Iterator[Compared]:
    """Every number that was measured."""
    for kernel, counts in mine.items():
        measured = theirs.get(kernel, {})
        for quantity in QUANTITIES:
            if all(metric in measured for metric in quantity.metrics):
                total = sum(measured[metric] for metric in quantity.metrics)
                yield Compared(kernel, quantity, quantity.read(counts), total)
