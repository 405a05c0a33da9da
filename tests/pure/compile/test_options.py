"""Compile options: what NVRTC is told, and what is refused before it is asked."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, fields, replace
from pathlib import Path

import pytest

import ptx
from ptx import NO_FMA, CompileOptions, Target
from tests.rows import all_rows


def test_defaults_say_nothing_but_the_standard() -> None:
    assert CompileOptions().flags() == ("--std=c++17",)


def test_every_field_becomes_its_option() -> None:
    options = CompileOptions(
        std="c++20",
        defines={"N": 4, "FLAG": None, "TEXT": "a b"},
        fmad=False,
        ftz=True,
        prec_div=False,
        prec_sqrt=True,
        use_fast_math=True,
        lineinfo=True,
        debug=True,
        maxrregcount=32,
        extra=("--diag-suppress=177",),
    )
    assert options.flags() == (
        "--std=c++20",
        "--fmad=false",
        "--ftz=true",
        "--prec-div=false",
        "--prec-sqrt=true",
        "--use_fast_math",
        "--generate-line-info",
        "--device-debug",
        "--maxrregcount=32",
        "-DN=4",
        "--define-macro=FLAG",
        "-DTEXT=a b",
        "--diag-suppress=177",
    )


def test_fma_off_preset_changes_only_contraction() -> None:
    assert CompileOptions(fmad=False) == NO_FMA


@pytest.mark.parametrize(
    ("option", "field"),
    [
        ("-arch=sm_90", "target"),
        ("--gpu-architecture=sm_90", "target"),
        ("-dlto", "target"),
        ("-I/usr/include", "include_paths"),
        ("--include-path=/x", "include_paths"),
        ("-DN=1", "defines"),
        ("--fmad=false", "fmad"),
        ("-G", "debug"),
        ("--std=c++14", "std"),
        ("--use-bundled-headers=/x", "cuda_headers"),
    ],
)
def test_extra_option_that_has_a_field_names_the_field(option: str, field: str) -> None:
    with pytest.raises(ValueError, match=rf"use CompileOptions\.{field} instead"):
        CompileOptions(extra=(option,))


def test_bad_values_are_rejected_with_the_reason() -> None:
    with pytest.raises(ValueError, match=r"std='c\+\+98'"):
        CompileOptions(std="c++98")  # type: ignore[arg-type]  # what an untyped caller might pass
    with pytest.raises(ValueError, match="maxrregcount=0"):
        CompileOptions(maxrregcount=0)
    with pytest.raises(ValueError, match="'2N' is not a macro name"):
        CompileOptions(defines={"2N": 1})
    with pytest.raises(TypeError, match="not one string"):
        CompileOptions(include_paths="/usr/include")  # type: ignore[arg-type]  # likewise
    with pytest.raises(TypeError, match="cuda_headers must be a tuple of strings, not one"):
        CompileOptions(cuda_headers="/usr/include")  # type: ignore[arg-type]  # likewise


def test_options_do_not_follow_later_changes_of_what_they_were_made_from() -> None:
    defines: dict[str, str | int | None] = {"N": 1}
    options = CompileOptions(defines=defines, include_paths=(Path("a"),), cuda_headers=(Path("b"),))
    defines["N"] = 2
    assert options.defines == {"N": "1"}
    assert options.include_paths == ("a",)
    assert options.cuda_headers == ("b",)


def test_options_are_values() -> None:
    a = CompileOptions(defines={"N": 1}, target=Target.cubin("sm_90"))
    b = CompileOptions(defines={"N": "1"}, target=Target.cubin("sm_90"))
    assert a == b
    assert hash(a) == hash(b)
    assert pickle.loads(pickle.dumps(a)) == a
    assert copy.copy(a) == a
    assert a != CompileOptions(defines={"N": 1})
    assert repr(CompileOptions(fmad=False)).startswith("CompileOptions(target=None, std='c++17', ")
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'fmad'"):
        a.fmad = True  # type: ignore[misc]  # what is tested


def test_the_module_dataclasses_lists_the_fields() -> None:
    options = CompileOptions(fmad=False, defines={"N": 1})
    assert [field.name for field in fields(options)] == list(CompileOptions.__slots__)
    assert asdict(options)["defines"] == {"N": "1"}
    assert CompileOptions(**asdict(options)) == options


def test_named_target_stays_and_a_missing_one_is_filled_in() -> None:
    own = Target.cubin("sm_90a")
    assert CompileOptions(target=own).for_target(Target.cubin("sm_90")).target == own
    assert CompileOptions().for_target(own).target == own


def test_options_and_targets_made_from_others_are_checked_too() -> None:
    options = replace(CompileOptions(fmad=False), maxrregcount=32)
    assert options == CompileOptions(fmad=False, maxrregcount=32)
    with pytest.raises(ValueError, match="maxrregcount=0"):
        replace(options, maxrregcount=0)
    with pytest.raises(ValueError, match="suffix 'x'"):
        replace(Target.cubin("sm_90"), suffix="x")


def test_a_truth_defines_what_it_is_in_cpp() -> None:
    flags = ptx.CompileOptions(defines={"ON": True, "OFF": False}).flags()
    assert {"-DON=1", "-DOFF=0"} <= set(flags)


def test_options_in_nvrtcs_own_spelling_are_rejected_where_they_are_given() -> None:
    for options in (("-DN=3",), {"defines": {"N": 3}}, "-DN=3"):
        with pytest.raises(TypeError, match="options must be CompileOptions, not"):
            ptx.compile("", options)  # type: ignore[arg-type]  # what is tested


def test_flags_of_a_command_line_become_fields() -> None:
    options = CompileOptions.from_flags(
        "-std=c++14",
        "--use_fast_math",
        " -Iinclude",
        "-I",
        "more",
        "--include-path=third",
        "-DK=4",
        "-D",
        "FLAG",
        "--define-macro=TEXT=a=b",
        "-fmad=false",
        "--ftz=true",
        "--prec-div=false",
        "-prec-sqrt=true",
        "-lineinfo",
        "-G",
        "-maxrregcount=32",
        "-arch=compute_80",
        "--extra-device-vectorization",
    )
    assert options == CompileOptions(
        target=Target.parse("compute_80"),
        std="c++14",
        include_paths=("include", "more", "third"),
        defines={"K": "4", "FLAG": None, "TEXT": "a=b"},
        fmad=False,
        ftz=True,
        prec_div=False,
        prec_sqrt=True,
        use_fast_math=True,
        lineinfo=True,
        debug=True,
        maxrregcount=32,
        extra=("--extra-device-vectorization",),
    )
    assert CompileOptions.from_flags() == CompileOptions()
    assert CompileOptions.from_flags(*options.flags()[:3]).defines == {}


def test_the_last_flag_of_a_macro_counts() -> None:
    read = CompileOptions.from_flags
    assert read("-UM", "-DM") == CompileOptions(defines={"M": None})
    assert read("-DM", "-U", "M") == CompileOptions(extra=("-U", "M"))
    assert read("-DM(x)=x", "-DM=3", "-DN", "-UK") == CompileOptions(
        defines={"M": 3, "N": None}, extra=("-UK",)
    )


def test_a_value_may_be_the_next_flag() -> None:
    read = CompileOptions.from_flags
    assert read("-arch", "sm_90", "-dlto").target == Target.ltoir("sm_90")
    assert read("--maxrregcount", "32", "--fmad", "true", "-std=c++20") == CompileOptions(
        maxrregcount=32, fmad=True, std="c++20"
    )
    # The value of another option, whatever it looks like.
    words = ("-Xptxas", "-maxrregcount=24", "--pre-include", "-DM")
    assert read(*words) == CompileOptions(extra=words)


def test_the_flags_of_options_give_them_back() -> None:
    options = CompileOptions(
        std="c++20", defines={"N": "4", "FLAG": None}, fmad=True, lineinfo=True, extra=("-w",)
    )
    assert CompileOptions.from_flags(*options.flags()) == options


@all_rows
@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("-I",), "option '-I': its value is missing"),
        (("-D", ""), "its value is missing"),
        (("--fmad",), "option '--fmad': give true or false"),
        (("-ftz=maybe",), "option '-ftz=maybe'"),
        (("-maxrregcount=many",), "option '-maxrregcount=many': give a count"),
        (("-maxrregcount", "-w"), "option '-maxrregcount -w': give a count"),
        (("-maxrregcount=0",), "maxrregcount=0: expected a positive count"),
        (("-std=c++98",), "expected one of c"),
        (("-G=true",), "option '-G=true': it has no value"),
        (("--lineinfo",), "NVRTC spells it --generate-line-info or -lineinfo"),
        (("-arch sm_90",), "NVRTC spells it --gpu-architecture or -arch"),
        (("--use-bundled-headers=/x",), "cuda_headers"),
        (("-Xptxas",), "option '-Xptxas': its value is missing"),
        ((["-w"],), "list"),
    ],
)
def test_flags_without_meaning_are_rejected(flags: tuple[str, ...], text: str) -> None:
    with pytest.raises((ValueError, TypeError), match=text):
        CompileOptions.from_flags(*flags)


def test_options_with_a_target_filled_in_are_those_made_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = CompileOptions(
        std="c++20",
        include_paths=("a",),
        defines={"N": 1},
        fmad=False,
        extra=("-w",),
        cuda_headers=("b",),
        maxrregcount=32,
    )
    target = Target.ptx("compute_90")
    right = replace(given, target=target, lineinfo=True)
    monkeypatch.setattr(CompileOptions, "__post_init__", lambda _: pytest.fail("checked again"))
    assert given.for_target(target, lineinfo=True) == right
    assert right.for_target(Target.ptx("compute_80")) is right
    assert (given.target, given.lineinfo) == (None, None)
