"""The first table: each launch beside the time that it should take at most on two cores."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Final

import ptx
from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.model.errors import UnsupportedInstruction
from ptx.emulate.program import EmulatedKernel, Program
from ptx.emulate.threads.device_model import DeviceModel

from .cases import Sizes, cases
from .device import Device


def large_module(instructions: int, kernels: int) -> str:
    """PTX of several kernels, with about so many instructions in all."""
    each = instructions // kernels
    lines = [".version 8.0", ".target sm_90", ".address_size 64"]
    for number in range(kernels):
        lines += [
            f".visible .entry k{number}(.param .u64 p)",
            "{",
            f".reg .b32 %r<{each + 2}>; .reg .f32 %f<{each + 2}>; .reg .b64 %rd<4>;",
            "ld.param.u64 %rd1, [p]; ld.global.u32 %r0, [%rd1]; ld.global.f32 %f0, [%rd1];",
        ]
        for at in range((each - 6) // 2):
            lines.append(f"add.s32 %r{at + 1}, %r{at}, {at};")
            lines.append(f"fma.rn.f32 %f{at + 1}, %f{at}, %f0, %f{at};")
        last = (each - 6) // 2
        lines += [f"st.global.u32 [%rd1], %r{last};", f"st.global.f32 [%rd1+4], %f{last};"]
        lines += ["ret;", "}"]
    return "\n".join(lines)


def first_kernel(text: str) -> Callable[[], EmulatedKernel]:
    """Reading a module and taking its first kernel."""
    memory = DeviceMemory(1 << 40, 1 << 20)
    return lambda: Program(ptx.parse(text), DeviceModel(memory)).kernel("k0")


SIZES: Final = Sizes(
    saxpy=1 << 20,
    reduction=1 << 20,
    shuffle=1 << 20,
    product=256,
    picture=512,
    limit=256,
    bytes=1 << 20,
    histogram_blocks=256,
)
_GOALS_MS: Final = {
    "saxpy": 25.0, "reduce": 20.0, "matmul": 170.0, "mandelbrot": 350.0, "histogram": 16.0,
    "shuffle": 25.0, "empty": 0.1,
}  # fmt: skip
_LOADING_MS: Final = 1500.0


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table; `error` says why there are no figures."""

    title: str
    goal_ms: float
    best_ms: float = 0.0
    median_ms: float = 0.0
    error: str = ""

    def __str__(self) -> str:
        if self.error:
            return f"{self.title:38}{self.error}"
        return f"{self.title:38}{self.best_ms:9.2f}{self.median_ms:9.2f}{self.goal_ms:9.1f}"

    def to_json(self) -> dict[str, object]:
        """A plain dict."""
        return asdict(self)


def lines(target: str) -> Iterator[Line]:
    """The lines of the table, each when it is measured."""
    device = Device(target)
    for case in cases(SIZES):
        grids = [(case.title, case.grid)]
        if case.kernel == "histogram":
            grids.append(("shared histogram, 4096 blocks", (4096, 1, 1)))
        for title, grid in grids:
            line = Line(title, _GOALS_MS[case.kernel])
            try:
                launch, _ = device.prepare(replace(case, grid=grid))
            except UnsupportedInstruction as refused:
                yield replace(line, error=str(refused))
                continue
            timed(launch, 2)
            best, median = timed(launch, 200 if line.goal_ms < 1 else 9)
            yield replace(line, best_ms=best, median_ms=median)
    for kernels in (50, 1):
        best, median = timed(first_kernel(large_module(50_000, kernels)), 2)
        yield Line(f"50,000 instructions in {kernels}, first kernel", _LOADING_MS, best, median)


def timed(action: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Best and median milliseconds."""
    taken: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        taken.append((time.perf_counter() - start) * 1e3)
    return min(taken), statistics.median(taken)
