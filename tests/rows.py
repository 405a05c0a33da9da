"""Tests that run all rows of a table in one test, and report all failures at once."""

from __future__ import annotations

import functools
import inspect
import itertools
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

_PARAMETERS: Final[Any] = type(pytest.param())  # pytest does not export it
_MOST_LINES: Final = 12


@dataclass(frozen=True, slots=True)
class Row:
    """The name of a row, its arguments by their names, and whether it has the mark `slow`."""

    name: str
    arguments: dict[str, object] = field(default_factory=dict)
    slow: bool = False

    def __add__(self, other: Row) -> Row:
        name = f"{self.name}-{other.name}".strip("-")
        return Row(name, self.arguments | other.arguments, self.slow or other.slow)


# Any: a test has any parameters; pytest calls what is returned with the fixtures among them.
def all_rows(test: Callable[..., None]) -> Callable[..., None]:
    """Let a test with `pytest.mark.parametrize` below run all of its cases as one test.

    The cases share the fixtures of the test. Cases with the mark `slow` are a second test. A case
    that calls `pytest.skip` is left out; the test is skipped if each case is.
    """
    marks: list[pytest.Mark] = getattr(test, "pytestmark", [])
    tables = [_rows_of(mark) for mark in marks if mark.name == "parametrize"]
    rows = [sum(each, Row("")) for each in itertools.product(*reversed(tables))]
    given = {name for mark in marks if mark.name == "parametrize" for name in _names_of(mark)}
    signature = inspect.signature(test)
    fixtures = [each for name, each in signature.parameters.items() if name not in given]

    @functools.wraps(test)
    def run(**fixtures: object) -> None:
        slow = fixtures.pop("slow", False)
        _run_all(test, [row for row in rows if row.slow is slow], fixtures)

    vars(run)["pytestmark"] = [mark for mark in marks if mark.name != "parametrize"]
    if any(row.slow for row in rows):
        fixtures.append(inspect.Parameter("slow", inspect.Parameter.KEYWORD_ONLY))
        groups = [False, pytest.param(True, marks=pytest.mark.slow)]
        pytest.mark.parametrize("slow", groups, ids=["short", "slow"])(run)
    vars(run)["__signature__"] = signature.replace(parameters=fixtures)
    return run


def _run_all(test: Callable[..., None], rows: list[Row], fixtures: dict[str, object]) -> None:
    failures, skipped = [], []
    for row in rows:
        try:
            test(**fixtures, **row.arguments)
        except pytest.skip.Exception as skip:
            skipped.append(skip)
        except (Exception, pytest.fail.Exception) as error:
            failures.append(f"[{row.name}] {_text_of(error)}")
    assert rows, "the table is empty"
    if failures:
        count = f"{len(failures)} of {len(rows)} rows fail:"
        pytest.fail("\n".join([count, *failures]), pytrace=False)
    if len(skipped) == len(rows):
        raise skipped[0]


def _text_of(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[1]
    lines = f"line {frame.lineno}: {type(error).__name__}: {error}".splitlines()
    return "\n    ".join(lines[:_MOST_LINES])


def _names_of(mark: pytest.Mark) -> list[str]:
    names = mark.args[0]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def _rows_of(mark: pytest.Mark) -> list[Row]:
    if mark.kwargs.keys() - {"ids"}:
        raise TypeError(f"{sorted(mark.kwargs)}: a table in one test has ids alone")
    return list(_rows(_names_of(mark), mark.args[1], mark.kwargs.get("ids")))


# Any: cells are of any type, and ids a list or a function.
def _rows(names: list[str], values: Iterable[Any], ids: Any) -> Iterator[Row]:
    """Yield the rows of one table; `ids` is what pytest takes under this name."""
    listed = None if ids is None or callable(ids) else list(ids)
    for number, value in enumerate(values):
        name, row = None, value
        if isinstance(value, _PARAMETERS):
            name, row = value.id, value.values if len(names) > 1 else value.values[0]
            if any(each.name != "slow" for each in value.marks):
                raise TypeError(f"{value}: a row in one test has no mark but slow")
        cells = tuple(row) if len(names) > 1 else (row,)
        if name is None and listed is not None:
            name = listed[number]
        if name is None:
            name = "-".join((ids and callable(ids) and ids(cell)) or _short(cell) for cell in cells)
        slow = isinstance(value, _PARAMETERS) and bool(value.marks)
        yield Row(str(name), dict(zip(names, cells, strict=True)), slow)


def _short(cell: object) -> str:
    return str(getattr(cell, "__name__", None) or repr(cell)[:60])
