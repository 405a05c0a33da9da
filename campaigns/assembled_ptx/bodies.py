"""Random bodies: calls with their arguments, branches by tables, own variables, and vectors."""

from __future__ import annotations

import random
from typing import Final

from campaigns.assembled_ptx.slips import Slips

_KINDS: Final = ("u32", "b32", "s32", "f32", "u64", "b64", "f64", "b16", "f16", "f16x2")
_REGISTERS: Final = (
    "u16", "b16", "f16", "u32", "s32", "b32", "f32", "f16x2", "u64", "s64", "b64", "f64", "pred",
)  # fmt: skip
_VECTORS: Final = (("v2", "u32"), ("v4", "f32"), ("v2", "f64"), ("v4", "b16"), ("v2", "b64"))
_INTEGERS: Final = ("5", "-1", "1+2", "WARP_SZ")
_FLOATS: Final = ("1.0", "-2.5")
_NUMBERS: Final = ("5", "-1", "1+2", "WARP_SZ", "0f3F800000", "0d3FF0000000000000", "1.0")
_ALIKE: Final = {"u": "usb", "s": "usb", "b": "usbf", "f": "fb"}
_INDICES: Final = ("%u32_1", "%s32_2+1", "%b16_1+-1", "%u64_1", "%f32_1", "%pred_1", "%tid.x")
# Names that a body may declare again.
_NAMES: Final = ("w", "x", "k", "f")


