"""Random modules of declarations, initialisers, directives, names, versions and targets.

Six of ten have only what PTX takes. Each other one has one fault, of which the name is known.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from campaigns.assembled_ptx.bodies import Bodies
from campaigns.assembled_ptx.slips import Slips, chosen_place

_VERSIONS: Final = ("6.0", "6.5", "7.0", "7.7", "7.8", "8.0", "8.3", "8.6", "8.8", "9.0")
_SINCE: Final = {
    "sm_53": "6.0", "sm_70": "6.0", "sm_75": "6.5", "sm_80": "7.0", "sm_86": "7.7",
    "sm_89": "7.8", "sm_90": "7.8", "sm_90a": "8.0",
}  # fmt: skip
_INTEGERS: Final = (
    "0", "1", "2", "3", "7", "8", "63", "64", "010", "0x1F", "0b101", "1U", "0xFFFFFFFF",
    "0x8000000000000000", "WARP_SZ",
)  # fmt: skip
_DIVISORS: Final = ("1", "3", "(1 + 2)", "(.s64)7", "0x1F", "(1 << 4)", "WARP_SZ", "8U")
_FLOATS: Final = ("1.0", "2.5", ".5", "3.", "1e10", "0d3FF0000000000000", "0f3F800000")
_OPERATORS: Final = (
    "+", "-", "*", "/", "%", "<<", ">>", "<", ">", "<=", ">=", "==", "!=", "&", "^", "|", "&&",
    "||",
)  # fmt: skip
_TYPES: Final = (
    "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "b8", "b16", "b32", "b64", "f32", "f64",
)  # fmt: skip
_WIDE_TYPES: Final = ("u32", "u64", "s32", "s64", "b32", "b64", "f32", "f64")
_NAMES: Final = ("a", "b", "%x", "_y", "$z", "a1", "add", "k1", "u32")
_WRONG_NAMES: Final = ("mov.u32", "_", "1a", "k", "%tid", "WARP_SZ")
_OF_CLUSTERS: Final = (".reqnctapercluster 2", ".maxclusterrank 4")
_OF_KERNELS: Final = (
    (".maxntid 32", ".maxntid 32, 2, 1", ".reqntid 8"),
    (".maxnreg 32", ".minnctapersm 2"),
    _OF_CLUSTERS,
    (".pragma \"nounroll\";",),
)  # fmt: skip
_WRONG_OF_KERNELS: Final = (
    ".noreturn", ".maxntid 0", ".maxntid 4294967296", ".reqntid 8,", ".maxfoo 3", ".maxntid 8 8",
    ".explicitcluster", ".blocksareclusters", ".maxnctapersm 2", ".pragma \"nounroll\"",
)  # fmt: skip
_WRONG: Final = ("{1}", "nowhere", "1 2", '"a"', "%x", "", "f()", "1.0", "v0", "generic(v0)")


@dataclass
class DeclaredModule:
    """A text, and the name of its fault, "" for none."""

    text: str
    arch: str
    fault: str = ""

    @property
    def named(self) -> str:
        """The text, with the fault as a comment at its end."""
        return f"{self.text.rstrip()}\n// fault: {self.fault or 'none'}"


def declared_module(source: random.Random) -> DeclaredModule:
    """A module of a few declarations and a kernel, right or with one fault."""
    seed = source.getrandbits(64)
    tried = _Maker(random.Random(seed))
    module = tried.module()
    chosen = chosen_place(source, tried.slips.places)
    return module if chosen is None else _Maker(random.Random(seed), chosen).module()


class _Maker:
    """Makes one module; up to the place of its fault it is as without one."""

    def __init__(self, source: random.Random, chosen: int | None = None) -> None:
        self._source = source
        self.slips = Slips(source, chosen)
        self._names: list[str] = []  # of variables that others may name
        self._taken: set[str] = set()
        self._version, self._target = "9.0", "sm_90a"

    def module(self) -> DeclaredModule:
        """A module of a few declarations and a kernel."""
        source, slips = self._source, self.slips
        self._choose_target()
        is_real = source.random() >= 0.1
        target = self._target if is_real else self._target.replace("sm_", "compute_")
        sections = self._section() if source.random() < 0.1 else ""
        if sections or slips.at("debug without a section"):
            target = f"{target}, debug"
        bodies = Bodies(source, slips, self._names)
        called = bodies.functions()
        declared = [self._variable(number) for number in range(source.choice((0, 1, 1, 2, 3, 4)))]
        groups = source.sample(_OF_KERNELS, source.choice((0, 0, 0, 1, 2)))
        directives = [
            source.choice(group)
            for group in groups
            if group is not _OF_CLUSTERS or self._target.startswith("sm_90")
        ]
        if slips.at("a directive of a kernel"):
            directives.append(source.choice(_WRONG_OF_KERNELS))
        parameters = self._parameters("entry") if source.random() < 0.3 else "()"
        kernel = f".visible .entry k{parameters} {' '.join(directives)} {bodies.body()}"
        stated = [*declared, *self._functions(), *called, kernel]
        if slips.at("names that are declared after their use"):
            source.shuffle(stated)
        lines = (
            *(("// .version 7.5",) if source.random() < 0.1 else ()),
            f".version {self._version}",
            f".target {target}",
            ".address_size 64",
            *stated,
            sections,
        )
        arch = "sm_90a" if self._target == "sm_90a" else "sm_90"
        return DeclaredModule("\n".join(lines), arch, slips.fault)

    def _choose_target(self) -> None:
        source = self._source
        if source.random() < 0.15:
            self._target = source.choice(tuple(_SINCE))
        since = _number_of(_SINCE[self._target])
        if self.slips.at("a version before the target"):
            early = [each for each in _VERSIONS if _number_of(each) < since]
            self._version = source.choice(early or ["5.9"])
        elif source.random() < 0.15:
            self._version = source.choice([e for e in _VERSIONS if _number_of(e) >= since])

    def _expression(self, depth: int) -> str:
        """A constant expression of integers, with a float where it is wrong."""
        source, way = self._source, self._source.random()
        if depth <= 0 or way < 0.2:
            return self.slips.one("a float in an expression of integers", _INTEGERS, _FLOATS)
        inner = self._expression(depth - 1)
        if way < 0.35:
            return f"({inner})"
        if way < 0.5:
            return f"{source.choice('+-!~')} {inner}"
        if way < 0.56:
            return f"({source.choice(('.s64', '.u64'))}){inner}"
        other = self._expression(depth - 1)
        if way < 0.64:
            return f"{inner} ? {other} : {self._expression(depth - 1)}"
        operator = source.choice(_OPERATORS)
        if operator in "/%":  # ptxas divides the smallest number by -1, and ends
            other = self.slips.one("a division by zero", _DIVISORS, ("0", "(1 - 1)", "!7"))
        return f"{inner} {operator} {other}"

    def _value(self, kind: str) -> str:
        source, names = self._source, self._names  # its own, too
        if self.slips.at("a value of another kind"):
            return source.choice(_WRONG)
        if kind[0] == "f":
            number = source.choice(_FLOATS)
            return number if number.startswith("0") else source.choice(("", "-")) + number
        takes_address = kind in ("u32", "u64")
        if names and kind[1:] in ("16", "32", "64") and not takes_address:
            takes_address = self.slips.at("an address in another type")
        if names and takes_address and source.random() < 0.5:
            name, offset = source.choice(names), source.choice(("", "+4", "+ 4*2"))
            if self.slips.at("an address minus a number"):
                offset = "-4"
            return source.choice((f"{name}{offset}", f"generic({name}){offset}"))
        if names and kind == "u8" and source.random() < 0.4:
            mask = source.choice(("FF", "FF00", "FF0000", "FF00000000"))
            return f"0x{mask}({source.choice(names)})"
        return self._expression(source.choice((0, 0, 1, 2, 3)))

    def _values(self, kind: str, counts: tuple[int, ...]) -> str:
        """A list of one of these numbers of values."""
        source = self._source
        count = source.choice(counts)
        if self.slips.at("a value too many"):
            count = max(counts) + 1
        values = [self._value(kind)]
        values += [
            source.choice(("0", "7", "-1")) if kind[0] != "f" else "1.0" for _ in range(count - 1)
        ]
        source.shuffle(values)
        return "{" + ", ".join(values) + "}"

    def _variable(self, number: int) -> str:
        source, one = self._source, self.slips.one
        wrong_spaces = (".shared", ".local", ".param", ".reg")
        space = one("the space of a variable", (".global", ".global", ".const"), wrong_spaces)
        wrong_types = ("b128", "f16", "f16x2", "pred", "u128")
        kind = one("the type of a variable", _TYPES, wrong_types)
        name = f"v{number}"
        if source.random() < 0.05:
            free = tuple(each for each in _NAMES if each not in self._taken)
            name = one("the name of a variable", free, _WRONG_NAMES)
        vector = source.choice((".v2 ", ".v4 ")) if source.random() < 0.15 else ""
        if vector == ".v4 " and kind.endswith("64"):
            vector = ".v2 "
        wrong_aligns = (".align 3 ", ".align 0 ", ".align 256 ")
        align = one("the alignment", ("", "", ".align 8 ", ".align 16 "), wrong_aligns)
        wrong_linkages = (".common ", ".extern ", ".static ")
        linkage = one("the linkage of a variable", ("", "", ".visible ", ".weak "), wrong_linkages)
        extent, most = source.choice(
            (("", 1), ("", 1), ("[3]", 3), ("[2][2]", 4), ("[20]", 20), ("[]", 3))
        )
        if self.slips.at("the extent of a variable"):
            extent = source.choice(
                ("<3>", "<0>", "[0]", "[1+1]", "[-1]", "[][2]", "[3][]", "[WARP_SZ]")
            )
        attribute = ".attribute(.managed) " if self.slips.at("a managed variable") else ""
        head = f"{linkage}{space} {attribute}{align}{vector}.{kind} {name}{extent}"
        self._taken.add(name)
        if name.startswith("v") and space == ".global":
            self._names.append(name)
        if extent != "[]" and source.random() < 0.2:
            return f"{head};"
        return f"{head} = {self._initialiser(kind, vector, extent, most)};"

    def _initialiser(self, kind: str, vector: str, extent: str, most: int) -> str:
        if extent == "[2][2]" and not vector:
            count = self._source.choice((1, 2))
            inner = [self._values(kind, (1, 2, 2)) for _ in range(count)]
            return "{" + ", ".join(inner) + "}"
        if vector:
            count = int(vector[2])
            if self.slips.at("a vector of too few values"):
                count -= 1
            value = self._values(kind, (count,))
            if extent == "[2][2]":
                value = "{" + value + "}"
            return "{" + value + "}" if extent else value
        if not extent:
            return self._value(kind)
        return self._values(kind, (most, most, max(1, most - 1), 1))

    def _parameters(self, owner: str) -> str:
        """A list of parameters of a kernel (`entry`), of a function (`func`) or of its `result`."""
        source, one = self._source, self.slips.one
        declared = []
        for number in range(source.choice((1, 1, 2, 3)) if owner != "result" else 1):
            spaces = (".param",) if owner == "entry" else (".param", ".param", ".reg")
            space = one("the space of a parameter", spaces, (".reg", ""))
            aligns = ("", "", ".align 8 ", ".align 16 ") if space == ".param" else ("",)
            align = one("the alignment of a parameter", aligns, (".align 3 ", ".align 0 "))
            kinds = (*_TYPES, "f16") if owner == "entry" else _WIDE_TYPES
            kind = one("the type of a parameter", kinds, ("f16x2", "pred", "u128", "u8", "b16"))
            pointer = ""
            if owner == "entry" and kind in ("u64", "b64", "s64") and source.random() < 0.5:
                pointer, align = ".ptr .global .align 4 ", ""
            elif self.slips.at("a pointer of another type"):
                pointer = ".ptr .global .align 4 "
            extents = ("", "", "", "[4]") if space == ".param" and not pointer else ("",)
            wrong_extents = ("[]", "[0]", "[2][2]", "<2>", "[-1]")
            extent = one("the extent of a parameter", extents, wrong_extents)
            name = one("the name of a parameter", (f"p{number}",), ("p0", "_", "1p", "k"))
            vector = one("a parameter of vectors", ("",), (".v2 ", ".v4 "))
            if owner == "result":
                name = f"r{name}"
            declared.append(f"{space} {align}{vector}.{kind} {pointer}{name}{extent}")
        return f"({', '.join(declared)})"

    def _functions(self) -> list[str]:
        """A function, or none, which is defined or only declared."""
        source = self._source
        if source.random() < 0.7:
            return []
        end = source.choice((";", " { ret; }"))
        linkages = ("", "", ".visible ", ".weak ") if end != ";" else (".extern ",)
        linkage = self.slips.one(
            "the linkage of a function", linkages, (".common ", ".extern ", "")
        )
        result = f" {self._parameters('result')}" if source.random() < 0.5 else ""
        parameters = self._parameters("func") if source.random() < 0.7 else ""
        return [f"{linkage}.func{result} f{parameters}{end}"]

    def _entry(self, number: int) -> str:
        """An entry of a section."""
        source, one = self._source, self.slips.one
        if source.random() < 0.3:
            label = one("a label in a section", ("{}:", "{} :"), ("1:", "{}", "{}::", "{};"))
            return label.format(source.choice(("A", "B", "$L__c")) + str(number))
        wrong_kinds = (".f32", ".u8", ".s32", "", ".b128", ".align 4")
        kind = one("a type in a section", (".b32", ".b64", ".b8", ".b16"), wrong_kinds)
        if source.random() < 0.3:
            kind = one("an address in fewer bits", (".b32", ".b64"), (".b8", ".b16"))
            names = ("A0", "k", ".debug_str", "A0+4", "B1-A0", "$L__c0")
            wrong_names = ("A0-4", "4+A0", "A0, 1", "A0+B1", ".x-A0")
            return f"{kind} {one('a name in a section', names, wrong_names)}"
        values = ("0", "1, 255", "0x7f", "017", "-128", "200U", "1 , 2,3")
        wrong = ("256", "-129", "70000", "-32769", "4294967296", "1+1", "(1)", "1 2", "1,", "-1U")
        return f"{kind} {one('a number in a section', values, wrong)}"

    def _section(self) -> str:
        """A section of debug information."""
        source, one = self._source, self.slips.one
        names = (".debug_str", ".debug_info", ".version", ".a::b")
        name = one("the name of a section", names, (".a.b", ".rn", "debug_str", ""))
        entries = " ".join(self._entry(each) for each in range(source.choice((0, 1, 2, 3))))
        end = one("the end of a section", ("}",), ("", "} }", "};"))
        return f".section {name} {{ {entries} {end}"


def _number_of(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
