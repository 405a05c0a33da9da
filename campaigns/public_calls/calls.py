"""One call after the other in a world, and what may come out of each."""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import os
import random
import signal
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import cudadrv
import ptx
from cudadrv.client.cuda_client import registry

from ..report import Report
from .surface import Parameter, Target
from .values import DTYPES, Values, arrays
from .world import OursError, World, opened

CALLS: Final = 400
_SECONDS: Final = 20.0
_TYPED: Final = (cudadrv.CudadrvError, ptx.PtxError, OursError)


class TooLongError(BaseException):
    """A call that did not end in time."""


def attack_round(number: int, seed: int, targets: list[Target], outcome: Report) -> None:
    """Make some calls in a fresh world; the seed and the number of the round say which."""
    unraised: list[BaseException] = []
    where = f"seed {seed} round {number}"
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        _caching_in(_cache().name),
        _forgetting_modules(),
        _quiet(unraised),
    ):
        with opened(Path(folder)) as world:
            calls = _Calls(world, random.Random(f"{seed}/{number}"), unraised)
            for _ in range(CALLS):
                calls.call(targets, outcome, where)
        del world, calls
        gc.collect()  # what finalizers raise belongs to this round
    for error in unraised:
        if not _allowed(error, None):
            outcome.failures.append(f"left by {where}: {type(error).__name__}: {error}")


class _Calls:
    """The calls of a round."""

    def __init__(self, world: World, chance: random.Random, unraised: list[BaseException]) -> None:
        self._world = world
        self._chance = chance
        self._values = Values(world, chance)
        self._unraised = unraised

    def call(self, targets: list[Target], outcome: Report, where: str) -> None:
        """Make one call, and tell what became of it."""
        target, chance = self._chance.choice(targets), self._chance
        owners = self._world.of(target.owner) if target.owner is not None else [None]
        if not owners:
            outcome.skipped[target.name] = "the world has no such object"
            return
        owner = [] if target.owner is None else [chance.choice(owners)]
        is_wrong = chance.random() < 0.5
        args, named = _arguments(target, self._values, chance, is_wrong)
        function = _function_of(target, *owner)
        result, error = _call(partial(function, *owner, *args, **named), chance)
        if not is_wrong and type(result).__module__.startswith(("cudadrv", "ptx")):
            self._world.add(result)
        error = error or next(iter(self._unraised), None)
        self._unraised.clear()
        kind = type(error).__name__ if error is not None else "answered"
        outcome.count(f"{target.name.rpartition('.')[0]}: {kind}")
        if not _allowed(error, target):
            words = [*map(_shown, args), *(f"{k}={_shown(v)}" for k, v in named.items())]
            on = f" on {_shown(*owner)}" if owner else ""
            how = f"{'wrong' if is_wrong else 'allowed'}; {where}"
            outcome.failures.append(
                f"{target.name}({', '.join(words)}){on}: {kind}: {error} ({how}; {_place(error)})"
            )


def _function_of(target: Target, *owner: object) -> Callable[..., object]:
    """What is called: a class below may have a function of its own."""
    for each in owner:
        found = getattr(type(each), target.name.rpartition(".")[2], None)
        if isinstance(found, types.FunctionType):
            return found
    return target.function


def _place(error: BaseException | None) -> str:
    frame = error.__traceback__ if error is not None else None
    places = []
    while frame is not None:
        code = frame.tb_frame.f_code
        places.append(f"{'/'.join(code.co_filename.split('/')[-3:])}:{frame.tb_lineno}")
        frame = frame.tb_next
    return " < ".join(reversed(places[-3:]))


def _call(call: Callable[[], object], chance: random.Random) -> tuple[object, BaseException | None]:
    """What a call gives, used as a context manager now and then, or what it raises."""
    try:
        with _limited():
            result = call()
            if isinstance(result, types.GeneratorType):
                result = next(result, None)
            if isinstance(result, contextlib.AbstractContextManager) and chance.random() < 0.3:
                with result:
                    pass
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return None, error
    return result, None


def _allowed(error: BaseException | None, target: Target | None) -> bool:
    if error is None or isinstance(error, _TYPED):
        return True
    if isinstance(error, ExceptionGroup):
        return all(_allowed(each, target) for each in error.exceptions)
    if isinstance(error, TypeError) and _place(error).startswith("cudadrv/graph/host_function.py"):
        return True  # what a stream was to call takes other arguments, as Python says
    return isinstance(error, OSError) and target is not None and target.may_fail_to_write


def _arguments(
    target: Target, values: Values, chance: random.Random, is_wrong: bool
) -> tuple[list[object], dict[str, object]]:
    wrong = chance.choice(target.parameters).name if is_wrong and target.parameters else ""
    args: list[object] = []
    named: dict[str, object] = {}
    kinds = {each.kind for each in target.parameters}
    positional: set[object] = {inspect.Parameter.POSITIONAL_ONLY}
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        positional.add(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for parameter in target.parameters:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            args += [_value(parameter, values, chance) for _ in range(chance.randrange(4))]
            continue
        if parameter.is_optional and parameter.name != wrong and chance.random() < 0.4:
            continue
        # A flag takes whatever is true or false; more processes would import the main module.
        if parameter.name == wrong and parameter.annotation is not bool and wrong != "processes":
            value = values.wrong_for(parameter.annotation)
        else:
            value = _value(parameter, values, chance)
        if parameter.kind in positional:
            args.append(value)
        else:
            named[parameter.name] = value
    return args, named


def _value(parameter: Parameter, values: Values, chance: random.Random) -> object:
    if parameter.name == "dtype":
        return chance.choice(DTYPES)
    if parameter.name in ("array", "items") and chance.random() < 0.5:
        return chance.choice(arrays())
    if parameter.name == "processes":
        return chance.choice((0, -1, 1))
    return values.of(parameter.annotation)


def _shown(value: object = None) -> str:
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}: {error}>"
    return (text if len(text) < 60 else text[:57] + "...").replace("\n", " ")


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooLongError("the call did not end in time")

    former = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


@functools.cache
def _cache() -> tempfile.TemporaryDirectory[str]:
    """One folder for all rounds: measuring a device takes a second."""
    return tempfile.TemporaryDirectory()


@contextlib.contextmanager
def _caching_in(folder: str) -> Iterator[None]:
    """Let the process's cache be one that may be cleared."""
    former = os.environ.get("CUDADRV_CACHE_DIR")
    os.environ["CUDADRV_CACHE_DIR"] = folder
    try:
        yield
    finally:
        if former is None:
            del os.environ["CUDADRV_CACHE_DIR"]
        else:
            os.environ["CUDADRV_CACHE_DIR"] = former


@contextlib.contextmanager
def _forgetting_modules() -> Iterator[None]:
    """Leave no source registered for the process, which would answer a later round."""
    entries = registry._entries
    former = dict(entries)
    try:
        yield
    finally:
        entries.clear()
        entries.update(former)


@contextlib.contextmanager
def _quiet(unraised: list[BaseException]) -> Iterator[None]:
    def hook(given: Any) -> None:
        if given.exc_value is not None:
            unraised.append(given.exc_value)

    former, sys.unraisablehook = sys.unraisablehook, hook
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.unraisablehook = former
