"""Loads of one basic block from the same addresses at other offsets are gathered together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptx.emulate.kernel_facts import NOTHING_LATE
from ptx.emulate.model.errors import OutOfBounds
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text

_BLOCKS, _THREADS, _STEP = 16, 256, 80
_COUNT = _BLOCKS * _THREADS
_PARAMS = ".param .u64 index, .param .u64 values, .param .u64 out"
_BODY = """
    .reg .u32 %r<12>; .reg .u64 %rd<12>;
    mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;
    mad.lo.u32 %r3, %r0, %r1, %r2;
    ld.param.u64 %rd0, [index]; ld.param.u64 %rd1, [values]; ld.param.u64 %rd2, [out];
    mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd0, %rd3;
    ld.global.u32 %r4, [%rd3];
    mul.wide.u32 %rd4, %r4, 4; add.u64 %rd5, %rd1, %rd4;
    mul.wide.u32 %rd6, %r3, 12; add.u64 %rd7, %rd2, %rd6;
    ld.global.u32 %r5, [%rd5];
    {between}
    ld.global.u32 %r6, [%rd5+4];
    ld.global.u32 %r7, [%rd5+12];
    st.global.u32 [%rd7], %r5; st.global.u32 [%rd7+4], %r6; st.global.u32 [%rd7+8], %r7;
    ret;
"""


class _Case:
    """A launch of many threads, each of which loads three elements of a row of its own."""

    def __init__(self, between: str = "", *, missing: int = 0) -> None:
        self.runner = KernelRunner(ptx_text(_BODY.format(between=between), _PARAMS))
        rng = np.random.default_rng(1)
        self.rows = (rng.permutation(_COUNT) * _STEP).astype(np.uint32)
        self.values = rng.integers(0, 1 << 30, _COUNT * _STEP).astype(np.uint32)
        end = len(self.values) - _STEP + 4 - missing
        self.index = self.runner.put(self.rows)
        self.address = self.runner.put(self.values[:end])
        self.out = self.runner.put(np.zeros(3 * _COUNT, np.uint32))

    def launch(self) -> np.ndarray[Any, Any]:
        """Return what each thread has loaded."""
        self.runner.launch("k", _BLOCKS, _THREADS, self.index, self.address, self.out)
        return self.runner.get(self.out, 3 * _COUNT, np.uint32).reshape(-1, 3)

    def joined(self) -> list[tuple[bool, int]]:
        """For each load with which later ones are joined: whether it is strong, and their count."""
        code = self.runner.program.code_of("k", NOTHING_LATE)
        counts = [(site.facts.is_strong, len(site.neighbours)) for site in code.find_sites()]
        return [found for found in counts if found[1]]


def test_later_loads_are_gathered_with_the_first() -> None:
    case = _Case()
    expected = case.values[case.rows[:, None] + np.array([0, 1, 3])]
    assert (case.launch() == expected).all()
    assert case.joined() == [(False, 2)]


@pytest.mark.parametrize(
    "between",
    [
        "st.global.u32 [%rd5+4], %r3;",
        "atom.global.exch.b32 %r8, [%rd5+4], %r3;",
        "st.u32 [%rd5+4], %r3;",
    ],
)
def test_a_load_after_a_write_finds_the_written_value(between: str) -> None:
    case = _Case(between)
    expected = case.values[case.rows[:, None] + np.array([0, 1, 3])]
    expected[:, 1] = np.arange(_COUNT)
    assert (case.launch() == expected).all()
    assert case.joined() == [(False, 1)]  # the last load with the one after the write


@pytest.mark.parametrize(
    ("between", "first"),
    [
        ("membar.gl;", (False, 1)),
        ("bar.sync 0;", (False, 1)),
        ("ld.volatile.global.u32 %r8, [%rd5];", (True, 2)),
    ],
)
def test_loads_before_and_after_a_fence_are_not_joined(
    between: str, first: tuple[bool, int]
) -> None:
    case = _Case(between)
    expected = case.values[case.rows[:, None] + np.array([0, 1, 3])]
    assert (case.launch() == expected).all()
    assert case.joined() == [first]


def test_a_fault_is_that_of_the_load_that_leaves_the_memory() -> None:
    case = _Case(missing=1)
    with pytest.raises(OutOfBounds) as caught:
        case.launch()
    lines = ptx_text(_BODY, _PARAMS).splitlines()
    (line,) = [number for number, text in enumerate(lines, 1) if "[%rd5+12]" in text]
    block, thread = divmod(int(np.argmax(case.rows)), _THREADS)
    place = f"block ({block}, 0, 0), thread ({thread}, 0, 0), ld.global.u32 at PTX line {line}"
    assert str(caught.value).endswith(place)
