"""Random programs that load what another thread writes, and drop the value or use it.

The truth comes from the results: a program uses the value if another value changes a result.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from ptx.emulate.check.findings import Findings
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.threads.limits import Limits

from ..kernel_runner import KernelRunner, ptx_text

THREADS = 33  # the last one writes
RESULTS = 8  # of a thread
PARAMS = ".param .u64 pv, .param .u64 po, .param .u64 pt"
VALUES = (0, 1, 3, 5, 0xFFFFFFFF)


class Program:
    """A random kernel; each statement may use what earlier ones made."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.labels = 0
        self.results = 0
        self.space = self.random.choice(["global", "shared"])
        self.place = "v" if self.space == "shared" else "%rd1"
        lines = [*self.statements(2, 0), *self.loads(), *self.statements(10, 2)]
        if self.random.random() < 0.3:
            lines += ["bar.warp.sync 0xffffffff;", *self.statements(3, 1)]
        self.body = "\n".join([*_BEGINNING, *lines, *self.stores(2), "ret;", *self.writer()])

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    @property
    def word(self) -> str:
        return f"%r{self.random.randrange(6)}"

    @property
    def operand(self) -> str:
        return self.pick(self.word, self.word, str(self.random.choice([0, 1, 2, 7])))

    @property
    def predicate(self) -> str:
        return f"%p{self.random.randrange(4)}"

    def loads(self) -> list[str]:
        """A load and uses of its value, sometimes in a loop."""
        lines = [self.load(), *self.statements(3, 1)]
        if self.random.random() < 0.4:
            step = ["add.s32 %r9, %r9, 1;", "setp.lt.s32 %p5, %r9, 3;", "@%p5 bra AGAIN;"]
            return ["mov.u32 %r9, 0;", "AGAIN:", *self.statements(2, 0), *lines, *step]
        return lines

    def load(self) -> str:
        """The load of what the last thread writes: one element, or one of a vector."""
        kind = self.pick("u32 %r4", "u32 %r4", "u8 %r4", "s16 %r4", "v2.u32 {%r4, %r5}")
        kind = self.pick(kind, "v4.u32 {%r4, %r7, %r5, %r3}")
        name, _, target = kind.partition(" ")
        return f"ld.{self.space}.{name} {target}, [{self.place}];"

    def writer(self) -> list[str]:
        return ["LAST:", f"st.{self.space}.u32 [{self.place}], %r6;", "ret;"]

    def stores(self, count: int) -> list[str]:
        self.results += count
        numbers = range(self.results - count, self.results)
        return [
            f"{self.pick('', f'@{self.predicate} ')}st.global.u32 [%rd2+{4 * k}], {self.word};"
            for k in numbers
        ]

    def statements(self, count: int, depth: int) -> list[str]:
        lines = []
        for _ in range(count):
            lines += self.statement(depth)
        return lines

    def statement(self, depth: int) -> list[str]:
        word, predicate, operand = self.word, self.predicate, self.operand
        joins, zero = self.pick("and", "or"), self.pick("0", operand)
        kinds = [
            f"selp.b32 {word}, {self.word}, {operand}, {predicate};",
            f"selp.b32 {word}, {operand}, {self.word}, {predicate};",
            f"setp.{self.pick('eq', 'ne')}.s32 {predicate}, {self.word}, {zero};",
            f"setp.{self.pick('lt', 'ge')}.u32 {predicate}, {self.word}, {operand};",
            f"setp.{self.pick('eq', 'gt')}.{joins}.s32 {predicate}, {self.word}, {operand},"
            f" {self.pick('', '!')}{self.predicate};",
            f"{joins}.pred {predicate}, {self.predicate}, {self.predicate};",
            f"{joins}.b32 {word}, {self.word}, {operand};",
            f"or.b32 {word}, {self.word}, {self.word};",
            f"not.pred {predicate}, {self.predicate};",
            f"@{predicate} mov.u32 {word}, {operand};",
            f"{self.pick('add.s32', 'xor.b32', 'min.s32', 'mul.lo.s32')} {word}, {self.word},"
            f" {operand};",
        ]
        line = self.random.choice(kinds)
        chance = self.random.random()
        if depth and chance < 0.15:
            return self.branch(depth)
        if depth and chance < 0.2 and self.results < RESULTS - 2:
            return self.stores(1)
        if depth and chance < 0.25:
            return self.indexed()
        return [line]

    def branch(self, depth: int) -> list[str]:
        self.labels += 1
        label, inner = f"L{self.labels}", self.statements(2, depth - 1)
        if self.random.random() < 0.3:  # a loop of three steps
            counter = f"%r{7 + depth}"
            step = [f"add.s32 {counter}, {counter}, 1;", f"setp.lt.s32 %p5, {counter}, 3;"]
            return [f"mov.u32 {counter}, 0;", f"{label}:", *inner, *step, f"@%p5 bra {label};"]
        return [f"@{self.predicate} bra {label};", *inner, f"{label}:"]

    def indexed(self) -> list[str]:
        return [
            f"and.b32 %r10, {self.word}, 3;",
            "mul.wide.u32 %rd4, %r10, 4;",
            "add.s64 %rd4, %rd3, %rd4;",
            f"ld.global.u32 {self.word}, [%rd4];",
        ]


