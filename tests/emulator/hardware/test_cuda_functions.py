"""CUDA's approximate functions on the emulator: within the figures of docs/hardware.md."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import cudadrv
import ptx
from campaigns.hardware.coverage import PAGE
from cudadrv import emulator

COUNT: Final = 1 << 15
Values = NDArray[Any]


@dataclass(frozen=True)
class Row:
    """One row of the page: a function, and its arguments in the page's words."""

    function: str
    arguments: str
    exact: Callable[..., Any]
    operands: tuple[Values, ...]

    def error(self, got: Values, kind: str) -> float:
        """Return the largest error: absolute, relative, in units of the last place, or its share
        of a bound that depends on the argument.
        """
        wide = [np.asarray(each, np.longdouble) for each in self.operands]
        exact = self.exact(*wide)
        # Results that are subnormal, or infinite, are no part of the bounds.
        limits = np.finfo(got.dtype)
        taken = (np.abs(exact) >= limits.smallest_normal) & (np.abs(exact) <= limits.max)
        error, size = np.abs(got - exact)[taken], np.abs(exact[taken])
        if kind == "absolute":
            return float(error.max())
        if kind == "relative":
            return float((error / size).max())
        units = error / np.exp2(np.floor(np.log2(size)) - limits.nmant)
        if match := re.fullmatch(r"share of 2 \+ ⌊(.*) abs\(x\)⌋ ulp", kind):
            units /= 2 + np.floor(float(match[1]) * np.abs(wide[0][taken]))
        return float(units.max())


def spread(low: float, high: float, dtype: type = np.float32) -> Values:
    """Values of both signs with evenly distributed exponents."""
    exponents = np.random.default_rng(COUNT).uniform(math.log2(low), math.log2(high), COUNT)
    return (np.exp2(exponents) * np.where(np.arange(COUNT) % 2, 1, -1)).astype(dtype)


def line(low: float, high: float) -> Values:
    return np.linspace(low, high, COUNT, dtype=np.float32)


def rows() -> list[Row]:
    positive = np.abs(spread(2.0**-126, 3e38))
    far = positive[(positive < 0.5) | (positive > 2)]
    far = np.resize(far, COUNT)
    logarithms = {"__logf": np.log, "__log2f": np.log2, "__log10f": np.log10}
    rsqrt = lambda x: 1 / np.sqrt(x)  # noqa: E731  # one of several such expressions
    ten = np.log2(np.longdouble(10))
    return [
        Row("__sinf", "−π to π", np.sin, (line(-math.pi, math.pi),)),
        Row("__cosf", "−π to π", np.cos, (line(-math.pi, math.pi),)),
        *(Row(name, "0.5 to 2", exact, (line(0.5, 2),)) for name, exact in logarithms.items()),
        *(Row(name, "others", exact, (far,)) for name, exact in logarithms.items()),
        Row("__expf", "of normal results", np.exp, (line(-87, 88),)),
        Row("__exp10f", "of normal results", lambda x: np.exp2(x * ten), (line(-37, 38),)),
        Row("__tanhf", "all", np.tanh, (spread(2.0**-126, 3e38),)),
        Row("__fdividef", "divisor 2^-126 to 2^126", np.divide,
            (spread(2.0**-20, 2.0**20), spread(2.0**-100, 2.0**100))),
        Row("rsqrtf", "positive", rsqrt, (positive,)),
        Row("rsqrt", "positive", rsqrt, (np.abs(spread(2.0**-1022, 2.0**1023, np.float64)),)),
    ]  # fmt: skip


def results(chosen: list[Row]) -> list[Values]:
    """Return what the emulator gives for each row."""
    parts = []
    for number, row in enumerate(chosen):
        kind = "float" if row.operands[0].dtype == np.float32 else "double"
        values = ", ".join(f"{name}[i]" for name in "ab"[: len(row.operands)])
        parts.append(f"""extern "C" __global__ void k{number}({kind}* y, {kind}* a, {kind}* b) {{
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          y[i] = {row.function}({values});
        }}""")
    with emulator.session(devices=[emulator.H200]):
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        image = ptx.compile("\n".join(parts), ptx.CompileOptions(target=context.target))
        module, found = context.load_module(image), []
        for number, row in enumerate(chosen):
            operands = [stream.to_device(each) for each in row.operands]
            y = stream.zeros(COUNT, row.operands[0].dtype)
            config = cudadrv.LaunchConfig(COUNT // 256, 256)
            module.kernel(f"k{number}").launch(stream, config, y, operands[0], operands[-1])
            found.append(stream.to_host(y))
    return found


def figure(text: str) -> float:
    """Read a figure of the page: 2^-21.41, 2 ulp, or 0.97."""
    return 2.0 ** float(text[2:]) if text.startswith("2^") else float(text.split()[0])


def test_errors_are_within_those_of_the_page_and_within_the_bounds_of_cuda() -> None:
    lines = [each.strip("| \n").split(" | ") for each in PAGE.read_text("utf-8").splitlines()]
    functions = {row.function for row in rows()}
    stated = {
        (cells[0].strip("`"), cells[1]): cells[2:]
        for cells in lines
        if cells[0].strip("`") in functions
    }
    wrong = []
    for row, got in zip(rows(), results(rows()), strict=True):
        kind, bound, own, _ = stated.pop((row.function, row.arguments))
        error = row.error(got, kind)
        if not error <= figure(own) <= figure(bound):
            wrong.append(f"{row.function}, {row.arguments}: {error} of {own} of {bound}")
    assert not wrong, "\n".join(wrong)
    assert not stated
