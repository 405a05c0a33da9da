"""What the assembler makes of some statements, written as PTX.

docs/hardware.md has the facts. The assembler executes some statements otherwise than PTX defines
them, or in one of the ways that PTX leaves open. Each is changed to a statement that the emulator
executes as the GPU does. So a program's difference is explained if its changed text has the GPU's
bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cudadrv.testing.verify.contraction import contractions
from ptx.isa.module import PtxModule

KINDS: Final = {
    "testp": "`testp` is executed without its guard",
    "set": "a guarded `set` of 16 bits, or to a float, writes though its guard is false",
    "vadd4": "`vadd4` or `vsub4` with `.add` is executed without its guard",
    "shift": "`cnot` as the amount of a shift of 16 bits shifts by a huge number",
    "float as amount": "an `f32` as the amount of a shift of 64 bits is converted to an integer",
    "borrow": "a difference with `abs.s64` borrows if it subtracts 0",
    "half sum": "a sum of pairs of halves in shared memory adds the sign for the upper half",
    "carry as float": "a carry that is converted from `f32` is left as it is",
    "fused": "a product without a rounding modifier is fused with a sum",
    "max(x, x)": "`max` or `min` of a register and itself is left out: a NaN keeps its bits",
    "sign of a NaN": "`neg` or `abs` of a NaN changes its sign alone, or nothing",
    "two NaNs": "the operands of `f64` are exchanged, and of two NaNs the first one stays",
}
"""The kinds of changes, with the reason of each."""
_CERTAIN: Final = ("testp", "set", "vadd4")
"""The assembler makes these at every such statement; the others depend on its optimiser."""
_WIDTHS: Final = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "f16x2": 32, "bf16x2": 32}
_SMALL: Final = ("u16", "s16", "b16", "f16", "bf16")
_GUARD: Final = r"(?P<guard>@!?%\w+ )"
_FLOAT: Final = r"(?P<t>f16x2|bf16x2|f16|bf16|f32|f64)"
_UNGUARDED: Final = re.compile(_GUARD + r"(?P<rest>(?P<op>testp|vadd4|vsub4)\..*)")
_SET: Final = re.compile(_GUARD + r"set\.\w+(?:\.ftz)?\.(?P<to>\w+)\.(?P<of>\w+) +(?P<d>%\w+)")
_SAME: Final = re.compile(
    rf"{_GUARD}?(?:max|min)(?:\.(?!xorsign)\w+)*?\.{_FLOAT} +(?P<d>%\w+), *(?P<a>%\w+), *(?P=a);"
)
_SIGN: Final = re.compile(
    rf"{_GUARD}?(?P<op>neg|abs)(?:\.ftz)?\.{_FLOAT} +(?P<d>%\w+), *(?P<a>%\w+);"
)
_CHAIN: Final = re.compile(
    r"mul\.f32 x,(?P<a>%?\w+),(?P<b>%?\w+); add\.f32 x,x,(?P=a); "
    r"(?P<signs>neg\.f32 x,x; abs\.f32 x,x; neg\.f32 (?P<d>%?\w+),x;)"
)
_TWO: Final = re.compile(
    r"(?P<head>.*\b(?:max|min|add|mul|fma|mad)(?:\.\w+)*\.f64 +%\w+), *(?P<a>%\w+), *(?P<b>%\w+)"
    r"(?P<rest>(?:, *%\w+)?;)$"
)
_DIFFERENCE: Final = re.compile(
    rf"{_GUARD}?sub(?P<mode>(?:\.\w+)*)\.f64 +(?P<d>%\w+), *(?P<a>%\w+), *(?P<b>%\w+);$"
)
_SHIFT: Final = re.compile(
    rf"{_GUARD}?(?P<op>sh[lr]\.[bus]16) +(?P<d>%\w+), *(?P<a>%\w+), *(?P<n>%\w+);$"
)

_BORROW: Final = re.compile(r"sub\.cc\.s64 +(?P<d>%?\w+), *(?P<a>%?\w+), *(?P<n>%?\w+);")
_HALF_SUM: Final = re.compile(
    r"(?P<head>(?:atom|red)(?:\.\w+)*?\.shared(?:\.\w+)*?\.add\.noftz\.b?f16x2 [^;]*\]), *"
    r"(?P<r>%?\w+);"
)
_CARRY: Final = re.compile(
    rf"{_GUARD}?cvt\.r[nzmp]i(?:\.sat)?\.[us](?P<w>16|32|64)\.f32 +(?P<d>%?\w+), *(?P<a>%?\w+);"
)
_WIDE_SHIFT: Final = re.compile(
    rf"{_GUARD}?(?P<op>shl\.b64|shr\.[bus]64) +(?P<d>%\w+), *(?P<a>%\w+), *(?P<n>%\w+);$"
)


@dataclass(frozen=True, slots=True)
class Change:
    """Another text of one line.

    Attributes:
        kind: one of `KINDS`.
        line: its number, from 0.
        text: the line as the assembler executes it.
    """

    kind: str
    line: int
    text: str

    @property
    def is_certain(self) -> bool:
        """Whether the assembler makes it at every such statement."""
        return self.kind in _CERTAIN


def changes(ptx: str) -> list[Change]:
    """Return the changes that the assembler may make, of which a line can have several."""
    lines = ptx.split("\n")
    has_cnot, has_carry = "cnot.b32" in ptx, "addc" in ptx or "subc" in ptx
    floats = frozenset(re.findall(r"\.f32 +(%\w+),", ptx))
    found = [
        Change(kind, number, text)
        for number, line in enumerate(lines)
        for kind, text in (
            *_of_line(line, f"%y{number}", has_cnot),
            *_of_wide_shift(line, f"%y{number}", floats),
            *_of_optimiser(line, "abs.s64" in ptx, has_carry),
        )
    ]
    return found + list(_fusions(ptx, lines))


def changed(ptx: str, chosen: Sequence[Change]) -> str:
    """Return the text with some changes, of which no two have one line."""
    lines = ptx.split("\n")
    for change in chosen:
        lines[change.line] = change.text
    return "\n".join(lines)


def _fusions(ptx: str, lines: list[str]) -> Iterator[Change]:
    module = PtxModule(ptx)
    for function in module.entries:
        for each in contractions(module.body(function.name)):
            text = each.fused_line(lines)
            if text is not None:
                yield Change("fused", each.total.line - 1, text)


def _of_line(line: str, name: str, has_cnot: bool) -> Iterator[tuple[str, str]]:
    """Yield the kinds and the texts of the changes of a line; `name` is a free register."""
    if match := _UNGUARDED.fullmatch(line):
        is_simd = match["op"] != "testp"
        if not is_simd:
            yield "testp", match["rest"]
        elif re.match(r"v...4\.u32\.u32\.u32\.add ", match["rest"]):
            yield "vadd4", match["rest"]
    if match := _SET.match(line):
        yield from _of_set(match, line, name)
    if match := _SAME.fullmatch(line):
        guard, width = match["guard"] or "", _WIDTHS[match["t"]]
        yield "max(x, x)", f"{guard}mov.b{width} {match['d']},{match['a']};"
    if match := _SIGN.fullmatch(line):
        yield "sign of a NaN", _sign(match)
    if match := _CHAIN.search(line):
        yield from _of_chain(match, line)
    if (match := _TWO.fullmatch(line)) and match["a"] != match["b"]:
        yield "two NaNs", f"{match['head']}, {match['b']}, {match['a']}{match['rest']}"
    if (match := _DIFFERENCE.fullmatch(line)) and match["a"] != match["b"]:
        total = f"{match['guard'] or ''}add{match['mode']}.f64 {match['d']},{name},{match['a']};"
        yield "two NaNs", f"{{.reg .b64 {name}; neg.f64 {name},{match['b']}; {total}}}"
    if has_cnot and (match := _SHIFT.fullmatch(line)):
        shift = f"{match['guard'] or ''}{match['op']} {match['d']},{match['a']},{name};"
        yield "shift", f"{{.reg .b32 {name}; neg.s32 {name},{match['n']}; {shift}}}"


def _of_set(match: re.Match[str], line: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield the change of a guarded `set`: its result is converted also where it is not written."""
    guard, to, of, d = match["guard"], match["to"], match["of"], match["d"]
    unless = guard.replace("@!", "@") if "!" in guard else guard.replace("@", "@!")
    if to in ("f16", "bf16"):
        text = f".reg .b16 {name}; abs.s16 {name},{d}; {unless}cvt.rn.{to}.s16 {d},{name};"
    elif to == "f32" and of in _SMALL:
        text = (
            f".reg .b16 {name}; cvt.u16.u32 {name},{d}; abs.s16 {name},{name}; "
            f"{unless}cvt.rn.f32.s16 {d},{name};"
        )
    elif to == "f32":
        text = f".reg .b32 {name}; abs.s32 {name},{d}; {unless}cvt.rn.f32.s32 {d},{name};"
    elif to in ("u32", "s32") and of in _SMALL:
        text = f".reg .b16 {name}; cvt.u16.u32 {name},{d}; {unless}cvt.s32.s16 {d},{name};"
    else:
        return
    yield "set", f"{{{text} {line}}}"


