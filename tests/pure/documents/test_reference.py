"""Every public name has a docstring and is in the reference; so are options and variables."""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from types import ModuleType

from cudadrv.cli.command_line import make_parser
from ptx.read_only import ReadOnly
from tests.documents import results
from tests.documents.__main__ import ROOT
from tests.documents.reference import REFERENCE, UNTOLD, listed, named, public_names

_REMEDY = "python -m tests.documents.reference --write, and see where it stands"


def test_every_public_name_stands_in_the_reference_once() -> None:
    there = listed()
    assert sorted(there) == sorted(set(there))
    assert public_names() - set(there) == set(), _REMEDY
    assert set(there) - public_names() == set(), _REMEDY
    assert [page.name for page in REFERENCE.glob("*.md") if UNTOLD in page.read_text()] == []


def test_public_names_and_their_members_have_docstrings() -> None:
    without = []
    for name in sorted(public_names()):
        found = named(name)
        if isinstance(found, type):
            without += [
                f"{name}.{member}"
                for member, value in inspect.getmembers(found)
                if not member.startswith("_")
                and is_own(found, member)
                and not (
                    is_described(found, member) if is_slot(found, member) else inspect.getdoc(value)
                )
            ]
        if (isinstance(found, type) or inspect.isroutine(found)) and not inspect.getdoc(found):
            without.append(name)
    assert without == []


_CODE, _COLON = re.compile(r"``[^`]*``"), re.compile("(?<!:):(?!:)")


def test_no_colon_in_the_first_line_of_an_attribute_takes_its_begin_for_a_type() -> None:
    # Sphinx's napoleon reads "The memory as bytes: the buffer" as a type and a description.
    lines = {
        f"{name}.{member}": (inspect.getdoc(value) or "").partition("\n")[0]
        for name in sorted(public_names())
        if isinstance(found := named(name), type)
        for member, value in inspect.getmembers(found)
        if not member.startswith("_")
        and (hasattr(type(value), "__set__") or isinstance(value, cached_property))
    }
    assert len(lines) > 100
    assert {name: line for name, line in lines.items() if _COLON.search(_CODE.sub("", line))} == {}


def test_constructors_that_the_site_shows_are_those_of_public_classes() -> None:
    tree = ast.parse((ROOT / "docs" / "conf.py").read_text())
    (names,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CONSTRUCTED"
    )
    classes = {name.rpartition(".")[2] for name in public_names() if isinstance(named(name), type)}
    assert len(names) > 40
    assert names - classes == set()


def is_own(cls: type, member: str) -> bool:
    """Whether a member was written here, as a function or a property."""
    owner = owner_of(cls, member)
    value = vars(owner)[member]
    described = isinstance(value, (property, classmethod, staticmethod)) or inspect.isroutine(value)
    return described and owner.__module__.partition(".")[0] in ("cudadrv", "ptx")


def owner_of(cls: type, member: str) -> type:
    return next(base for base in cls.__mro__ if member in vars(base))


def is_slot(cls: type, member: str) -> bool:
    """Whether a member is an attribute that is read from a slot."""
    return isinstance(vars(owner_of(cls, member))[member], ReadOnly)


def is_described(cls: type, member: str) -> bool:
    """Whether the docstring of a class names an attribute."""
    texts = (base.__doc__ or "" for base in cls.__mro__)
    return any(re.search(rf"\b{member}\b", text) for text in texts)


def test_the_table_of_results_is_up_to_date() -> None:
    text = results.PAGE.read_text()
    assert results.replaced(text) == text, "python -m tests.documents.reference --write"


def options_of(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Every command and option, of the commands below too."""
    for action in parser._actions:
        yield from (name for name in action.option_strings if name not in ("-h", "--help"))
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield name
                yield from options_of(below)


def test_every_command_and_option_is_described() -> None:
    text = (REFERENCE / "command-line.md").read_text()
    words = set(re.findall(r"(?<![\w-])-{0,2}[A-Za-z][\w-]*", text))
    assert [name for name in options_of(make_parser()) if name not in words] == []


def test_every_environment_variable_is_described() -> None:
    used = {
        name
        for package in ("cudadrv", "ptx")
        for path in (ROOT / package).rglob("*.py")
        for name in re.findall(r'"(CUDADRV_[A-Z_]+)"', path.read_text())
    }
    described = set(re.findall(r"^\| `(\w+)`", (ROOT / "docs/environment.md").read_text(), re.M))
    assert len(used) > 5
    assert used - described == set()


def test_modules_of_public_names_are_found() -> None:
    assert isinstance(importlib.import_module("cudadrv.errors"), ModuleType)
    assert {"cudadrv.Stream", "ptx.compile", "cudadrv.emulator.session"} <= public_names()
    assert "cudadrv.errors.CudaError" in public_names()
    assert "cudadrv.errors.OutOfMemoryError" not in public_names()
