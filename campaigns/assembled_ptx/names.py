"""Each place that has a name, with each word of PTX and with odd ones.

As nvJitLink of CUDA 13.0 and 13.5 has it, a name is any word of usual form but three keywords.
Opcodes, types and directives without their dot are names; the names of special registers are those
of parameters, registers and variables of functions only.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping
from typing import Final

from campaigns.assembled_ptx.declarations import DeclaredModule
from campaigns.assembled_ptx.judging import Judge
from ptx.isa.directives import DIRECTIVES
from ptx.isa.forms.table import form_table
from ptx.isa.instruction_facts import TYPE_BYTES
from ptx.isa.special_registers import SPECIAL_REGISTERS

# What stands in the module, among a kernel's parameters, and in its body; N is the name.
OF_MODULES: Final[Mapping[str, tuple[str, str, str]]] = {
    "variable": (".global .b32 N; .global .u64 q2[2] = {N, generic(N)};", "", "mov.u64 q1, N;"),
    "array": (".const .b32 N[2] = {1, 2};", "", "mov.u64 q1, N[1]; ld.const.b32 q0, [N+4];"),
    "shared variable": (".extern .shared .b32 N[];", "", "ld.shared.b32 q0, [N];"),
    "texture": (".global .texref N;", "", ""),
    "function": (".func N() { ret; } .global .u64 q2 = N;", "", "call N; mov.u64 q1, N;"),
    "target": (".func N() { ret; }", "", "mov.u64 q1, N; T: .calltargets N; call q1, (), T;"),
    "alias": (".func qf() { ret; } .func N(); .alias N, qf;", "", ""),
    "aliased function": (".func N() { ret; } .func qf(); .alias qf, N;", "", ""),
    "kernel": (".entry N() { ret; }", "", ""),
    "label": ("", "", "bra N; N: bra N;"),
    "label of a table": ("", "", "T: .branchtargets N; brx.idx q0, T; N:"),
}  # fmt: skip
OF_FUNCTIONS: Final[Mapping[str, tuple[str, str, str]]] = {
    "parameter": ("", ".param .b32 N", "ld.param.b32 q0, [N];"),
    "parameter of a function": (".func qf(.param .b32 N) { ret; }", "", ""),
    "parameter in a register": (".func qf(.reg .b32 N) { mov.b32 N, N; ret; }", "", ""),
    "result": (".func (.reg .b32 N) qf() { mov.b32 N, 3; ret; }", "", ""),
    "parameter of a declaration": (".extern .func qf(.param .b32 N);", "", ""),
    "parameter of a prototype": ("", "", "T: .callprototype _ (.param .b32 N);"),
    "register": ("", "", ".reg .b32 N; add.u32 N, N, q0; mov.b64 q1, {N, N};"),
    "address": ("", "", ".reg .b64 N; ld.global.b32 q0, [N+4];"),
    "guard": ("", "", ".reg .pred N; @!N mov.b32 q0, 1;"),
    "vector": ("", "", ".reg .v4 .b32 N; mov.b32 q0, N.x;"),
    "registers": ("", "", ".reg .b32 N<3>;"),
    "local variable": ("", "", ".local .b32 N; ld.local.b32 q0, [N];"),
    "shared variable of a function": ("", "", ".shared .b32 N; ld.shared.b32 q0, [N];"),
    "argument": (".func qf(.param .b32 qa) { ret; }", "", ".param .b32 N; call qf, (N);"),
}  # fmt: skip
OF_SECTIONS: Final[Mapping[str, str]] = {
    "section": ".section N { .b8 1 }",
    "section's address": ".section .d { .b32 N .b64 N+4 }",
    "section's label": ".section .d { N: .b32 N-N }",
    "place": ".section .d { }",
}
KEYWORDS: Final = ("WARP_SZ", "function_name", "inlined_at", "_")
SPECIAL: Final = tuple(f"%{name}" for name in SPECIAL_REGISTERS)
ODD: Final = (
    "$x", "$", "%1", "%", "%x", "_1", "__", "1a", "1", "0x1", "0f3F800000", "é", "aé", "%é",
    "x" * 1000, f"%{'x' * 1023}", "x" * 5000, "generic", "debug", "texmode_unified", "sm_90",
    "true", "a$b", "a%b", "$%", "%$", "%_", "_%", "_$", "$_", "$1", "%tid.x", "%warpid.x", "a.b",
    "a.x", "a::b", "%r", "%pm9", "%envreg32", "NULL", "WARP_SZ2", "warp_sz", "k", "a-b", "a b",
    '"a"', "@a", "a@b", "?a", "a?", "a\\b", "'a'", "~", "a!", ".foo", "._a", ".%a", ".a$", ".a::b",
)  # fmt: skip
_HEADER: Final = ".version 9.0\n.target sm_90a\n.address_size 64\n"
_HEADER_OF_DEBUG: Final = _HEADER.replace("sm_90a", "sm_90a, debug")
_KERNEL: Final = (
    ".visible .entry kernel({}) {{ .reg .b32 q0; .reg .b64 q1; .reg .pred q2;\n{}\nret; }}"
)
_WIDTH: Final = re.compile(r"m64n(?!8k16)")  # of wgmma: all alike
_FEW: Final = 12


def words() -> list[str]:
    """Opcodes, modifiers, types and directives, without their dot."""
    table = form_table()
    found = {*TYPE_BYTES, *(directive.name[1:] for directive in DIRECTIVES), *table.opcodes}
    for opcode in table.opcodes:
        found |= table.types(opcode) | table.modifiers(opcode)
    return sorted(word for word in found if not _WIDTH.match(word))


def module_of(place: str, name: str) -> str:
    """A module that has the name in a place."""
    if place in OF_SECTIONS:
        places = f".loc 1 1 1\n.loc 1 2 3, function_name {name}+4, inlined_at 1 1 1"
        kernel = _KERNEL.format("", places if place == "place" else "")
        section = _named(OF_SECTIONS[place], name)
        return f'{_HEADER_OF_DEBUG}.file 1 "a"\n{kernel}\n{section}\n'
    texts = OF_MODULES.get(place) or OF_FUNCTIONS[place]
    before, parameters, body = (_named(text, name) for text in texts)
    return f"{_HEADER}{before}\n{_KERNEL.format(parameters, body)}\n"


def _named(text: str, name: str) -> str:
    return re.sub(r"\bN\b", lambda _: name, text)


def compare_names(judge: Judge, source: random.Random, end: float) -> None:
    """Compare each word in a few places, and each odd one in each place, until the time is over."""
    usual = [each for each in words() if re.fullmatch(r"\w+", each, re.ASCII)]
    pairs = [(place, name) for place in (*OF_MODULES, *OF_FUNCTIONS) for name in (*KEYWORDS, *ODD)]
    pairs += [(place, name) for place in OF_MODULES for name in SPECIAL]
    pairs += [(place, name) for place in OF_FUNCTIONS for name in source.sample(SPECIAL, _FEW)]
    pairs += [
        (place, name) for name in usual for place in source.sample([*OF_MODULES, *OF_FUNCTIONS], 3)
    ]
    dotted = [f".{word}" for word in (*words(), "managed", "unified", "version", "u128", "byte")]
    pairs += [(place, name) for place in OF_SECTIONS for name in (*dotted, *KEYWORDS, *ODD)]
    source.shuffle(pairs)
    for place, name in pairs:
        if time.monotonic() >= end:
            return
        judge.compare_module(DeclaredModule(module_of(place, name), "sm_90a"))
