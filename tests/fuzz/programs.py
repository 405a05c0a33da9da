"""Random valid programs: nested loops and branches around random instructions and accesses.

A program is a tree, so that a failing one can be made smaller by leaving parts out. Its threads
never race: each writes places of its own, shared memory is read only behind a barrier, and what
atomics do to common places does not depend on their order.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.fuzz.instructions import COUNTS, Instructions

ROW = 128  # bytes of results a thread; every register is stored there at the end
TABLE = 256  # bytes that all threads read
TALLIES = 64  # bytes that all threads count in
SLOT = 16  # bytes of shared memory a thread
LOCAL = 32


@dataclass
class Node:
    """Lines before and after a body of further nodes; a leaf has no body."""

    before: list[str]
    body: list[Node] = field(default_factory=list)
    after: list[str] = field(default_factory=list)
    other: list[Node] | None = None
    between: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        found = list(self.before)
        for node in self.body:
            found += node.lines()
        found += self.between
        for node in self.other or []:
            found += node.lines()
        return found + self.after


@dataclass
class Program:
    """A kernel `k(in, table, tallies, out)` and the functions it calls."""

    nodes: list[Node]
    functions: list[list[Node]]
    block: int
    grid: int

    def text(self) -> str:
        lines = [".version 8.0", ".target sm_80", ".address_size 64"]
        lines.append(f".shared .align 16 .b8 pool[{self.block * SLOT}];")
        for number, body in enumerate(self.functions):
            lines += _function(number, body)
        lines += [
            ".visible .entry k(.param .u64 in, .param .u64 table, .param .u64 tallies,"
            " .param .u64 out)",
            "{", *_DECLARATIONS, f".local .align 8 .b8 own[{LOCAL}];", *_start(self.block),
        ]  # fmt: skip
        for node in self.nodes:
            lines += node.lines()
        return "\n".join([*lines, *_finish(), "ret;", "}"]) + "\n"


_DECLARATIONS = [
    *(f".reg .{kind} %{bank}<{COUNTS[bank]}>;"
      for bank, kind in (("r", "b32"), ("d", "b64"), ("h", "b16"), ("p", "pred"))),
    ".reg .b64 %a<9>; .reg .b32 %s<9>; .reg .b32 %i<99>; .reg .pred %q<99>;",
]  # fmt: skip


def _start(block: int) -> list[str]:
    """Addresses of this thread's own places, and registers from its row of the input."""
    lines = [
        "ld.param.u64 %a0, [in]; ld.param.u64 %a1, [table]; ld.param.u64 %a2, [tallies];",
        "ld.param.u64 %a3, [out];",
        "mov.u32 %s0, %ctaid.x; mov.u32 %s1, %ntid.x; mov.u32 %s2, %tid.x;",
        "mad.lo.u32 %s3, %s0, %s1, %s2;",
        f"mul.wide.u32 %a4, %s3, {ROW}; add.u64 %a0, %a0, %a4; add.u64 %a3, %a3, %a4;",
        f"mov.u32 %s4, pool; mad.lo.u32 %s5, %s2, {SLOT}, %s4;",
        "st.shared.u32 [%s5], %s2; st.shared.u32 [%s5+4], 7;",
        "st.shared.u64 [%s5+8], 0;",
    ]
    lines += [f"st.local.u64 [own+{at}], {at};" for at in range(0, LOCAL, 8)]
    at = 0
    for bank, size in (("d", 8), ("r", 4), ("h", 2)):
        for number in range(COUNTS[bank]):
            lines.append(f"ld.global.b{8 * size} %{bank}{number}, [%a0+{at}];")
            at += size
    lines += [f"setp.lt.s32 %p{n}, %r{n}, %r{n + 1};" for n in range(COUNTS["p"])]
    return [*lines, "bar.sync 0;"]


def _finish() -> list[str]:
    at, lines = 0, []
    for bank, size in (("d", 8), ("r", 4), ("h", 2)):
        for number in range(COUNTS[bank]):
            lines.append(f"st.global.b{8 * size} [%a3+{at}], %{bank}{number};")
            at += size
    for number in range(COUNTS["p"]):
        lines.append(f"selp.b32 %s6, 1, 0, %p{number}; st.global.u32 [%a3+{at}], %s6;")
        at += 4
    lines.append("ld.shared.u64 %a5, [%s5+8]; st.global.u64 [%a3+112], %a5;")
    return lines


