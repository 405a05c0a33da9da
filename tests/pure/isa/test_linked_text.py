from __future__ import annotations

import pytest

from ptx.errors import LinkError
from ptx.isa import PtxSyntaxError, parse
from ptx.isa.linked_text import link_texts
from ptx.isa.model import Linkage

HEADER = ".version {}\n.target {}\n.address_size 64\n"


def text(body: str, version: str = "8.0", target: str = "sm_80") -> str:
    return HEADER.format(version, target) + body


def linked(*bodies: str) -> str:
    return link_texts([(f"input {at}", text(body)) for at, body in enumerate(bodies)])


def test_one_text_stays_as_it_is() -> None:
    alone = text(".visible .entry k() { ret; } // as it was\n")
    assert link_texts([("it", alone)]) == alone


def test_the_newest_version_and_architecture_are_chosen() -> None:
    module = parse(link_texts([("a", text("", "8.4", "sm_90")), ("b", text("", "8.10", "sm_75"))]))
    assert (module.version, module.target) == ("8.10", "sm_90")


@pytest.mark.parametrize("targets", [("sm_90", "sm_90a"), ("sm_90a", "sm_90"), ("sm_80", "sm_90a")])
def test_the_targets_own_features_stay_whatever_the_order(targets: tuple[str, str]) -> None:
    parts = [
        (name, text(f".visible .func {name}() {{ ret; }}", target=target))
        for name, target in zip("ab", targets, strict=True)
    ]
    assert parse(link_texts(parts)).target == "sm_90a"


def test_a_declaration_meets_the_definition_of_another_text() -> None:
    module = parse(
        linked(
            ".extern .func f();\n.extern .global .b32 g;\n.visible .entry k() { call f; ret; }",
            ".visible .func f() { ret; }\n.visible .global .b32 g = 5;",
        )
    )
    assert module.functions["f"].span is not None
    assert module.variables["g"].linkage is Linkage.VISIBLE


def test_names_of_a_texts_own_are_distinct() -> None:
    own = (
        ".global .b32 x = {}; .func f() {{ ret; }}"
        " .visible .entry k{}() {{ call f; mov.b64 %rd, x; }}"
    )
    module = parse(linked(own.format(1, 0), own.format(2, 1)))
    assert set(module.variables) == {"x", "x_1"}
    assert set(module.functions) == {"f", "f_1", "k0", "k1"}
    assert module.uses("k0").names >= {"f", "x"}
    assert module.uses("k1").names >= {"f_1", "x_1"}


def test_a_name_of_a_texts_own_gives_way_to_one_that_texts_share() -> None:
    own = ".global .b32 x = 1; .global .b32 x_1; .visible .entry a() { mov.b64 %rd, x; }"
    shared = ".visible .global .b32 x = 2; .visible .entry b() { mov.b64 %rd, x; }"
    user = ".extern .global .b32 x; .visible .entry c() { mov.b64 %rd, x; }"
    for texts in ((own, shared, user), (user, own, shared), (shared, user, own)):
        module = parse(linked(*texts))
        assert set(module.variables) == {"x", "x_1", "x_2"}
        assert module.variables["x"].initialiser == (2,)
        assert module.variables["x_2"].initialiser == (1,)
        assert "x_2" in module.uses("a").names
        assert module.uses("b").names & module.uses("c").names >= {"x"}


def test_of_weak_definitions_one_stays_and_a_visible_one_wins() -> None:
    weak, strong = (
        ".weak .func f() {{ mov.b32 %r, {}; }}",
        ".visible .func f() {{ mov.b32 %r, {}; }}",
    )
    first = parse(linked(weak.format(1), weak.format(2)))
    assert "mov.b32 %r, 1" in first.body_text("f")
    assert "mov.b32 %r, 3" in parse(linked(weak.format(1), strong.format(3))).body_text("f")
    assert "mov.b32 %r, 3" in parse(linked(strong.format(3), weak.format(1))).body_text("f")


def test_inputs_of_one_name_are_distinct() -> None:
    weak = text(".weak .func f() { ret; }")
    assert "f" in parse(link_texts([("same", weak), ("same", weak)])).functions


def test_two_visible_definitions_are_rejected_with_both_inputs() -> None:
    with pytest.raises(LinkError, match="f is defined in input 0 and in input 1"):
        linked(".visible .func f() { ret; }", ".visible .func f() { ret; }")


def test_a_function_of_another_text_must_be_external() -> None:
    """As nvJitLink, which compiles each input."""
    caller = "func f();\n.visible .entry k() { call f; ret; }"
    defined = ".visible .func f() { ret; }"
    assert "f" in parse(linked(f".extern .{caller}", defined)).functions
    for linkage in ("", ".visible ", ".weak "):
        with pytest.raises(PtxSyntaxError, match=r"function f is declared without \.extern"):
            linked(f"{linkage}.{caller}", defined)


def test_places_in_the_source_keep_their_files() -> None:
    first = '.file 1 "a.cu"\n.visible .entry a() { .loc 1 5 0\n ret; }'
    second = (
        ".visible .entry b() { .loc 1 7 3, function_name $L0, inlined_at 1 2 3\n ret; }\n"
        '.file 1 "b.cu"\n.section .debug_str { $L0: .b8 98,0 }'
    )
    module = parse(linked(first, second))
    assert module.files == {1: "a.cu", 2: "b.cu"}
    assert ".loc 2 7 3\n" in module.body_text("b")
    assert ".section" not in module.text


def test_initialisers_and_strings_with_braces_are_passed_over() -> None:
    module = parse(
        linked(
            '.global .b32 t[2] = {1, 2};\n.file 1 "a;{b"\n.visible .entry k() { { ret; } }',
            ".const .align 4 .b8 c[4] = {1, 2, 3, 4};",
        )
    )
    assert set(module.variables) == {"t", "c"}
    assert set(module.functions) == {"k"}
