"""Directives: each is in the table, and the parser rejects one that is not."""

from __future__ import annotations

import re

import pytest

from ptx.isa import PtxSyntaxError, parse
from ptx.isa.directives import DIRECTIVES, DirectivePlace, Treatment
from ptx.isa.model import Instruction
from tests.pure.isa.test_module import HEADER
from tests.rows import all_rows


def function(directives: str, *, is_entry: bool = True) -> None:
    kind = "entry" if is_entry else "func"
    parse(f"{HEADER}.{kind} k() {directives} {{ ret; }}\n").body("k")


def test_every_directive_has_one_line_and_a_reason() -> None:
    names = [directive.name for directive in DIRECTIVES]
    assert len(names) == len(set(names))
    for directive in DIRECTIVES:
        assert re.fullmatch(r"\.[a-z_]+", directive.name)
        assert directive.reason
        assert directive.places


def test_the_directives_after_parameters_are_those_of_the_table() -> None:
    """Each takes as many numbers as the table says, and none that is positive takes 0."""
    for place, is_entry in ((DirectivePlace.ENTRY, True), (DirectivePlace.FUNCTION, False)):
        for directive in DIRECTIVES:
            if not directive.numbers:
                continue
            taken = set()
            for count in range(5):
                numbers = ", ".join("4" * count)
                others = ".reqntid 4 .reqnctapercluster 4"
                needed = others if directive.name == ".blocksareclusters" else ""
                try:
                    function(f"{needed} {directive.name} {numbers}", is_entry=is_entry)
                    taken.add(count)
                except PtxSyntaxError:
                    pass
            is_taken = place & directive.places and directive.treatment is not Treatment.REJECTED
            assert taken == (set(directive.numbers) if is_taken else set()), directive.name
            if is_taken and directive.is_positive:
                with pytest.raises(PtxSyntaxError, match="positive"):
                    function(f"{directive.name} 0", is_entry=is_entry)


@all_rows
@pytest.mark.parametrize(
    "text",
    [
        ".entry k() .maxfoo 3 { ret; }", ".entry k() .noreturn { ret; }",
        ".func k() .maxntid 3 { ret; }", ".entry k() .maxntid 3; { ret; }",
        ".entry k() { .maxntid 3; ret; }", ".entry k() { .file 1 \"x\"\nret; }",
        ".entry k() { .version 8.0\nret; }", ".entry k() { .foo; ret; }", ".foo;", ";",
        ".entry k() { ret;; }", ".entry k() { ; }", ".loc 1 1 1", ".branchtargets A;",
        ".global .attribute(.foo) .u32 x;", ".global .attribute() .u32 x;", '.pragma "foo";',
        ".entry k() .maxnctapersm 2 { ret; }", ".entry k() .language 1 { ret; }",
        ".entry k() { P: .callprototype _ () .maxntid 4; ret; }", ".tex .u32 x;",
        ".visible .entry k(); .visible .version 8.0",
    ],
)  # fmt: skip
def test_a_directive_outside_the_table_or_its_place_is_rejected(text: str) -> None:
    """As ptxas of CUDA 13.0 and 13.5 has it."""
    with pytest.raises(PtxSyntaxError):
        parse(f"{HEADER}{text}\n").body("k")


def test_directives_without_effect_are_read() -> None:
    text = (
        ".func f() .noreturn { trap; }\n"
        ".func g() .abi_preserve 4 .abi_preserve_control 2 { ret; }\n"
        '.entry k(.param .u64 .ptr .global .align 16 p) .pragma "nounroll"; .maxnreg 32 '
        '{ .pragma "nounroll", "anything"; P: .callprototype (.param .u32 _) _ (.param .b8 _[4])'
        " .noreturn;\nret; }\n"
        '.section .debug_str { .b8 0 }\n# 1 "kernel.ptx" 2\n.pragma "nounroll";\n'
    )
    module = parse(HEADER + text)
    assert module.functions["k"].directives == {"maxnreg": (32,)}
    assert module.functions["g"].directives == {"abi_preserve": (4,), "abi_preserve_control": (2,)}
    (ret,) = module.body("k").statements
    assert isinstance(ret, Instruction)
    assert ret.line == 7
