"""Random divergent programs of the forms.

They leave out what PTX does not define, and what driver 580 is known to assemble wrongly
(docs/hardware.md): sums and products without a rounding modifier, `rem` by zero, guards of `testp`,
of `set`, and of unsigned `vadd4` and `vsub4` with `.add`, `set` of halves with a 32-bit result,
`cnot` as an amount. Each result of a float loses the bits of its NaN. Each thread has a cell of its
own for atomic operations, so that no result depends on their order.
"""

from __future__ import annotations

import random
import re
from functools import cache
from typing import Final

from .case import Buffer, Case, register_of
from .forms import Form, forms
from .forms.form import OPERANDS, bits

_THREADS: Final = 128
_COUNTS: Final = {16: 4, 32: 8, 64: 5}
_NAMES: Final = {16: "%h", 32: "%r", 64: "%d"}
_SIZES: Final = (10, 25, 40, 70)
_DEEPEST: Final = 3
_FUSED: Final = re.compile(r"(?:add|sub|mul)(?:\.ftz)?(?:\.sat)?\.(?:b?f16(?:x2)?|f32|f64)")
_OPEN: Final = re.compile(r"(?:rem|cnot)\.|set\.\w+\.[su]\d\d\.b?f16")
_NEVER_GUARDED: Final = re.compile(r"(?:testp\.|set\.|v(?:add|sub)4\.u32\.u32\.u32\.add$)")
_PLACE: Final = re.compile(r"\$(s64|s0|d\d|p2|[a-fmsp])")
_FLOATS: Final = ("f16", "bf16", "f16x2", "bf16x2", "f32", "f64", "tf32")
_CANONICAL: Final = {"f16": "0x7fff", "bf16": "0x7fff", "f32": "0x7fffffff", "tf32": "0x7fffffff",
                     "f64": "0x7ff8000000000000"}  # fmt: skip
_CROSSING: Final = re.compile(r"(?:shfl\.\w+|shfl\.\w+\.raw|vote\.\w+|match\.\w+\.b\d+|redux\.\S+)")
_HEAD: Final = """\
.version 9.0
.target sm_90
.address_size 64
.visible .entry K(.param .u64 A,.param .u64 B,.param .u64 C,.param .u64 M,.param .u64 O)
{
.reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %d<5>; .reg .pred %p<4>;
.reg .b32 %t,%ss; .reg .b64 %x,%mm,%s64; .shared .align 128 .b8 sh[4096];
mov.u32 %t,sh; mov.u32 %ss,%tid.x; mad.lo.u32 %ss,%ss,16,64; add.u32 %ss,%ss,%t;
cvt.u64.u32 %s64,%ss; mov.u32 %t,%tid.x; ld.param.u64 %mm,[M]; mad.wide.u32 %mm,%t,16,%mm;"""


def program_case(number: int, seed: int) -> Case:
    """Return a random program; its number and the seed choose it."""
    text = _Program(random.Random(f"{seed} {number}")).text(_SIZES[number % len(_SIZES)])
    buffers = (
        Buffer("raw16", _THREADS * 8),
        Buffer("raw32", _THREADS * 32),
        Buffer("raw64", _THREADS * 40),
        Buffer("zero", _THREADS * 16),
        Buffer("zero", _THREADS * 88, "u4"),
    )
    return Case(f"program{seed}.{number}", text, buffers, threads=_THREADS, seed=1000 + number)


@cache
def _families() -> dict[str, tuple[Form, ...]]:
    """The forms that a program may have anywhere, by the first word of their names."""
    found: dict[str, list[Form]] = {}
    for form in forms():
        if form.group == "plain" and not _FUSED.fullmatch(form.name) and not _OPEN.match(form.name):
            found.setdefault(re.split(r"[.\d]", form.name)[0], []).append(form)
    return {name: tuple(each) for name, each in found.items()}


@cache
def _atomics() -> tuple[Form, ...]:
    return tuple(form for form in forms() if re.match(r"(?:atom|red)\.(?!all|async)", form.name))


@cache
def _crossing() -> tuple[Form, ...]:
    return tuple(form for form in forms() if _CROSSING.fullmatch(form.name))


def result_format(form: Form) -> str:
    """Return the float format of a form's results, "" if they are no floats."""
    types = [word for word in form.name.split(".") if word in _FLOATS]
    if not types or form.name.startswith(("setp", "testp", "slct", "selp", "mov")):
        return ""
    if form.name.startswith(("cvt", "set")):
        first = next(word for word in form.name.split(".") if re.fullmatch(r"[a-z]+\d\w*", word))
        return first if first in _FLOATS else ""
    return types[-1]


