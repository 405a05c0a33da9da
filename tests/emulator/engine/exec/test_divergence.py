"""Random programs whose threads part and meet: each thread's registers beside those of a model.

The model runs one thread after another. So a register that is restored from before a split, or
joined from the wrong part, shows in the result.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from ptx.emulate.threads.limits import FewThreads, Limits
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text

THREADS, BLOCKS = 96, 3
REGISTERS = 6
MASK = 0xFFFF_FFFF
Regs = list[int]
# What a thread does next after a statement: "on", "break" or "continue" of its loop, or "exit".
Step = Callable[[Regs], str]


class Maker:
    """Writes statements as PTX, and as functions that do the same for one thread."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.lines: list[str] = []
        self._labels = 0
        self._loops: list[tuple[str, str]] = []

    def program(self) -> tuple[str, Step]:
        """The text of a kernel, and the model of a thread that begins with its number in r0."""
        step = self._sequence(4, 3)
        body = "\n".join(self.lines)
        stores = "\n".join(f"st.global.u32 [%rd2+{4 * n}], %r{n};" for n in range(REGISTERS))
        first = "\n".join(f"mov.u32 %r{n}, {n * 77};" for n in range(1, REGISTERS))
        text = f"""
        .reg .pred %p; .reg .b32 %r<{REGISTERS}>; .reg .b32 %t<4>; .reg .b32 %c<99>;
        .reg .b64 %rd<4>; .shared .align 4 .b8 s[{4 * THREADS}];
        ld.param.u64 %rd1, [out]; mov.u32 %t0, %tid.x; mov.u32 %t1, %ctaid.x;
        mad.lo.u32 %r0, %t1, {THREADS}, %t0; mul.wide.u32 %rd2, %r0, {4 * REGISTERS};
        add.u64 %rd2, %rd1, %rd2; shl.b32 %t3, %t0, 2; mov.u32 %t2, s; add.u32 %t3, %t3, %t2;
        {first}
        {body}
        END: {stores}
        ret;"""
        return ptx_text(text, ".param .u64 out"), step

    def _label(self) -> str:
        self._labels += 1
        return f"L{self._labels}"

    def _register(self) -> int:
        return self._random.randrange(REGISTERS)

    def _sequence(self, length: int, depth: int) -> Step:
        steps = [self._statement(depth) for _ in range(self._random.randint(1, length))]

        def run(regs: Regs) -> str:
            for step in steps:
                following = step(regs)
                if following != "on":
                    return following
            return "on"

        return run

    def _statement(self, depth: int) -> Step:
        makers: list[Callable[[int], Step]] = [self._change, self._change, self._store]
        if depth:
            makers += [self._if, self._if, self._if_else, self._loop, self._switch]
        if self._loops:
            makers += [self._leave_loop]
        elif depth < 3:
            makers += [self._exit]
        return self._random.choice(makers)(depth)

    def _change(self, depth: int) -> Step:
        a, b, number = self._register(), self._register(), self._random.randrange(1 << 16)
        self.lines.append(f"mad.lo.u32 %r{a}, %r{b}, {number | 1}, %r{a};")

        def run(regs: Regs) -> str:
            regs[a] = (regs[b] * (number | 1) + regs[a]) & MASK
            return "on"

        return run

    def _store(self, depth: int) -> Step:
        """To memory and back, which no thread does that is not there."""
        a, b = self._register(), self._register()
        self.lines += [f"st.shared.u32 [%t3], %r{a};", f"ld.shared.u32 %r{b}, [%t3];"]

        def run(regs: Regs) -> str:
            regs[b] = regs[a]
            return "on"

        return run

    def _condition(self) -> Callable[[Regs], bool]:
        """Sets the predicate; few threads, half of them or most have it."""
        a, mask = self._register(), self._random.choice([1, 2, 3, 7, 12, 31])
        compare = self._random.choice(["eq", "ne"])
        self.lines += [
            f"shr.u32 %t2, %r{a}, 1; xor.b32 %t2, %t2, %r{a}; and.b32 %t2, %t2, {mask};",
            f"setp.{compare}.u32 %p, %t2, 0;",
        ]
        return lambda regs: (((regs[a] >> 1 ^ regs[a]) & mask) == 0) == (compare == "eq")

    def _if(self, depth: int) -> Step:
        end, holds = self._label(), self._condition()
        self.lines.append(f"@!%p bra {end};")
        inner = self._sequence(3, depth - 1)
        self.lines.append(f"{end}:")
        return lambda regs: inner(regs) if holds(regs) else "on"

    def _if_else(self, depth: int) -> Step:
        other, end, holds = self._label(), self._label(), self._condition()
        self.lines.append(f"@!%p bra {other};")
        inner = self._sequence(3, depth - 1)
        self.lines += [f"bra {end};", f"{other}:"]
        outer = self._sequence(3, depth - 1)
        self.lines.append(f"{end}:")
        return lambda regs: inner(regs) if holds(regs) else outer(regs)

    def _loop(self, depth: int) -> Step:
        head, after, end = self._label(), self._label(), self._label()
        count, a, most = f"%c{self._labels}", self._register(), self._random.choice([1, 3, 7])
        self.lines += [f"and.b32 {count}, %r{a}, {most}; add.u32 {count}, {count}, 1;", f"{head}:"]
        self._loops.append((after, end))
        inner = self._sequence(3, depth - 1)
        self._loops.pop()
        self.lines += [
            f"{after}: sub.u32 {count}, {count}, 1; setp.ne.u32 %p, {count}, 0;",
            f"@%p bra {head};",
            f"{end}:",
        ]

        def run(regs: Regs) -> str:
            for _ in range((regs[a] & most) + 1):
                following = inner(regs)
                if following == "exit":
                    return following
                if following == "break":
                    break
            return "on"

        return run

    def _switch(self, depth: int) -> Step:
        cases, end, table = [self._label() for _ in range(3)], self._label(), self._label()
        a = self._register()
        self.lines += [
            f"and.b32 %t2, %r{a}, 15; min.u32 %t2, %t2, 2;",
            f"{table}: .branchtargets {', '.join(cases)};",
            f"brx.idx %t2, {table};",
        ]
        steps = []
        for label in cases:
            self.lines.append(f"{label}:")
            steps.append(self._sequence(2, depth - 1))
            self.lines.append(f"bra {end};")
        self.lines.append(f"{end}:")
        return lambda regs: steps[min(regs[a] & 15, 2)](regs)

    def _leave_loop(self, depth: int) -> Step:
        holds, kind = self._condition(), self._random.choice(["break", "continue"])
        after, end = self._loops[-1]
        self.lines.append(f"@%p bra {end if kind == 'break' else after};")
        return lambda regs: kind if holds(regs) else "on"

    def _exit(self, depth: int) -> Step:
        holds = self._condition()
        self.lines.append("@%p bra END;")
        return lambda regs: "exit" if holds(regs) else "on"


