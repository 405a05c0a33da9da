"""A random program: a tree of statements in a kernel that stores every register at its end.

A program is a tree, so that a failing one can be made smaller by leaving parts out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from campaigns.random_ptx.floats import SCRATCH
from campaigns.random_ptx.registers import BYTES, COUNTS, INVARIANT, TYPES

ROW = 192  # bytes of results a thread; every register is stored there at the end
TABLE = 256  # bytes that all threads read
TALLIES = 512  # bytes that all threads count in; the last 256 are counted by ticket
SLOT = 16  # bytes of shared memory a thread
LOCAL = 32
OWN = 96  # where in its row of the input a thread's atomics act; 16 bytes
_EXTRA = 176  # where in its row of the results a thread's shared atomics go


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
    """A kernel `k(in, table, tallies, out)` and the functions it calls.

    `hidden` has the numbers of the %f registers whose bits are not stored but those of a sum.
    """

    nodes: list[Node]
    functions: list[list[Node]]
    block: int
    grid: int
    hidden: frozenset[int] = frozenset()

    def text(self) -> str:
        lines = [".version 8.7", ".target sm_100", ".address_size 64"]
        lines.append(f".shared .align 16 .b8 pool[{self.block * SLOT}];")
        for number, body in enumerate(self.functions):
            lines += _function(number, body)
        lines += [
            ".visible .entry k(.param .u64 in, .param .u64 table, .param .u64 tallies,"
            " .param .u64 out)",
            "{",
            *_DECLARATIONS,
            f".local .align 8 .b8 own[{LOCAL}];",
            *_start(),
        ]
        for node in self.nodes:
            lines += node.lines()
        return "\n".join([*lines, *_finish(self.hidden), "ret;", "}"]) + "\n"


_DECLARATIONS = [
    *(f".reg .{TYPES[bank]} %{bank}<{count}>;" for bank, count in COUNTS.items()),
    ".reg .b64 %a<9>; .reg .b32 %s<9>; .reg .b32 %i<99>; .reg .pred %q<99>; .reg .b32 %m<99>;",
    f".reg .f32 %u<{SCRATCH}>; .reg .b32 %t<{len(INVARIANT)}>;",
]


def _start() -> list[str]:
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
    for bank, size in BYTES.items():
        for number in range(COUNTS[bank]):
            lines.append(f"ld.global.b{8 * size} %{bank}{number}, [%a0+{at}];")
            at += size
    lines += INVARIANT.values()
    lines += [f"setp.lt.s32 %p{n}, %r{n}, %r{n + 1};" for n in range(COUNTS["p"])]
    return [*lines, "bar.sync 0;"]


def _finish(hidden: frozenset[int]) -> list[str]:
    at, lines = 0, []
    for bank, size in BYTES.items():
        for number in range(COUNTS[bank]):
            register = f"%{bank}{number}"
            if bank == "f" and number in hidden:
                lines.append(f"add.f32 %u0, {register}, 0f3F800000;")
                register = "%u0"
            lines.append(f"st.global.b{8 * size} [%a3+{at}], {register};")
            at += size
    for number in range(COUNTS["p"]):
        lines.append(f"selp.b32 %s6, 1, 0, %p{number}; st.global.u32 [%a3+{at}], %s6;")
        at += 4
    assert at <= _EXTRA
    lines.append(f"ld.shared.u64 %a5, [%s5+8]; st.global.u64 [%a3+{_EXTRA}], %a5;")
    return lines


def _function(number: int, body: list[Node]) -> list[str]:
    lines = [
        f".func (.param .b32 back) f{number}(.param .b32 one, .param .b64 two)",
        "{",
        *_DECLARATIONS,
        "ld.param.b32 %r0, [one]; ld.param.b64 %d0, [two]; mov.u32 %s2, %tid.x;",
    ]
    lines += INVARIANT.values()
    lines += [f"add.u32 %r{n}, %r0, {n * 77};" for n in range(1, COUNTS["r"])]
    lines += [f"xor.b64 %d{n}, %d0, {n * 12345};" for n in range(1, COUNTS["d"])]
    lines += [f"cvt.u16.u32 %h{n}, %r{n};" for n in range(COUNTS["h"])]
    lines += [f"mov.b32 %f{n}, %r{n};" for n in range(COUNTS["f"])]
    lines += [f"mov.b64 %g{n}, %d{n};" for n in range(COUNTS["g"])]
    lines += [f"setp.lt.u32 %p{n}, %r{n}, %r{n + 2};" for n in range(COUNTS["p"])]
    for node in body:
        lines += node.lines()
    return [*lines, "st.param.b32 [back], %r3;", "ret;", "}"]