class Bodies:
    """Functions that pass values, and bodies that use them and the variables of the module."""

    def __init__(self, source: random.Random, slips: Slips, variables: list[str]) -> None:
        self._source = source
        self._slips = slips
        self._variables = variables
        self._functions: list[tuple[str, list[str], list[str]]] = []
        self._number = 0
        self._declared: set[str] = set()

    def functions(self) -> list[str]:
        """Functions of all kinds of parameters, which `body` calls."""
        return [self._function(f"g{number}") for number in range(self._source.choice((0, 1, 2)))]

    def body(self, *, is_kernel: bool = True) -> str:
        """Declarations of registers, some statements, and labels for all branches."""
        source = self._source
        registers = " ".join(f".reg .{kind} %{kind}_<3>;" for kind in _REGISTERS)
        vectors = " ".join(f".reg .{size} .{kind} %{size}_{kind};" for size, kind in _VECTORS)
        made = [self._statement() for _ in range(source.choice((0, 1, 1, 2, 3)))]
        ends = source.choice(("ret;", "ret;", "")) if is_kernel else "ret;"
        return f"{{ {registers} {vectors} {' '.join(made)} L0: L1: {ends} }}"

    def _statement(self) -> str:
        source = self._source
        self._number += 1
        makers = (
            self._call, self._call, self._branch, self._variable, self._element, self._access,
        )  # fmt: skip
        text = source.choice(makers)()
        return f"{{ {text} }}" if source.random() < 0.2 else text

    def _function(self, name: str) -> str:
        """A function whose parameters and results lie in registers or in memory."""
        source, lists = self._source, list[list[str]]()
        for most in (1, 3):
            formals = list[str]()
            for number in range(source.randrange(most + 1)):
                space = source.choice((".reg", ".param"))
                kind = source.choice(_KINDS)
                if space == ".param" and kind == "f16x2":
                    kind = "b32"
                extent = "[2]" if space == ".param" and source.random() < 0.15 else ""
                if space == ".reg" and self._slips.at("an array of registers as a parameter"):
                    extent = source.choice(("[2]", "<2>"))
                formals.append(f"{space} .{kind} {name}_{most}{number}{extent}")
            lists.append(formals)
        self._functions.append((name, lists[0], lists[1]))
        results, parameters = (", ".join(each) for each in lists)
        head = f".func {f'({results}) ' if results else ''}{name}({parameters})"
        moves = [
            f"mov.{kind} {formal.split()[2]}, {formal.split()[2]};"
            for formal in (*lists[0], *lists[1])
            if formal.startswith(".reg") and "<" not in formal and "[" not in formal
            for kind in (f"b{formal.split()[1].lstrip('.ubsf').split('x')[0]}",)
            if "16x2" not in formal
        ]
        if self._source.random() < 0.4:
            moves += [
                f".reg .b64 %at{place}; mov.b64 %at{place}, {formal.split()[2].partition('[')[0]};"
                for place, formal in enumerate((*lists[0], *lists[1]))
                if formal.startswith(".param")
            ]
        return f"{head} {{ {' '.join(moves)} {source.choice(('ret;', ''))} }}"

    def _fitting(self, formal: str, *, is_result: bool) -> tuple[str, str]:
        """A declaration and an operand for a formal parameter, now and then one of another type."""
        source, (_, kind, name) = self._source, formal.split()
        letter, bits = kind[1], kind.lstrip(".ubsf")
        extent = name[name.index("[") :] if "[" in name else ""
        if self._slips.at("an argument of another type"):
            extent = source.choice(("", "[2]", "[4]"))
            letter, bits = source.choice("ubsf"), source.choice(("16", "32", "64"))
        if bits == "16x2":
            return "", "%f16x2_1"
        other = source.choice(_ALIKE[letter] if not extent else letter) + bits
        if source.random() < 0.4 or extent:
            variable = f"q{self._number}_{source.randrange(1 << 30)}"
            if other in ("f16", "b16", "u16", "s16"):
                other = f"{letter}16" if letter in "bf" else "b16"
            return f".param .{other}{' ' + variable + extent};", variable
        if source.random() < 0.2 and not is_result:  # ptxas crashes at some numbers as results
            if kind == ".f16":
                return "", f"%f16_{source.randrange(3)}"
            fits = _FLOATS if letter == "f" else _INTEGERS
            return "", self._slips.one("a number of another type", fits, _NUMBERS)
        if self._slips.at("an argument that is no register"):
            return "", source.choice(("_", "%tid.x", "nowhere", f"%{source.choice(_REGISTERS)}_0"))
        return "", f"%{other if other in _REGISTERS else 'b' + bits}_{source.randrange(3)}"

    def _call(self) -> str:
        source = self._source
        if not self._functions:
            return ""
        name, results, parameters = source.choice(self._functions)
        passed, declared = list[list[str]](), list[str]()
        for formals in (results, parameters):
            is_result = formals is results
            made = [self._fitting(formal, is_result=is_result) for formal in formals]
            if self._slips.at("an argument too many"):
                made.append(("", "%u32_1"))
            declared += [declaration for declaration, _ in made if declaration]
            passed.append([operand for _, operand in made])
        results_text = f"({', '.join(passed[0])}), " if passed[0] else ""
        parameters_text = f", ({', '.join(passed[1])})" if passed[1] else ""
        guard = source.choice(("", "", "", "@%pred_1 ", "@!%pred_2 "))
        way, target, table, before, after = source.random(), name, "", "", ""
        if way < 0.3:
            label = f"P{self._number}"
            spaces = [", ".join(_nameless(each) for each in f) for f in (results, parameters)]
            prototype = f"{label}: .callprototype ({spaces[0]}) _ ({spaces[1]});"
            if way < 0.12:
                prototype = f"{label}: .calltargets {name};"
            before = f"mov.u64 %u64_1, {name}; {prototype}"
            target, table = "%u64_1", f", {label}"
            parameters_text = parameters_text or ", ()"
            if self._slips.at("a prototype after its call"):
                before, after = before.replace(prototype, ""), prototype
        call = f"call{source.choice(('', '.uni'))} {results_text}{target}{parameters_text}{table};"
        return " ".join((*declared, before, guard + call, after))

    def _branch(self) -> str:
        source, label = self._source, f"T{self._number}"
        targets = source.choice(("L0, L1", "L0", "L1, L1, L0"))
        if self._slips.at("a table of other targets"):
            targets = source.choice(("L0, nowhere", "", "L0 L1"))
        table = f"{label}: .branchtargets {targets};"
        index = source.choice(("%u32_1", "%b32_1", "0", "1", "1+0"))
        if self._slips.at("an index that is no integer"):
            index = source.choice(("%u64_1", "%f32_1", "%tid.x", "-1", "1.0", "_"))
        branch = f"brx.idx{source.choice(('', '.uni'))} {index}, {label};"
        if self._slips.at("a table that the branch does not see"):
            return source.choice((f"{branch} {table}", f"{{ {table} }} {branch}"))
        return f"{table} {branch}" if source.random() < 0.8 else f"{table} {{ {branch} }}"

    def _variable(self) -> str:
        source, number = self._source, self._number
        name = source.choice(_NAMES) if source.random() < 0.2 else f"own{number}"
        if name in self._declared:  # once in a body, as the braces of a statement are made later
            name = f"own{number}"
        self._declared.add(name)
        space = source.choice(("const", "global"))
        kind = source.choice(("u8", "u16", "u32", "s32", "f32", "f64", "b64"))
        size, values = source.choice((("", "3"), ("[2]", "{1, 2}"), ("[]", "{4, 5, 6}")))
        values = values if kind[0] != "f" else values.replace(",", ".0,").replace("}", ".0}")
        values = "3.0" if kind[0] == "f" and not size else values
        given = f" = {values}" if size == "[]" or source.random() < 0.7 else ""
        if self._slips.at("a wrong value of an own variable"):
            given = source.choice((" = nowhere", " = ", " = {1}", ' = "a"'))
        linkage = self._slips.one("a linkage of an own variable", ("",), (".visible ", ".extern "))
        use = f"ld.{space}.u8 %u16_1, [{name}+{source.choice((0, 1))}];"
        return f"{linkage}.{space} .{kind} {name}{size}{given}; {use}"

    def _access(self) -> str:
        """A use of a variable of the module, which may have no elements."""
        source = self._source
        if not self._variables:
            return ""
        name = source.choice(self._variables)
        where, moved = source.choice((f"[{name}]", f"[{name}+1]")), name
        if self._slips.at("an access of another form"):
            index = source.choice(("0", "1", "-1", "1+1", *_INDICES))
            where = moved = source.choice((name, f"{name}[{index}]", f"[{name}+{index}]"))
        way = source.random()
        if way < 0.3:
            return f"st.global.u8 {where}, %u16_1;"
        if way < 0.5:
            return f"{source.choice(('mov.u64', 'cvta.global.u64'))} %u64_1, {moved};"
        return f"{source.choice(('ld.global.u8', 'ld.u8', 'ldu.global.u8'))} %u16_1, {where};"

    def _element(self) -> str:
        source = self._source
        size, kind = source.choice(_VECTORS)
        # ptxas crashes at the third element of two.
        elements = ("x", "y", "r", "g") if size == "v2" else ("x", "y", "z", "w", *"rgba")
        a, b = (source.choice(elements) for _ in range(2))
        if self._slips.at("an element that is none"):
            b = source.choice(("R", "q", "xy", "1"))
        blank = source.choice(("", "", "", " "))
        special = source.choice(("tid", "ntid", "ctaid", "nctaid"))
        way, name = source.random(), f"%{size}_{kind}"
        if way < 0.2:
            return f"mov.u32 %u32_1, %{special}{blank}.{b};"
        usual = f"b{kind[1:]}" if kind != "f32" else kind
        return f"mov.{usual} {name}.{a}, {name}{blank}.{b};"


def _nameless(formal: str) -> str:
    """A formal parameter as a prototype has it."""
    space, kind, name = formal.split()
    return f"{space} {kind} _{name[name.index('[') :] if '[' in name else ''}"
