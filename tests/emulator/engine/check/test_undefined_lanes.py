"""Which lanes have a value that nothing has written, beside a slow model that follows each lane.

Programs are made at random, of loads, arithmetic, selections, shuffles, votes, matches and
reductions. Each register of each thread that the model calls defined may be stored in global
memory; any other one may not.
"""

from __future__ import annotations

import functools
import operator
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate.model.errors import UninitialisedRead
from ptx.emulate.threads.limits import Limits
from tests.rows import all_rows

from ..kernel_runner import KernelRunner, ptx_text

_THREADS = 64
_REGISTERS = [f"%r{number}" for number in range(10, 16)]
_PREDICATES = [f"%p{number}" for number in range(10, 13)]
_LOW, _HIGH = 0x5A5A5A5A, 0xA5A5A5A5  # two masks that share a warp
_FULL = 0xFFFFFFFF
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add.u32": operator.add,
    "xor.b32": operator.xor,
    "max.u32": max,
}
_REDUCTIONS: dict[str, Callable[[tuple[int, ...]], int]] = {
    "add.u32": sum,
    "max.u32": max,
    "min.u32": min,
}
CHECKED = Limits(checks={"undefined"})


@dataclass(frozen=True)
class Known:
    """A thread's value; `value` counts only where it is defined."""

    value: int
    is_defined: bool = True


_UNDEFINED = Known(0xDEAD, is_defined=False)
_State = dict[str, list[Known]]
_Group = list[Known | None]  # by lane; None for those that the mask does not name
_OfGroup = Callable[[_Group, int], Known]


def _pass(function: Callable[..., int], *sources: Known) -> Known:
    """Arithmetic: the result depends on all."""
    if all(source.is_defined for source in sources):
        return Known(function(*(source.value for source in sources)) & _FULL)
    return _UNDEFINED


def _decided(function: Callable[..., int], decides: int, a: Known, b: Known) -> Known:
    for each in (a, b):
        if each.is_defined and each.value == decides:
            return each
    return _pass(function, a, b)