_BEGINNING = (
    ".reg .pred %p<6>; .reg .b32 %r<12>; .reg .b64 %rd<6>;",
    ".shared .align 16 .b8 v[16];",
    "ld.param.u64 %rd1, [pv]; ld.param.u64 %rd2, [po]; ld.param.u64 %rd3, [pt];",
    "mov.u32 %r0, %tid.x;",
    "ld.global.u32 %r6, [%rd1+16]; ld.global.u32 %r11, [%rd1];",
    "setp.eq.u32 %p0, %r0, 0;",
    "@%p0 st.shared.u32 [v], %r11; @%p0 st.shared.u32 [v+4], %r11;",
    "@%p0 st.shared.u32 [v+8], %r11; @%p0 st.shared.u32 [v+12], %r11;",
    "bar.sync 0;",
    "add.s64 %rd1, %rd1, 32;",
    f"mul.wide.u32 %rd5, %r0, {4 * RESULTS};",
    "add.s64 %rd2, %rd2, %rd5;",
    "and.b32 %r1, %r0, 3; shr.u32 %r2, %r0, 2; and.b32 %r2, %r2, 1; mov.u32 %r3, 0;",
    "mov.u32 %r5, 9; setp.eq.s32 %p1, %r1, 1; setp.ne.s32 %p2, %r2, 0; setp.gt.s32 %p3, %r1, 1;",
    f"setp.eq.u32 %p4, %r0, {THREADS - 1};",
    "@%p4 bra LAST;",
)


class Runs:
    """Runs of one program."""

    def __init__(self, seed: int) -> None:
        self.program = Program(seed)
        self.runner = KernelRunner(ptx_text(self.program.body, PARAMS))
        self.table = self.runner.put(np.arange(10, 14, dtype=np.uint32))

    def results(self, value: int, *, checked: LaunchOrder | bool = False) -> tuple[bytes, int]:
        """Return the results with a value, and how many races of a read the check finds."""
        values = np.full(16, value, dtype=np.uint32)
        v, o = self.runner.put(values), self.runner.put(np.zeros(RESULTS * THREADS, np.uint32))
        findings = Findings()
        limits = Limits(checks={"race"}, findings=findings) if checked else Limits()
        order = checked if isinstance(checked, LaunchOrder) else None
        self.runner.launch("k", 1, THREADS, v, o, self.table, limits=limits, order=order)
        races = [each for each in findings.found if each.places[0].what != each.places[1].what]
        return self.runner.get(o, RESULTS * THREADS, np.uint32).tobytes(), len(races)


def judge(seed: int) -> tuple[bool, bool]:
    """Return whether a program uses the value, and whether the check finds the race."""
    runs = Runs(seed)
    results = {value: runs.results(value)[0] for value in VALUES}
    for order in (True, LaunchOrder("late"), LaunchOrder("random", seed)):
        found = {value: bool(runs.results(value, checked=order)[1]) for value in VALUES[:3]}
        for value, is_found in found.items():
            is_used = any(each != results[value] for each in results.values())
            assert is_found or not is_used, f"seed {seed}, value {value}, {order}"
    return len(set(results.values())) > 1, any(found.values())


@pytest.mark.parametrize("seed", range(3))
def test_a_value_that_changes_a_result_is_an_access(seed: int) -> None:
    judge(seed)


@pytest.mark.slow
def test_a_value_that_changes_no_result_is_no_access_in_some_programs() -> None:
    judged = [judge(seed) for seed in range(3, 84)]
    assert [is_found for is_used, is_found in judged if not is_used].count(False) > 5
