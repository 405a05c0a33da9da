"""Names: the words that each place takes, as nvJitLink of CUDA 13.0 and 13.5 takes them."""

import re
from collections.abc import Iterable

import pytest

from campaigns.assembled_ptx.names import (
    KEYWORDS,
    ODD,
    OF_FUNCTIONS,
    OF_MODULES,
    SPECIAL,
    module_of,
    words,
)
from ptx.isa import PtxSyntaxError, parse
from ptx.isa.forms.check import check_forms
from ptx.isa.model import Instruction
from tests.rows import all_rows

PLACES = (*OF_MODULES, *OF_FUNCTIONS)
FEW = ("add", "u32", "global", "entry", "version", "%x", "$1", "a$b", "x" * 1000)
NONE = (*KEYWORDS, "$", "%", "1a", "a.b", "a::b", ".foo", "a-b", '"a"')


def is_taken(place: str, name: str) -> bool:
    try:
        module = parse(module_of(place, name))
        for function in module.functions.values():
            if function.span is not None:
                module.body(function.name)
        check_forms(module)
    except PtxSyntaxError:
        return False
    return True


def is_name(place: str, word: str) -> bool:
    """The rule."""
    if word == "_" and place == "parameter of a prototype":
        return True
    if word in KEYWORDS or (place in OF_MODULES and word in SPECIAL):
        return False
    return re.fullmatch(r"[A-Za-z][\w$]*|[_$%][\w$]+", word, re.ASCII) is not None


def differing(places: Iterable[str], names: Iterable[str]) -> list[tuple[str, str]]:
    names = tuple(names)
    return [
        (place, name)
        for place in places
        for name in names
        if is_taken(place, name) != is_name(place, name)
    ]


@all_rows
@pytest.mark.parametrize("place", PLACES)
def test_a_name_is_any_word_but_a_keyword(place: str) -> None:
    assert differing([place], (*FEW, *NONE, "%tid", "%clock64")) == []


@pytest.mark.slow
def test_each_word_of_ptx_is_a_name_in_each_place_or_in_none() -> None:
    usual = [word for word in words() if "::" not in word]
    found = differing(
        PLACES, (*usual, *SPECIAL, *KEYWORDS, *(each for each in ODD if "é" not in each))
    )
    assert found == []


@all_rows
@pytest.mark.parametrize(
    ("name", "is_section"),
    [
        *((f".{word}", True) for word in ("d", "debug_x", "u128", "version", "tf32", "a::b")),
        *((f".{word}", True) for word in ("ld", "WARP_SZ", "kind::f8f6f4", "a$b", "x" * 1000)),
        *((f".{word}", False) for word in ("rn", "v2", "managed", "unified", "add", "u32", "file")),
        *((f".{word}", False) for word in ("_a", "__", "%a", "$a", "1a", "shared::cta", "d.e")),
        ("d", True), ("%x", True), *((word, False) for word in NONE if word != ".foo"),
    ],
)  # fmt: skip
def test_the_name_of_a_section_is_no_word_of_ptx(name: str, is_section: bool) -> None:
    is_dotted = name.startswith(".")
    assert is_taken("section", name) == (is_section and is_dotted)
    assert is_taken("section's address", name) == is_section
    assert is_taken("section's label", name) == (is_section and not is_dotted)
    assert is_taken("place", name) == is_section


@all_rows
@pytest.mark.parametrize(
    ("declared", "used", "is_found"),
    [
        (".reg .b32 b<3>;", "mov.b32 b01, b0002;", True),
        (".reg .b32 b<3>;", "mov.b32 b03, 1;", False),
        (".reg .b32 b<20>, b1<3>;", "mov.b32 b11, 1;", True),
        (".reg .b32 b1<3>, b11;", "mov.b32 b11, 1;", True),
        (".reg .b32 b1<3>;", "mov.b32 b11, 1;", False),
        (".reg .v2 .b32 b1<3>;", "mov.b32 b11.x, 1;", False),
        (".reg .pred b1<3>;", "@b11 ret;", False),
        (".reg .b32 b01, b<3>;", "mov.b32 b01, b1;", True),
        (".reg .b32 b<3>, b01;", "", False),
        (".local .b32 b1<3>, b11; .reg .b32 r;", "ld.local.b32 r, [b11];", True),
        (".local .b32 b1<3>; .reg .b32 r;", "ld.local.b32 r, [b11];", False),
    ],
)
def test_the_number_of_a_parameterised_name_is_all_digits_at_its_end(
    declared: str, used: str, is_found: bool
) -> None:
    text = f".version 9.0\n.target sm_90\n.entry k() {{ {declared} {used} ret; }}"
    if is_found:
        return check_forms(parse(text))
    with pytest.raises(PtxSyntaxError):
        check_forms(parse(text))
    return None


def test_a_number_with_zeros_means_the_register_without_them() -> None:
    text = ".version 9.0\n.target sm_90\n.entry k() { .reg .b32 b<3>; mov.b32 b01, b1; ret; }"
    move = parse(text).body("k").statements[0]
    assert isinstance(move, Instruction)
    assert move.operands[0] == move.operands[1]


@all_rows
@pytest.mark.parametrize("declared", [".reg .b32 %tid;", ".local .b32 %tid;", ".param .b32 %tid;"])
def test_a_name_hides_a_special_register_and_its_elements(declared: str) -> None:
    text = (
        f".version 9.0\n.target sm_90\n.entry k() {{ {declared} .reg .b32 r; mov.b32 r, %tid.x; }}"
    )
    with pytest.raises(PtxSyntaxError, match=r"%tid\.x is not declared here"):
        parse(text).body("k")
