"""Observing `ptx.compile` and `ptx.link`, as a tracer does, without replacing them.

An observer is called with the verb's name and gives a context manager that stands around the call:

    @contextmanager
    def timed(verb: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            print(verb, time.perf_counter() - started)

    with ptx.observe(timed):
        ptx.compile(source)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Final, ParamSpec, TypeAlias, TypeVar

__all__ = ["Observer", "observe"]

Observer: TypeAlias = Callable[[str], AbstractContextManager[object]]
"""Called with "compile" or "link" in the thread that calls the verb, before it does anything."""

_P = ParamSpec("_P")
_R = TypeVar("_R")

_observers: Final[dict[object, Observer]] = {}
"""Those that observe now, in the order in which they came, each by a key of its block; changed and
read in atomic steps, as a finalizer may come between any two."""


@contextmanager
def observe(observer: Observer) -> Iterator[None]:
    """Have an observer around each `ptx.compile` and `ptx.link` of every thread in this block.

    The observer that came last is innermost. A call that is under way when the block begins is not
    observed; one that is under way when it ends is observed to its end. The verb's error passes
    through the observer's context manager, which cannot swallow it; an error of the observer's own
    reaches the verb's caller.
    """
    key = object()
    try:
        _observers[key] = observer
        yield
    finally:
        _observers.pop(key, None)


def observed(verb: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Make a function one that observers see by this name; unobserved, that costs one test."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if not _observers:
                return function(*args, **kwargs)
            observers = tuple(_observers.values())
            return _call_observed(observers, verb, lambda: function(*args, **kwargs))

        return call

    return decorate


def _call_observed(observers: tuple[Observer, ...], verb: str, function: Callable[[], _R]) -> _R:
    failed: list[BaseException] = []
    try:
        with ExitStack() as around:
            for observer in observers:
                around.enter_context(observer(verb))
            try:
                return function()
            except BaseException as error:
                failed.append(error)
                raise
        raise failed[0]  # an observer would have swallowed it
    finally:
        failed.clear()  # the error's traceback holds this frame