class _Program:
    """The text of one program."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._labels = 0

    def text(self, size: int) -> str:
        """Return the program, of about so many statements."""
        lines = [_HEAD]
        for parameter, width in (("A", 16), ("B", 32), ("C", 64)):
            stride = width // 8 * _COUNTS[width]
            lines.append(f"ld.param.u64 %x,[{parameter}]; mad.wide.u32 %x,%t,{stride},%x;")
            lines += [
                f"ld.global.b{width} {_NAMES[width]}{k},[%x+{k * width // 8}];"
                for k in range(_COUNTS[width])
            ]
        lines += [f"setp.gt.s32 %p{k},%r{k},%r{k + 3};" for k in range(4)]
        lines += self._block(0, size)
        lines.append("ld.param.u64 %x,[O]; mad.wide.u32 %x,%t,88,%x;")
        lines += [f"st.global.b64 [%x+{8 * k}],%d{k};" for k in range(5)]
        lines += [f"st.global.b32 [%x+{40 + 4 * k}],%r{k};" for k in range(8)]
        lines += [f"st.global.b16 [%x+{72 + 2 * k}],%h{k};" for k in range(4)]
        lines += [
            f"{{.reg .b16 y; selp.b16 y,1,0,%p{k}; st.global.b16 [%x+{80 + 2 * k}],y;}}"
            for k in range(4)
        ]
        return "\n".join((*lines, "ret;", "}", ""))

    def _block(self, depth: int, size: int) -> list[str]:
        lines: list[str] = []
        for _ in range(size):
            chance = self._chance.random()
            if depth < _DEEPEST and chance < 0.12:
                lines += self._branch(depth + 1)
            elif depth < _DEEPEST and chance < 0.17:
                lines += self._loop(depth + 1)
            elif depth < _DEEPEST and chance < 0.19:
                lines += self._switch(depth + 1)
            elif depth == 0 and chance < 0.24:
                lines += ["bar.warp.sync -1;", self._use(self._chance.choice(_crossing()))]
            elif chance > 0.94:
                lines.append(self._use(self._chance.choice(_atomics())))
            else:
                family = self._chance.choice(list(_families()))
                guard = self._chance.choice(("", "", "", "@%p0 ", "@!%p1 "))
                lines.append(self._use(self._chance.choice(_families()[family]), guard))
        return lines

    def _label(self) -> int:
        self._labels += 1
        return self._labels

    def _branch(self, depth: int) -> list[str]:
        k, p, a, b = self._label(), *(self._chance.randrange(n) for n in (3, 8, 8))
        test = self._chance.choice(("lt.s32", "gt.s32", "ltu.f32", "ne.s32"))
        return [
            f"setp.{test} %p{p},%r{a},%r{b}; @%p{p} bra E{k};",
            *self._block(depth, self._chance.randint(1, 6)),
            f"bra J{k};",
            f"E{k}:",
            *self._block(depth, self._chance.randint(0, 5)),
            f"J{k}:",
        ]

    def _loop(self, depth: int) -> list[str]:
        k, a = self._label(), self._chance.randrange(8)
        return [
            f"{{.reg .b32 c{k}; .reg .pred q{k}; and.b32 c{k},%r{a},7;",
            f"L{k}:",
            *self._block(depth, self._chance.randint(1, 5)),
            f"sub.s32 c{k},c{k},1; setp.ge.s32 q{k},c{k},0; @q{k} bra L{k};}}",
        ]

    def _switch(self, depth: int) -> list[str]:
        k, a = self._label(), self._chance.randrange(8)
        targets = ",".join(f"B{k}_{j}" for j in range(4))
        lines = [
            f"{{.reg .b32 i{k}; and.b32 i{k},%r{a},3; B{k}t: .branchtargets {targets}; "
            f"brx.idx i{k},B{k}t;}}"
        ]
        for j in range(4):
            lines += [f"B{k}_{j}:", *self._block(depth, self._chance.randint(0, 3))]
            lines += [f"bra Z{k};"] if self._chance.random() < 0.7 else []
        return [*lines, f"Z{k}:"]

    def _register(self, width: int) -> str:
        return f"{_NAMES[width]}{self._chance.randrange(_COUNTS[width])}"

    def _use(self, form: Form, guard: str = "") -> str:
        """Return a statement that executes a form on registers of the program."""
        names = {"m": "%mm", "s": "%ss", "s64": "%s64", "s0": "sh"}
        for k, t in enumerate(form.inputs):
            names[OPERANDS[k]] = self._register(bits(register_of(t)))
        before, after, number = "", "", 0
        for t in form.outputs:
            if t.startswith("pred"):
                names["p" if t == "pred" else "p2"] = (
                    f"%p{self._chance.randrange(3)}" if t == "pred" else "%p3"
                )
                continue
            # An own register, since a form of several instructions reads its operands later.
            number += 1
            width, name = bits(register_of(t)), f"o{number}"
            target = self._register(width)
            names["d" if number == 1 else f"d{number}"] = name
            before += f".reg .b{width} {name}; mov.b{width} {name},{target}; "
            after += f"{_without_payload(name, result_format(form))} mov.b{width} {target},{name}; "
        text = _PLACE.sub(lambda match: names[match[1]], form.text)
        if text.startswith("{") or form.group == "memory" or _NEVER_GUARDED.match(form.name):
            guard = ""
        return f"{{{before}{guard}{text} {after}}}"


def _without_payload(name: str, format_: str) -> str:
    """Return PTX that replaces a NaN by the canonical one."""
    if not format_:
        return ""
    if format_.endswith("x2"):
        half = format_.removesuffix("x2")
        each = "".join(_without_payload(f"v{k}", half) for k in range(2))
        return f"{{.reg .b16 v0,v1; mov.b32 {{v0,v1}},{name}; {each} mov.b32 {name},{{v0,v1}};}}"
    canonical, width = _CANONICAL[format_], bits(register_of(format_))
    compared = "f32" if format_ == "tf32" else format_
    return (
        f"{{.reg .pred n; setp.nan.{compared} n,{name},{name}; "
        f"selp.b{width} {name},{canonical},{name},n;}}"
    )