def _function(number: int, body: list[Node]) -> list[str]:
    lines = [
        f".func (.param .b32 back) f{number}(.param .b32 one, .param .b64 two)",
        "{", *_DECLARATIONS,
        "ld.param.b32 %r0, [one]; ld.param.b64 %d0, [two];",
    ]  # fmt: skip
    lines += [f"add.u32 %r{n}, %r0, {n * 77};" for n in range(1, COUNTS["r"])]
    lines += [f"xor.b64 %d{n}, %d0, {n * 12345};" for n in range(1, COUNTS["d"])]
    lines += [f"cvt.u16.u32 %h{n}, %r{n};" for n in range(COUNTS["h"])]
    lines += [f"setp.lt.u32 %p{n}, %r{n}, %r{n + 2};" for n in range(COUNTS["p"])]
    for node in body:
        lines += node.lines()
    return [*lines, "st.param.b32 [back], %r3;", "ret;", "}"]


class ProgramMaker:
    """Makes one random program."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._instructions = Instructions(rng)
        self._labels = 0
        self._functions = 0

    def make(self) -> Program:
        """A program of a few dozen statements."""
        functions: list[list[Node]] = []
        for _ in range(self._rng.choice((0, 0, 1, 2))):
            functions.append(self._nodes(self._rng.randrange(1, 6), 2, private=True))
            self._functions = len(functions)
        block = self._rng.choice((32, 64, 96))
        nodes = self._nodes(self._rng.randrange(3, 14), 3, private=False, top=True)
        return Program(nodes, functions, block, self._rng.choice((1, 2, 3)))

    def _nodes(self, count: int, depth: int, *, private: bool, top: bool = False) -> list[Node]:
        return [self._node(depth, private=private, top=top) for _ in range(count)]

    def _node(self, depth: int, *, private: bool, top: bool) -> Node:
        chance = self._rng.random()
        if depth and chance < 0.12:
            return self._branch(depth, private=private)
        if depth and chance < 0.22:
            return self._loop(depth, private=private)
        if top and chance < 0.32:
            return self._exchange()
        if not private and chance < 0.45:
            return self._access()
        if self._functions and chance < 0.5 and not private:
            return self._call()
        return Node([self._instructions.one()])

    def _label(self) -> int:
        self._labels += 1
        return self._labels

    def _branch(self, depth: int, *, private: bool) -> Node:
        n = self._label()
        condition = self._rng.choice(("", "!")) + self._instructions.register("p")
        size = self._rng.randrange(1, 5)
        other = self._nodes(self._rng.randrange(3), depth - 1, private=private)
        return Node(
            [f"@{condition} bra ELSE{n};"],
            self._nodes(size, depth - 1, private=private),
            [f"END{n}:"],
            other,
            [f"bra.uni END{n};", f"ELSE{n}:"],
        )

    def _loop(self, depth: int, *, private: bool) -> Node:
        """A loop whose count differs from thread to thread."""
        n = self._label()
        count = self._rng.choice(("3", "7"))
        source = self._instructions.register("r")
        return Node(
            [f"and.b32 %i{n % 99}, {source}, {count};", f"LOOP{n}:"],
            self._nodes(self._rng.randrange(1, 5), depth - 1, private=private),
            [
                f"add.s32 %i{n % 99}, %i{n % 99}, -1;",
                f"setp.ge.s32 %q{n % 99}, %i{n % 99}, 0;",
                f"@%q{n % 99} bra LOOP{n};",
            ],
        )

    def _exchange(self) -> Node:
        """Where all threads meet: a barrier around shared memory, a vote or a shuffle."""
        r, p = self._instructions.register, self._rng.choice
        kind = p(("shared", "shared", "vote", "shfl"))
        if kind == "vote":
            mode = p(("all.pred", "any.pred", "uni.pred", "ballot.b32"))
            target = r("r") if mode.startswith("ballot") else r("p")
            return Node([f"vote.sync.{mode} {target}, {r('p')}, -1;"])
        if kind == "shfl":
            mode, clamp = p((("up", 0), ("down", 31), ("bfly", 31), ("idx", 31)))
            target = p((r("r"), f"{r('r')}|{r('p')}"))
            segment = p((0, 16, 24, 28)) << 8
            by = p((str(self._rng.randrange(32)), r("r")))
            return Node([f"shfl.sync.{mode}.b32 {target}, {r('r')}, {by}, {segment | clamp}, -1;"])
        size, bank = p(((4, "r"), (8, "d"), (2, "h")))
        offset = self._rng.randrange(0, 8, size)
        return Node([
            f"st.shared.b{8 * size} [%s5+{offset}], {r(bank)};", "bar.sync 0;",
            f"rem.u32 %s6, {r('r')}, %s1; mad.lo.u32 %s6, %s6, {SLOT}, %s4;",
            f"ld.shared.b{8 * size} {r(bank)}, [%s6+{offset}];", "bar.sync 0;",
        ])  # fmt: skip

    def _access(self) -> Node:
        """Memory of the thread's own, the common table, or a tally."""
        r, p = self._instructions.register, self._rng.choice
        kind = p(("table", "own", "local", "tally", "vector", "atom"))
        size, bank = p(((1, "h"), (2, "h"), (4, "r"), (8, "d")))
        sign = p("us")
        if kind == "table":
            return Node([
                f"rem.u32 %s6, {r('r')}, {TABLE // size}; mul.wide.u32 %a5, %s6, {size};",
                f"add.u64 %a5, %a5, %a1; ld.global.{sign}{8 * size} {r(bank)}, [%a5];",
            ])  # fmt: skip
        offset = self._rng.randrange(0, LOCAL, size)
        if kind == "own":
            load = f"ld.global.{sign}{8 * size} {r(bank)}, [%a0+{offset}];"
            return Node([p((load, f"st.global.b{8 * size} [%a0+{offset}], {r(bank)};"))])
        if kind == "local":
            load = f"ld.local.{sign}{8 * size} {r(bank)}, [own+{offset}];"
            return Node([p((load, f"st.local.b{8 * size} [own+{offset}], {r(bank)};"))])
        if kind == "vector":
            at = self._rng.randrange(0, LOCAL, 16)
            words = "{%r1, %r4, %r2, %r7}"
            load = f"ld.global.v4.u32 {words}, [%a0+{at}];"
            return Node([p((load, f"st.global.v4.u32 [%a0+{at}], {words};"))])
        bits = p((32, 64))
        source = r("r" if bits == 32 else "d")
        if kind == "atom":
            return Node([self._own_atomic(bits, source)])
        return self._tally(bits, source)

    def _own_atomic(self, bits: int, source: str) -> str:
        """On a place of the thread's own, where the result can be used."""
        r, p = self._instructions.register, self._rng.choice
        target = r("r" if bits == 32 else "d")
        name = p(("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"))
        kind = f"b{bits}" if name in ("and", "or", "xor", "exch", "cas") else f"u{bits}"
        if name in ("inc", "dec"):
            target, source, kind = r("r"), r("r"), "u32"
        more = f", {r('r' if bits == 32 else 'd')}" if name == "cas" else ""
        place = p((("global", "%a0+96"), ("shared", "%s5+8")))
        return f"atom.{place[0]}.{name}.{kind} {target}, [{place[1]}], {source}{more};"

    def _tally(self, bits: int, source: str) -> Node:
        """On common places, each with an operation of its own whose order does not matter."""
        names = ("add", "and", "or", "xor", "min", "max")
        at = self._rng.randrange(len(names) if bits == 32 else 5)  # as many as there is room for
        name = names[at]
        kind = f"b{bits}" if name in ("and", "or", "xor") else f"u{bits}"
        if bits == 32:
            return Node([f"red.global.{name}.{kind} [%a2+{4 * at}], {source};"])
        return Node([f"red.global.{name}.{kind} [%a2+{24 + 8 * at}], {source};"])

    def _call(self) -> Node:
        r = self._instructions.register
        number = self._rng.randrange(self._functions)
        return Node([
            "{", ".param .b32 x; .param .b64 y; .param .b32 z;",
            f"st.param.b32 [x], {r('r')}; st.param.b64 [y], {r('d')};",
            f"call (z), f{number}, (x, y);", f"ld.param.b32 {r('r')}, [z];", "}",
        ])  # fmt: skip
