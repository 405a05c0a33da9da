"""Random modules of declarations, initialisers, directives, names, versions and targets.

Each choice is one that PTX takes, now and then a slip.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

from campaigns.assembled_ptx.bodies import Bodies

_SLIP: Final = 0.04
_VERSIONS: Final = ("6.0", "6.5", "7.0", "7.7", "7.8", "8.0", "8.3", "8.6", "8.8", "9.0")
_TARGETS: Final = ("sm_52", "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a")
_INTEGERS: Final = (
    "0", "1", "2", "3", "7", "8", "63", "64", "010", "0x1F", "0b101", "1U", "0xFFFFFFFF",
    "0x8000000000000000", "WARP_SZ",
)  # fmt: skip
_FLOATS: Final = ("1.0", "2.5", ".5", "3.", "1e10", "0d3FF0000000000000", "0f3F800000")
_OPERATORS: Final = (
    "+", "-", "*", "/", "%", "<<", ">>", "<", ">", "<=", ">=", "==", "!=", "&", "^", "|", "&&",
    "||",
)  # fmt: skip
_TYPES: Final = (
    "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "b8", "b16", "b32", "b64", "f32", "f64",
)  # fmt: skip
_NAMES: Final = (
    "a",
    "b",
    "%x",
    "_y",
    "$z",
    "a1",
    "add",
    "k1",
    "mov.u32",
    "_",
    "1a",
    "k",
    "%tid",
    "u32",
    "WARP_SZ",
)
_OF_KERNELS: Final = (
    ".maxntid 32", ".maxntid 32, 2, 1", ".reqntid 8", ".maxnreg 32", ".minnctapersm 2",
    ".reqnctapercluster 2", ".maxclusterrank 4", ".noreturn", ".pragma \"nounroll\";",
)  # fmt: skip
_WRONG_OF_KERNELS: Final = (
    ".maxntid 0", ".maxntid 4294967296", ".reqntid 8,", ".maxfoo 3", ".maxntid 8 8",
    ".explicitcluster", ".blocksareclusters", ".maxnctapersm 2", ".pragma \"nounroll\"",
)  # fmt: skip
_WRONG: Final = ("{1}", "nowhere", "1 2", '"a"', "%x", "", "f()", "1.0", "v0", "generic(v0)")


@dataclass
class DeclaredModule:
    """A text, and the variables in it that may be named by others."""

    text: str
    arch: str
    names: list[str] = field(default_factory=list)


def expression(source: random.Random, depth: int) -> str:
    """A constant expression of integers, now and then with floats where they do not belong."""
    way = source.random()
    if depth <= 0 or way < 0.2:
        return source.choice(_FLOATS if source.random() < _SLIP / 2 else _INTEGERS)
    inner = expression(source, depth - 1)
    if way < 0.35:
        return f"({inner})"
    if way < 0.5:
        return f"{source.choice('+-!~')} {inner}"
    if way < 0.56:
        return f"({source.choice(('.s64', '.u64'))}){inner}"
    other = expression(source, depth - 1)
    if way < 0.64:
        return f"{inner} ? {other} : {expression(source, depth - 1)}"
    operator = source.choice(_OPERATORS)
    # ptxas divides the smallest number by -1, and ends.
    is_risky = operator in "/%" and ("-" in other or "~" in other)
    return f"{inner} {'+' if is_risky else operator} {other}"


def _value(source: random.Random, kind: str, names: list[str]) -> str:
    if source.random() < _SLIP:
        return source.choice(_WRONG)
    if kind[0] == "f":
        return source.choice(("", "-")) + source.choice(_FLOATS)
    if names and kind in ("u64", "b64", "s64", "u32", "b32") and source.random() < 0.3:
        name, offset = source.choice(names), source.choice(("", "+4", "+ 4*2", "-4"))
        return source.choice((f"{name}{offset}", f"generic({name}){offset}"))
    if names and kind in ("u8", "b8") and source.random() < 0.2:
        return f"0x{source.choice(('FF', 'FF00', 'FF0000', 'FF00000000'))}({source.choice(names)})"
    return expression(source, source.choice((0, 0, 1, 2, 3)))


def _values(source: random.Random, kind: str, names: list[str], most: int) -> str:
    """A list of values, which is shorter than the array now and then; rarely longer."""
    count = source.choice((most, most, max(1, most - 1), 1))
    if source.random() < _SLIP:
        count = most + 1
    values = [_value(source, kind, names)]
    values += [
        source.choice(("0", "7", "-1")) if kind[0] != "f" else "1.0" for _ in range(count - 1)
    ]
    source.shuffle(values)
    return "{" + ", ".join(values) + "}"


def _variable(source: random.Random, module: DeclaredModule, number: int) -> str:
    def one(usual: tuple[str, ...], wrong: tuple[str, ...]) -> str:
        return source.choice(wrong if source.random() < _SLIP else usual)

    space = one((".global", ".global", ".const"), (".shared", ".local", ".param", ".reg"))
    kind = one(_TYPES, ("b128", "f16", "f16x2", "pred", "u128"))
    name = source.choice(_NAMES) if source.random() < 0.05 else f"v{number}"
    vector = source.choice((".v2 ", ".v4 ")) if source.random() < 0.15 else ""
    align = one(("", "", ".align 8 ", ".align 16 "), (".align 3 ", ".align 0 ", ".align 256 "))
    linkage = one(("", "", ".visible ", ".weak "), (".common ", ".extern ", ".static "))
    extent, most = source.choice(
        (("", 1), ("", 1), ("[3]", 3), ("[2][2]", 4), ("[20]", 20), ("[1+1]", 2), ("[]", 3))
    )
    if source.random() < _SLIP:
        extent = source.choice(("<3>", "<0>", "[0]", "[-1]", "[][2]", "[3][]", "[WARP_SZ]"))
    attribute = ".attribute(.managed) " if source.random() < _SLIP else ""
    head = f"{linkage}{space} {attribute}{align}{vector}.{kind} {name}{extent}"
    if name.startswith("v") and space == ".global":
        module.names.append(name)
    if extent != "[]" and source.random() < 0.3:
        return f"{head};"
    names = module.names  # its own, too
    if extent == "[2][2]":
        inner = [_values(source, kind, names, 2) for _ in range(source.choice((1, 2)))]
        value = "{" + ", ".join(inner) + "}"
    elif vector:
        lanes = int(vector[2])
        value = _values(source, kind, names, lanes)
        if extent:
            value = "{" + value + "}"
    else:
        value = _values(source, kind, names, most) if extent else _value(source, kind, names)
    return f"{head} = {value};"


def _parameters(source: random.Random, owner: str) -> str:
    """A list of parameters of a kernel (`entry`), of a function (`func`) or of its `result`."""

    def one(usual: tuple[str, ...], wrong: tuple[str, ...]) -> str:
        return source.choice(wrong if source.random() < _SLIP else usual)

    declared = []
    for number in range(source.choice((1, 1, 2, 3)) if owner != "result" else 1):
        space = one((".param",) if owner == "entry" else (".param", ".param", ".reg"), (".reg", ""))
        align = one(("", "", ".align 8 ", ".align 16 "), (".align 3 ", ".align 0 "))
        kind = one((*_TYPES, "b128", "f16"), ("f16x2", "pred", "u128"))
        pointer = ".ptr .global .align 4 " if owner == "entry" and source.random() < 0.2 else ""
        extent = one(("", "", "", "[4]"), ("[]", "[0]", "[2][2]", "<2>", "[-1]"))
        name = one((f"p{number}",), ("p0", "_", "1p", "k"))
        vector = one(("",), (".v2 ", ".v4 "))
        declared.append(f"{space} {align}{vector}.{kind} {pointer}{name}{extent}")
    return f"({', '.join(declared)})"


def _functions(source: random.Random) -> list[str]:
    """A function, or none, which is defined or only declared."""
    if source.random() < 0.7:
        return []
    linkage = source.choice(("", "", ".visible ", ".weak ", ".extern ", ".common "))
    result = f" {_parameters(source, 'result')}" if source.random() < 0.5 else ""
    parameters = _parameters(source, "func") if source.random() < 0.7 else ""
    return [f"{linkage}.func{result} f{parameters}{source.choice((';', ' { ret; }'))}"]


def _section(source: random.Random) -> str:
    """A section of debug information."""

    def one(usual: tuple[str, ...], wrong: tuple[str, ...]) -> str:
        return source.choice(wrong if source.random() < _SLIP else usual)

    def entry() -> str:
        if source.random() < 0.3:
            return one(("A:", "B :", "$L__c:", "k:"), ("1:", "A", "A::", "A;"))
        kind = one(
            (".b32", ".b64", ".b8", ".b16"), (".f32", ".u8", ".s32", "", ".b128", ".align 4")
        )
        if source.random() < 0.3:
            names = ("A", "k", ".debug_str", "A+4", "B-A", "$L__c", ".u128")
            return f"{kind} {one(names, ('A-4', '4+A', 'A, 1', 'A+B', '.x-A'))}"
        values = ("0", "1, 255", "0x7f", "017", "-128", "200U", "1 , 2,3")
        wrong = ("256", "-129", "70000", "-32769", "4294967296", "1+1", "(1)", "1 2", "1,", "-1U")
        return f"{kind} {one(values, wrong)}"

    name = one((".debug_str", ".debug_info", ".version", ".a::b"), (".a.b", ".rn", "debug_str", ""))
    entries = " ".join(entry() for _ in range(source.choice((0, 1, 2, 3))))
    return f".section {name} {{ {entries} {one(('}',), ('', '} }', '};'))}"


def declared_module(source: random.Random) -> DeclaredModule:
    """A module of a few declarations and a kernel."""
    target = source.choice(_TARGETS) if source.random() < 0.15 else "sm_90a"
    version = source.choice(_VERSIONS) if source.random() < 0.15 else "9.0"
    module = DeclaredModule("", "sm_90a" if target == "sm_90a" else "sm_90")
    if source.random() < 0.1:
        target = target.replace("sm_", "compute_")
    sections = _section(source) if source.random() < 0.1 else ""
    if source.random() < 0.05 + 0.8 * bool(sections):
        target = f"{target}, debug"
    bodies = Bodies(source, module.names)
    called = bodies.functions()
    declared = [
        _variable(source, module, number) for number in range(source.choice((0, 0, 1, 2, 3)))
    ]
    directives = [source.choice(_OF_KERNELS) for _ in range(source.choice((0, 0, 0, 1, 2)))]
    if source.random() < _SLIP:
        directives.append(source.choice(_WRONG_OF_KERNELS))
    parameters = _parameters(source, "entry") if source.random() < 0.3 else "()"
    kernel = f".visible .entry k{parameters} {' '.join(directives)} {bodies.body()}"
    stated = [*declared, *_functions(source), *called, kernel]
    if source.random() < 0.1:  # names that are declared after their use
        source.shuffle(stated)
    module.text = "\n".join(
        (
            *(("// .version 7.5",) if source.random() < 0.1 else ()),
            f".version {version}",
            f".target {target}",
            ".address_size 64",
            *stated,
            sections,
        )
    )
    return module
