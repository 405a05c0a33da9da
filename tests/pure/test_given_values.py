"""What `ptx` is given is looked at where it comes in."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ptx
import ptx.errors
from ptx import base_errors
from tests.rows import all_rows

# What a type checker refuses is what is tested.
WRONG: Any = 5
TARGET = ptx.Target.parse("sm_90")


@all_rows
@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (lambda: ptx.compile(WRONG), "source is 5, of type int: give text"),
        (lambda: ptx.compile("", WRONG), "options must be CompileOptions, not int"),
        (lambda: ptx.compile("", headers=WRONG), "headers is 5, of type int: give a Mapping"),
        (
            lambda: ptx.compile("", name_expressions=WRONG),
            "name_expressions is 5, .* give a sequence",
        ),
        (lambda: ptx.compile("", cache=WRONG), "cache is 5, of type int: give an ImageCache"),
        (lambda: ptx.CompileOptions(std=WRONG), "std is 5"),
        (lambda: ptx.CompileOptions(include_paths=WRONG), "include_paths is 5, .* give a sequence"),
        (lambda: ptx.CompileOptions(include_paths=(WRONG,)), "include_paths is 5, .* a path"),
        (lambda: ptx.CompileOptions(defines=WRONG), "defines is 5, of type int: give a Mapping"),
        (lambda: ptx.CompileOptions(cuda_headers=WRONG), "cuda_headers is 5, .* give a sequence"),
        (lambda: ptx.CompileOptions(extra=(WRONG,)), "extra is 5, of type int: give text"),
        (lambda: ptx.LinkOptions(extra=WRONG), "extra is 5, of type int: give a sequence"),
        (lambda: ptx.link(WRONG, TARGET), "images is 5, of type int: give a sequence"),
        (
            lambda: ptx.link([WRONG], TARGET),
            "input 1 is 5, of type int: give an image, PTX or a Path",
        ),
        (lambda: ptx.Image.from_ptx(WRONG), "text is 5, of type int: give a str"),
        (lambda: ptx.Image.from_binary(b"", WRONG), "target is 5, of type int: give a Target"),
        (lambda: ptx.Target.parse(WRONG), "an architecture is 5"),
        (lambda: TARGET.runs_on(WRONG), r"5, of type int: give two integers, such as \(9, 0"),
        (lambda: ptx.nearest_target(WRONG), "give two integers"),
        (lambda: ptx.supported_targets(WRONG), "kind is 5, of type int: give an ImageKind"),
        (lambda: ptx.parse(WRONG), "PTX is 5, of type int: give a str"),
        (lambda: ptx.prewarm(WRONG), "requests is 5, of type int: give a sequence"),
        (lambda: ptx.ImageCache(WRONG), "directory is 5, of type int: give text or a path"),
        (lambda: ptx.KernelSignature.from_line(WRONG), "a signature is 5"),
    ],
)
def test_a_wrong_type_is_named_with_its_place_and_what_to_give(
    attempt: Callable[[], object], words: str
) -> None:
    with pytest.raises(ptx.PtxArgumentTypeError, match=words) as caught:
        attempt()
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, ptx.PtxError)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: ptx.compile("\ud800"),
        lambda: ptx.compile("a\0b"),
        lambda: ptx.compile("", headers={"\ud800": ""}),
        lambda: ptx.CompileOptions(defines={"N": "a\0b"}),
        lambda: ptx.CompileOptions(include_paths=("a\0b",)),
        lambda: ptx.Target(ptx.ImageKind.CUBIN, 7),
        lambda: ptx.Target.parse("sm_9"),
        lambda: ptx.ImageCache("a\0b"),
        lambda: ptx.link([], TARGET),
        lambda: ptx.KernelSignature.from_line("one"),
    ],
)
def test_a_wrong_value_is_a_value_error_of_the_library(attempt: Callable[[], object]) -> None:
    with pytest.raises(ptx.PtxArgumentValueError) as caught:
        attempt()
    assert isinstance(caught.value, ValueError)


def test_a_function_that_a_module_lacks_is_named_with_those_it_has() -> None:
    module = ptx.parse(".version 7.5\n.target sm_75\n.visible .entry put()\n{ ret; }")
    with pytest.raises(ptx.FunctionNotFoundError, match="no function 'absent'; it has: put"):
        module.body("absent")
    with pytest.raises(KeyError):
        module.body_text("absent")


def test_folders_whose_names_are_not_utf8_are_paths_all_the_same(tmp_path: Path) -> None:
    odd = str(tmp_path / "caf\udce9")
    assert ptx.CompileOptions(include_paths=(odd,)).include_paths == (odd,)
    assert ptx.ImageCache(odd).folder == Path(odd)


def test_functions_of_another_number_of_arguments_are_rejected(tmp_path: Path) -> None:
    def takes_one(value: object) -> None: ...

    wrong: Any = takes_one
    attempts: list[Callable[[], object]] = [
        lambda: ptx.ImageCache(tmp_path).get_or_make({"a": "b"}, wrong),
        lambda: ptx.prewarm([], on_progress=wrong),
        lambda: ptx.OtherLinker("mine", wrong),
    ]
    for attempt in attempts:
        with pytest.raises(ptx.PtxArgumentTypeError, match=r"give a function of \d arguments"):
            attempt()
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]  # too deep to be shown
    with pytest.raises(ptx.PtxArgumentTypeError, match="give a function of 3 arguments"):
        ptx.OtherLinker("mine", deep)


def test_errors_show_the_names_that_users_import() -> None:
    shown = {each.__module__ for each in vars(base_errors).values() if isinstance(each, type)}
    assert shown == {"cudadrv.errors", "ptx.errors"}
    for each in vars(base_errors).values():
        if isinstance(each, type):
            assert getattr(importlib.import_module(each.__module__), each.__name__) is each
    with pytest.raises(ptx.PtxArgumentTypeError) as caught:
        ptx.compile("", None)  # type: ignore[arg-type]  # what is tested
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), ptx.PtxArgumentTypeError)