def _of_wide_shift(line: str, name: str, floats: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the change of a shift whose amount may be an `f32`: the assembler converts it."""
    match = _WIDE_SHIFT.fullmatch(line)
    if match is not None and match["n"] in floats:
        yield (
            "float as amount",
            (
                f"{{.reg .b64 {name}; .reg .b32 {name}n; cvt.rzi.u64.f32 {name},{match['n']}; "
                f"cvt.u32.u64 {name}n,{name}; "
                f"{match['guard'] or ''}{match['op']} {match['d']},{match['a']},{name}n;}}"
            ),
        )


def _of_optimiser(line: str, has_abs: bool, has_carry: bool) -> Iterator[tuple[str, str]]:
    """Yield the changes of statements that the optimiser of the assembler makes."""
    if has_abs and (match := _BORROW.search(line)):
        test = f"{{.reg .pred yq; .reg .b64 yd; setp.eq.s64 yq,{match['n']},0; "
        end = match.end()
        yield "borrow", f"{test}{line[:end]} @yq sub.cc.s64 yd,0,1;{line[end:]}}}"
    if match := _HALF_SUM.search(line):
        sign = f"shr.s32 ys,{match['r']},31; prmt.b32 ys,{match['r']},ys,0x5410;"
        text = f"{{.reg .b32 ys; {sign} {match['head']},ys;}}"
        yield "half sum", line[: match.start()] + text + line[match.end() :]
    if has_carry and (match := _CARRY.search(line)):
        text = f"{{.reg .pred yq,yg; .reg .b32 yc; mov.b32 yc,{match['a']}; {_copied(match)}}}"
        yield "carry as float", line[: match.start()] + text + line[match.end() :]


def _copied(match: re.Match[str]) -> str:
    """Return a conversion that leaves 0 and 1 as they are."""
    guard = match["guard"] or ""
    test = "setp.le.u32 yq,yc,1;"
    if guard:
        negated = "not" if "!" in guard else "mov"
        test += f" {negated}.pred yg,{guard.strip('@! ')}; and.pred yq,yq,yg;"
    copy = "mov.b32" if match["w"] == "32" else f"cvt.u{match['w']}.u32"
    return f"{test} {match[0]} @yq {copy} {match['d']},yc;"


def _sign(match: re.Match[str]) -> str:
    """Return the operation of a sign as one of bits."""
    width = _WIDTHS[match["t"]]
    top = 1 << width - 1 | (0x8000 if match["t"].endswith("x2") else 0)
    op, mask = ("xor", top) if match["op"] == "neg" else ("and", (1 << width) - 1 - top)
    return f"{match['guard'] or ''}{op}.b{width} {match['d']},{match['a']},{mask};"


def _of_chain(match: re.Match[str], line: str) -> Iterator[tuple[str, str]]:
    """Yield the changes of a product, a sum and three signs in one line."""
    a, b, d, signs = match["a"], match["b"], match["d"], match["signs"]
    product, bits = f"mul.f32 x,{a},{b}; add.f32 x,x,{a};", f"or.b32 {d},x,0x80000000;"
    fused = f"fma.rn.f32 x,{a},{b},{a};"
    for kind, text in (
        ("fused", f"{fused} {signs}"),
        ("sign of a NaN", f"{fused} {bits}"),
        ("sign of a NaN", f"{product} {bits}"),
    ):
        yield kind, line[: match.start()] + text + line[match.end() :]
