"""Each parameter of the public surface given objects whose description fails, or has no end."""

from __future__ import annotations

import ast
import enum
import inspect
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

import cudadrv
from cudadrv import emulator
from ptx.argument_checks import shown, shown_error, shown_name, shown_text
from tests import ended_objects
from tests.documents.reference import listed, named
from tests.ended_objects import CALLS, OBJECTS, Lab
from tests.short_cases import few

MOST_CHARACTERS: Final = 3000
MOST_OF_A_LINE: Final = 500


class HostileError(Exception):
    """Raised by the objects themselves."""


class Raising:
    def __repr__(self) -> str:
        raise HostileError


class Untrue:
    def __repr__(self) -> str:
        return 5  # type: ignore[return-value]  # what is tested


class Huge:
    def __repr__(self) -> str:
        return "h" * 1_000_000


class Number(int):
    __repr__ = Raising.__repr__


class Text(str):
    __slots__ = ()
    __repr__ = Raising.__repr__


class Elements(list[int]):
    __repr__ = Raising.__repr__


Elements.__name__ = "list"  # as the class itself is called


def _nested() -> list[object]:
    found: list[object] = []
    for _ in range(100_000):
        found = [found]
    return found


NESTED: Final = _nested()
HOSTILE: Final[dict[str, object]] = {
    "raising": Raising(), "untrue": Untrue(), "huge": Huge(), "nested": NESTED,
    "named list": Elements([1]), "dict": {1: NESTED}, "tuple": (Raising(),), "number": Number(-7),
    "text": Text("zz"), "long text": "x\n" * 100_000, "long number": 10**6000,
}  # fmt: skip
# Their errors have the log of a compiler, which may be long.
OF_A_COMPILER: Final = ("ptx.compile", "ptx.compile_nvvm", "ptx.compile_report")
NOT_CALLED: Final = ("use", "stand_in", "main", "Emulator")


def _calls_with(call: str) -> Iterator[types.CodeType]:
    """Yield a call once for each argument, which is the variable `hostile` in it."""
    tree = ast.parse(call, mode="eval")
    hostile = ast.Name("hostile", ast.Load())
    for each in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        for index, argument in enumerate(each.args):
            each.args[index] = hostile
            yield compile(ast.fix_missing_locations(tree), call, "eval")
            each.args[index] = argument
        for keyword in each.keywords:
            former, keyword.value = keyword.value, hostile
            yield compile(ast.fix_missing_locations(tree), call, "eval")
            keyword.value = former


def _calls(lab: Lab, value: object) -> Iterator[tuple[str, Callable[[], object]]]:
    scope = {**vars(ended_objects), **vars(lab), "hostile": value}
    for full, call in CALLS.items():
        item = scope.get(OBJECTS.get(full.partition(".")[0], ""))
        for code in _calls_with(call):
            yield full, lambda code=code, item=item: eval(code, scope | {"o": item})  # type: ignore[misc]
    for full in sorted(set(listed())):
        function: Any = named(full)
        is_value = inspect.isclass(function) and issubclass(function, (BaseException, enum.Enum))
        if not callable(function) or is_value or full.rpartition(".")[2] in NOT_CALLED:
            continue
        try:
            parameters = inspect.signature(function).parameters.values()
        except ValueError:
            continue
        required = {
            each.name: value
            for each in parameters
            if each.default is each.empty
            and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
        }
        others = [each.name for each in parameters if each.default is not each.empty]
        for more in ({}, *({name: value} for name in others)):
            yield full, lambda f=function, given={**required, **more}: f(**given)  # type: ignore[misc]


def _fault(full: str, call: Callable[[], object]) -> str:
    try:
        call()
    except (HostileError, RecursionError, MemoryError, SystemError) as error:
        return type(error).__name__
    except Exception as error:
        text = str(error)
        if full in OF_A_COMPILER and isinstance(error, cudadrv.CudadrvError):
            return ""
        first = text.partition("\n")[0]
        is_short = len(text) <= MOST_CHARACTERS and len(first) <= MOST_OF_A_LINE
        is_ours = isinstance(error, cudadrv.CudadrvError) or "non-string" not in text
        return "" if is_short and is_ours else f"{type(error).__name__}: {first[:60]}"
    return ""


@pytest.mark.parametrize("kind", few(HOSTILE, 0))
def test_each_parameter_takes_a_hostile_value_or_rejects_it_in_a_short_text(kind: str) -> None:
    wrong, count = set(), 0
    with warnings.catch_warnings(), emulator.session(2, raise_findings=False):
        warnings.simplefilter("ignore")
        for full, call in _calls(Lab(), HOSTILE[kind]):
            count += 1
            fault = _fault(full, call)
            wrong |= {f"{full}: {fault}"} if fault else set()
    assert not wrong, "\n".join(sorted(wrong))
    assert count > 600


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_description_is_short_and_does_not_raise(kind: str) -> None:
    class Error(Exception):
        __str__ = __repr__ = Raising.__repr__

    value = HOSTILE[kind]
    texts = [shown(value), shown_text(value), shown_error(ValueError(value)), shown_error(Error())]
    texts += [shown_name(value)] if isinstance(value, str) else []
    assert all(type(text) is str and len(text) < MOST_OF_A_LINE for text in texts)