class _Program:
    """A random program with what the model says of it."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.written = [self._random.random() < 0.8 for _ in range(_THREADS)]
        self.lines: list[str] = []
        self.state: _State = {}
        for register in _REGISTERS:
            self._load(register)
        for predicate in _PREDICATES:
            self._compare(predicate)
        steps = [
            self._load, self._arithmetic, self._arithmetic, self._bits, self._select, self._move,
            self._shuffle, self._shuffle, self._vote, self._ballot, self._match, self._match_all,
            self._reduce, self._negate,
        ]  # fmt: skip
        for _ in range(14):
            step = self._random.choice(steps)
            if step in (self._vote, self._negate):
                step(self._random.choice(_PREDICATES))
            else:
                step(self._register())

    def _register(self) -> str:
        return self._random.choice(_REGISTERS)

    def _line(self, text: str) -> None:
        self.lines.append(text)

    def _each(self, target: str, function: Callable[..., Known], *sources: str) -> None:
        rows = [self.state[source] for source in sources]
        self.state[target] = [function(*each) for each in zip(*rows, strict=True)]

    def _load(self, target: str) -> None:
        far = self._random.randrange(3)
        self._line(
            f"add.u32 %r3, %r0, {far}; and.b32 %r3, %r3, 63; shl.b32 %r3, %r3, 2;"
            f" mov.u32 %r4, s; add.u32 %r3, %r3, %r4; ld.shared.u32 {target}, [%r3];"
        )
        at = [(thread + far) % _THREADS for thread in range(_THREADS)]
        self.state[target] = [Known(t * 5) if self.written[t] else _UNDEFINED for t in at]

    def _compare(self, target: str) -> None:
        source, bound = self._register(), self._random.choice([0, 60, 200])
        self._line(f"setp.gt.u32 {target}, {source}, {bound};")
        self._each(target, functools.partial(_pass, lambda a: int(a > bound)), source)

    def _negate(self, target: str) -> None:
        if self._random.random() < 0.5:
            self._compare(target)
            return
        source, name = self._random.choice(_PREDICATES), self._random.choice(["and", "or"])
        self._line(f"{name}.pred {target}, {target}, {source};")
        function = operator.and_ if name == "and" else operator.or_
        decided = functools.partial(_decided, function, int(name == "or"))
        self._each(target, decided, target, source)

    def _arithmetic(self, target: str) -> None:
        name = self._random.choice(list(_ARITHMETIC))
        a, b = self._register(), self._register()
        self._line(f"{name} {target}, {a}, {b};")
        self._each(target, functools.partial(_pass, _ARITHMETIC[name]), a, b)

    def _bits(self, target: str) -> None:
        """`and` with what is all zero for some lanes."""
        a, lane = self._register(), self._random.randrange(1, 31)
        self._line(
            f"setp.lt.u32 %p3, %r5, {lane}; selp.b32 %r3, 0, -1, %p3; and.b32 {target}, {a}, %r3;"
        )
        found = self.state[a]
        self.state[target] = [
            _decided(operator.and_, 0, each, Known(0 if t % 32 < lane else _FULL))
            for t, each in enumerate(found)
        ]

    def _select(self, target: str) -> None:
        a, b, by = self._register(), self._register(), self._random.choice(_PREDICATES)
        self._line(f"selp.b32 {target}, {a}, {b}, {by};")
        self._each(target, _selected, a, b, by)

    def _move(self, target: str) -> None:
        """A copy under a guard."""
        a, by = self._register(), self._random.choice(_PREDICATES)
        negated = self._random.random() < 0.5
        self._line(f"@{'!' if negated else ''}{by} mov.b32 {target}, {a};")
        sources = (target, a, by) if negated else (a, target, by)
        self._each(target, _selected, *sources)

    def _meet(self, template: str, targets: list[str], sources: list[str], of: _OfGroup) -> None:
        """A warp instruction by all lanes, by two masks, or by odd lanes at another place.

        `template` has {0} for the target, {1} for what each lane brings and {2} for the mask.
        """
        form = self._random.choice(["whole", "masks", "apart"])
        source = [self.state[sources[t % 2 and form == "apart"]][t] for t in range(_THREADS)]
        mask = "%r7" if form == "masks" else "-1"
        lines = [template.format(targets[k], sources[k], mask) for k in range(2)]
        if form == "apart":
            label = len(self.lines)
            self._line(f"@%p1 bra ODD{label}; {lines[0]} bra JOIN{label};")
            self._line(f"ODD{label}: {lines[1]} JOIN{label}:")
        else:
            self._line(lines[0])
        old = {target: list(self.state[target]) for target in targets}
        for t in range(_THREADS):
            named = _FULL
            if form == "masks":
                named = _LOW if _LOW >> t % 32 & 1 else _HIGH
            first = t - t % 32
            group = [source[first + k] if named >> k & 1 else None for k in range(32)]
            target = targets[t % 2 and form == "apart"]
            old[target][t] = of(group, t)
        self.state.update(old)

    def _two(self, of: list[str]) -> list[str]:
        return self._random.choices(of, k=2)

    def _shuffle(self, target: str) -> None:
        mode = self._random.choice(["up", "down", "bfly", "idx"])
        amount: int | str = self._random.randrange(32)
        if self._random.random() < 0.4:
            amount = self._register()
        clamp = 0 if mode == "up" else 31
        amounts = self.state[amount] if isinstance(amount, str) else [Known(amount)] * _THREADS
        amounts = list(amounts)

        def of(group: _Group, t: int) -> Known:
            if not amounts[t].is_defined:
                return _UNDEFINED
            lane, by = t % 32, amounts[t].value & 31
            at = {"up": lane - by, "down": lane + by, "bfly": lane ^ by, "idx": by}[mode]
            return group[at if 0 <= at < 32 else lane] or Known(0)

        template = f"shfl.sync.{mode}.b32 {{0}}, {{1}}, {amount}, {clamp}, {{2}};"
        self._meet(template, [target, self._register()], self._two(_REGISTERS), of)

    def _vote(self, target: str) -> None:
        mode = self._random.choice(["all", "any", "uni"])

        def of(group: _Group, t: int) -> Known:
            there = [each for each in group if each is not None]
            true = any(each.is_defined and each.value for each in there)
            false = any(each.is_defined and not each.value for each in there)
            if {"all": false, "any": true, "uni": true and false}[mode]:
                return Known(int(mode == "any"))
            if all(each.is_defined for each in there):
                return Known(int(mode != "any"))
            return _UNDEFINED

        targets = [target, self._random.choice(_PREDICATES)]
        self._meet(
            f"vote.sync.{mode}.pred {{0}}, {{1}}, {{2}};", targets, self._two(_PREDICATES), of
        )

    def _ballot(self, target: str) -> None:
        def of(group: _Group, t: int) -> Known:
            if any(each is not None and not each.is_defined for each in group):
                return _UNDEFINED
            return Known(sum(1 << k for k, each in enumerate(group) if each and each.value))

        template = "vote.sync.ballot.b32 {0}, {1}, {2};"
        self._meet(template, [target, self._register()], self._two(_PREDICATES), of)

    def _match(self, target: str) -> None:
        def of(group: _Group, t: int) -> Known:
            if any(each is not None and not each.is_defined for each in group):
                return _UNDEFINED
            return Known(sum(1 << k for k, each in enumerate(group) if each == group[t % 32]))

        template = "match.any.sync.b32 {0}, {1}, {2};"
        self._meet(template, [target, self._register()], self._two(_REGISTERS), of)

    def _match_all(self, target: str) -> None:
        def of(group: _Group, t: int) -> Known:
            there = [each for each in group if each is not None]
            if len({each.value for each in there if each.is_defined}) > 1:
                return Known(0)
            if all(each.is_defined for each in there):
                return Known(sum(1 << k for k, each in enumerate(group) if each is not None))
            return _UNDEFINED

        template = "match.all.sync.b32 {0}, {1}, {2};"
        self._meet(template, [target, self._register()], self._two(_REGISTERS), of)

    def _reduce(self, target: str) -> None:
        name = self._random.choice(list(_REDUCTIONS))

        def of(group: _Group, t: int) -> Known:
            there = [each for each in group if each is not None]
            return _pass(lambda *values: _REDUCTIONS[name](values), *there)

        template = f"redux.sync.{name} {{0}}, {{1}}, {{2}};"
        self._meet(template, [target, self._register()], self._two(_REGISTERS), of)

    def text(self) -> str:
        """The kernel: it stores the registers that `keep` names, by thread."""
        results = [*_REGISTERS, *_PREDICATES]
        stores = []
        for row, register in enumerate(results):
            if register in _PREDICATES:
                stores.append(f"selp.u32 %r3, 1, 0, {register};")
                register = "%r3"
            at = 4 * _THREADS * row
            stores.append(
                f"ld.global.u32 %r4, [%rd2+{at}]; setp.ne.u32 %p3, %r4, 0;"
                f" @%p3 st.global.u32 [%rd3+{at}], {register};"
            )
        body = f"""
        .reg .pred %p<20>; .reg .b32 %r<20>; .reg .b64 %rd<8>; .shared .b32 s[{_THREADS}];
        mov.u32 %r0, %tid.x; and.b32 %r5, %r0, 31; and.b32 %r6, %r0, 1;
        setp.eq.u32 %p1, %r6, 1; shr.u32 %r7, {_LOW:#x}, %r5; and.b32 %r7, %r7, 1;
        setp.eq.u32 %p2, %r7, 1; selp.b32 %r7, {_LOW:#x}, {_HIGH:#x}, %p2;
        mul.wide.u32 %rd4, %r0, 4;
        ld.param.u64 %rd1, [written]; ld.param.u64 %rd2, [keep]; ld.param.u64 %rd3, [out];
        add.u64 %rd1, %rd1, %rd4; add.u64 %rd2, %rd2, %rd4; add.u64 %rd3, %rd3, %rd4;
        ld.global.u32 %r8, [%rd1]; setp.ne.u32 %p4, %r8, 0; mul.lo.u32 %r8, %r0, 5;
        shl.b32 %r9, %r0, 2; mov.u32 %r4, s; add.u32 %r9, %r9, %r4;
        @%p4 st.shared.u32 [%r9], %r8; bar.sync 0;
        {chr(10).join(self.lines)}
        {chr(10).join(stores)}
        ret;"""
        return ptx_text(body, ".param .u64 written, .param .u64 keep, .param .u64 out")

    def run(self, runner: KernelRunner, keep: NDArray[np.bool_]) -> NDArray[np.uint32]:
        """What is stored of the registers and threads in `keep`; 7 for others."""
        written = runner.put(np.array(self.written, dtype=np.uint32))
        kept = runner.put(keep.astype(np.uint32))
        out = runner.put(np.full(keep.size, 7, dtype=np.uint32))
        runner.launch("k", 1, _THREADS, written, kept, out, limits=CHECKED)
        return runner.get(out, keep.size, np.uint32).reshape(keep.shape)

    def expected(self) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
        """The registers' values and which are defined, both (registers, threads)."""
        rows = [self.state[register] for register in (*_REGISTERS, *_PREDICATES)]
        values = np.array([[each.value for each in row] for row in rows], dtype=np.uint32)
        defined = np.array([[each.is_defined for each in row] for row in rows])
        return values, defined


def _selected(yes: Known, no: Known, by: Known) -> Known:
    if not by.is_defined:
        return _UNDEFINED
    return yes if by.value else no


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("seed", range(25))
def test_a_random_program_needs_just_the_values_that_a_model_of_each_lane_specifies(
    seed: int,
) -> None:
    program = _Program(seed)
    values, defined = program.expected()
    runner = KernelRunner(program.text())
    found = program.run(runner, defined)
    assert found.tolist() == np.where(defined, values, 7).tolist()
    undefined = np.argwhere(~defined)
    picks = np.random.default_rng(seed).permutation(len(undefined))[:3]
    for row, thread in undefined[picks]:
        keep = np.zeros_like(defined)
        keep[row, thread] = True
        with pytest.raises(UninitialisedRead, match="st.global") as caught:
            program.run(runner, keep)
        assert caught.value.where.thread == (int(thread), 0, 0)