def differences(seed: int, few: FewThreads) -> list[str]:
    """The threads of a program whose registers are not those of the model."""
    text, step = Maker(seed).program()
    expected = []
    for thread in range(THREADS * BLOCKS):
        regs = [thread, *(n * 77 for n in range(1, REGISTERS))]
        step(regs)
        expected.append(regs)
    wrong = []
    for chunk in (THREADS, THREADS * BLOCKS):
        runner = KernelRunner(text, 1 << 20)
        out = runner.put(np.zeros(THREADS * BLOCKS * REGISTERS, np.uint32))
        limits = Limits(chunk_threads=chunk, share_from=1, few_threads=few)
        runner.launch("k", BLOCKS, THREADS, out, limits=limits)
        found = runner.get(out, THREADS * BLOCKS * REGISTERS, np.uint32).reshape(-1, REGISTERS)
        if found.tolist() != expected:
            wrong.append(f"seed {seed}, chunks of {chunk}")
    return wrong


ARRAYS_ONLY = FewThreads(most=0, most_in_loop=0, most_apart=0)
MIXED = FewThreads(most=5, most_in_loop=9, most_apart=9, heat=0, settled=0)


@pytest.mark.parametrize("few", [ARRAYS_ONLY, MIXED], ids=["arrays", "mixed"])
def test_threads_that_part_and_meet_have_the_registers_of_threads_alone(few: FewThreads) -> None:
    # 344: threads that meet after two splits, some of which lack a register of between the two.
    wrong = [text for seed in (*range(6), 344) for text in differences(seed, few)]
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("few", [ARRAYS_ONLY, MIXED], ids=["arrays", "mixed"])
def test_many_programs_have_the_registers_of_threads_alone(few: FewThreads) -> None:
    wrong = [text for seed in range(100, 400) for text in differences(seed, few)]
    assert not wrong
