"""The check "nan": what is found once for many instructions equals a look at each thread.

Random programs run twice. The second run follows the marks thread by thread, with nothing retained.
"""

from __future__ import annotations

import random
from typing import Any, Final

import numpy as np
import pytest

import cudadrv
from cudadrv import emulator
from ptx.emulate.check.nonfinite_values import NonfiniteValues
from ptx.emulate.check.register_marks import RegisterMarks

_THREADS: Final = 300
_LEAVES: Final = ("a", "b", "c", "x[i]", "y[i]")
_CONDITIONS: Final = ("i % 2", "i % 40 == 0", "(i >> 5) & 1", "i < 200")
_NUMBERS: Final = {
    "float": ("{0} + {1}", "{0} * {1}", "{0} / {1}", "-{0}", "sqrtf({0})", "fmaxf({0}, {1})",
              "fmaf({0}, {1}, {2})", "({0} < {1} ? {1} : {2})", "(float)((int){0} & 7)"),
    "double": ("{0} + {1}", "{0} * {1}", "{0} - {1}", "fmin({0}, {1})", "({0} > 1 ? {1} : {2})"),
    "__half": ("__hadd({0}, {1})", "__hmul({0}, {1})", "__hfma({0}, {1}, {2})", "__hneg({0})",
               "__hmin({0}, {1})", "(__hlt({0}, {1}) ? {1} : {2})"),
    "__half2": ("__hadd2({0}, {1})", "__hmul2({0}, {1})", "__hfma2({0}, {1}, {2})",
                "__hmax2({0}, {1})", "__hneg2({0})", "__lows2half2({0}, {1})"),
}  # fmt: skip
_BITS: Final = {"float": 32, "double": 64, "__half": 16, "__half2": 16}


def _expression(chosen: random.Random, kind: str, depth: int) -> str:
    if not depth:
        return chosen.choice(_LEAVES)
    operands = [_expression(chosen, kind, depth - 1) for _ in range(3)]
    return f"({chosen.choice(_NUMBERS[kind]).format(*operands)})"


def _program(seed: int, kind: str) -> str:
    chosen = random.Random(seed)
    statements = []
    for _ in range(4):
        text = f"{chosen.choice('abc')} = {_expression(chosen, kind, 2)};"
        condition = chosen.choice(_CONDITIONS)
        statements.append(
            chosen.choice(
                [
                    text,
                    f"for (int k = 0; k < 12; k++) {{ {text} }}",
                    f'_Pragma("unroll 1") for (int k = 0; k < i % 5; k++) {{ {text} }}',
                    f"if ({condition}) {{ {text} __nanosleep(0); }} else b = c;",
                ]
            )
        )
    return (
        "#include <cuda_fp16.h>\n"
        f'extern "C" __global__ void k(const {kind}* x, const {kind}* y, {kind}* z, int n)\n'
        "{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;\n"
        f"{kind} a = x[i], b = y[i], c = a;\n" + "\n".join(statements) + "\n"
        "z[i] = a; z[n + i] = b; z[2 * n + i] = c; }"
    )


def _found(source: str, kind: str) -> tuple[bytes, list[str]]:
    """Return the results of a program, and its findings."""
    generator = np.random.default_rng(5)
    count = _THREADS * (2 if kind == "__half2" else 1)
    special = [np.nan, np.inf, -np.inf, 0.0]
    with emulator.session(check="nan", raise_findings=False) as machine:
        stream = cudadrv.cuda_context_for(0).default_stream
        kernel = stream.context.compile(source, name="random.cu").kernel("k")
        arrays: list[Any] = []
        for step in (7, 11):
            values = generator.normal(size=count) * 100
            values[::step] = generator.choice(special, len(values[::step]))
            arrays.append(stream.to_device(values.astype(f"f{_BITS[kind] // 8}")))
        result = stream.zeros(3 * count, f"f{_BITS[kind] // 8}")
        kernel.launch(stream, cudadrv.LaunchConfig(5, 64), *arrays, result, _THREADS)
        return stream.to_host(result).tobytes(), [str(each) for each in machine.findings]


def _look_at_each_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def calculated(
        self: NonfiniteValues, threads: Any, use: Any, sources: Any, result: Any
    ) -> None:
        self._calculated_at(threads, use, sources, (result,), None)

    monkeypatch.setattr(NonfiniteValues, "_calculated_alone", calculated)
    monkeypatch.setattr(NonfiniteValues, "passes", RegisterMarks.passes)
    monkeypatch.setattr(NonfiniteValues, "selects", RegisterMarks.selects)
    monkeypatch.setattr(NonfiniteValues, "_discard", RegisterMarks._discard)


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(_NUMBERS))
def test_findings_of_random_programs_equal_those_of_a_look_at_each_thread(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = [_program(seed, kind) for seed in range(6)]
    found = [_found(each, kind) for each in programs]
    _look_at_each_thread(monkeypatch)
    assert found == [_found(each, kind) for each in programs]
    assert sum(len(findings) for _, findings in found) > 6
