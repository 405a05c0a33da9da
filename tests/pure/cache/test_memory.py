"""Images in memory: who makes, who waits, and what an interrupt leaves."""

from __future__ import annotations

import copyreg
import itertools
import linecache
import os
import sys
import threading
import traceback
from collections.abc import Callable
from functools import partial
from types import FrameType, TracebackType
from typing import Any, Final

import pytest

from ptx import CompileError, CompileOptions, Image, Target, image_cache
from ptx.image_cache import Made, MemoryImages
from tests.patience import SECONDS

IMAGE: Final = Image(Target.parse("compute_80"), b"an image")


def make(_: bool) -> Made:
    return Made(IMAGE, True)


def in_time(*works: Callable[[], object]) -> list[object]:
    """What each gives in a thread of its own; a failure where one hangs."""
    given: list[object] = [None] * len(works)

    def keep(place: int, work: Callable[[], object]) -> None:
        try:
            given[place] = work()
        except CompileError as error:
            given[place] = error

    threads = [threading.Thread(target=keep, args=each, daemon=True) for each in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    return given


def interrupting(number: int) -> Callable[..., Any]:
    """A trace function that raises KeyboardInterrupt before the line of this number.

    The second visit of a `with` line is the call of its exit, before which CPython delivers none.
    """
    lines, seen = itertools.count(), set[tuple[int, int]]()

    def trace_lines(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != image_cache.__file__:
            return None
        at = (id(frame), frame.f_lineno)
        leaves = linecache.getline(image_cache.__file__, at[1]).lstrip().startswith("with ")
        if event == "line" and not (leaves and at in seen) and next(lines) == number:
            sys.settrace(None)
            raise KeyboardInterrupt
        seen.add(at)
        return trace_lines

    return trace_lines


def test_an_interrupt_at_any_line_of_a_making_lets_others_make_the_image() -> None:
    for number in range(500):
        images = MemoryImages(1000)
        sys.settrace(interrupting(number))
        try:
            images.make_once("a", make)
        except KeyboardInterrupt:
            pass
        else:
            break
        finally:
            sys.settrace(None)
        assert in_time(partial(images.make_once, "a", make))[0] in ((IMAGE, False), (IMAGE, True))
        assert images.make_once("a", make)[0] is IMAGE
    assert number > 20


def test_an_image_that_came_while_a_thread_was_on_its_way_is_shared_and_not_made() -> None:
    images = MemoryImages(1000)
    images.keep("a", IMAGE)
    assert images.make_once("a", lambda _: pytest.fail("it is made again")) == (IMAGE, True)
    assert images._makings == {}


class Makings(dict[tuple[int, str], Any]):
    """Sets `waiting` once a second thread has found the making that `begun` tells of."""

    def __init__(self, begun: threading.Event, waiting: threading.Event) -> None:
        super().__init__()
        self._begun, self._waiting = begun, waiting

    def setdefault(self, key: tuple[int, str], default: Any = None) -> Any:
        making = super().setdefault(key, default)
        if self._begun.is_set():
            self._waiting.set()
        return making


def images_with_second() -> tuple[MemoryImages, threading.Event, threading.Event]:
    """Images; an event for the first maker to set, and one that is set when a second one waits."""
    images, begun, waiting = MemoryImages(1000), threading.Event(), threading.Event()
    images._makings = Makings(begun, waiting)
    return images, begun, waiting


def test_a_thread_that_waits_for_an_interrupted_making_makes_the_image() -> None:
    images, begun, waiting = images_with_second()

    def interrupted(_: bool) -> Made:
        begun.set()
        waiting.wait(SECONDS)
        raise KeyboardInterrupt

    def first() -> object:
        with pytest.raises(KeyboardInterrupt):
            images.make_once("a", interrupted)
        return None

    def second() -> object:
        begun.wait(SECONDS)
        return images.make_once("a", make)

    assert in_time(first, second) == [None, (IMAGE, False)]


def test_an_image_that_does_not_last_is_returned_to_no_other_caller() -> None:
    images, begun, waiting = images_with_second()
    other = Image(IMAGE.target, b"of another header")

    def passing(_: bool) -> Made:
        begun.set()
        waiting.wait(SECONDS)
        return Made(other, False)

    def second() -> object:
        begun.wait(SECONDS)
        return images.make_once("a", make)

    assert in_time(lambda: images.make_once("a", passing), second) == [
        (other, False),
        (IMAGE, False),
    ]
    assert images.get("a") is IMAGE


def test_makings_that_want_each_others_image_do_not_wait_for_each_other() -> None:
    """As the finalizers that run in the middle of two makings may."""
    images = MemoryImages(1000)
    both = threading.Barrier(2, timeout=SECONDS)
    told: list[bool] = []

    def telling(may_wait: bool) -> Made:
        told.append(may_wait)
        return Made(IMAGE, True)

    def wanting(digest: str) -> Callable[[bool], Made]:
        def make_and_want(may_wait: bool) -> Made:
            both.wait()
            told.append(may_wait)
            images.make_once(digest, telling)
            both.wait()
            return Made(IMAGE, True)

        return make_and_want

    found = in_time(
        lambda: images.make_once("a", wanting("b")), lambda: images.make_once("b", wanting("a"))
    )
    assert found == [(IMAGE, False)] * 2
    assert sorted(told) == [False, False, True, True]


def with_traceback(error: CompileError) -> tuple[object, ...]:
    """How some libraries have exceptions copied and pickled."""

    def remade(trace: TracebackType | None) -> CompileError:
        return CompileError(error.log, error.options).with_traceback(trace)

    return remade, (error.__traceback__,)


@pytest.mark.parametrize("is_kept", [False, True])
def test_errors_that_threads_share_have_each_their_own_traceback(
    is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_kept:
        monkeypatch.setitem(copyreg.dispatch_table, CompileError, with_traceback)
    images, begun, waiting = images_with_second()

    def refused(_: bool) -> Made:
        begun.set()
        waiting.wait(SECONDS)
        raise CompileError("a.cu(1): error: no", CompileOptions())

    def second() -> object:
        begun.wait(SECONDS)
        return images.make_once("a", make)

    one, two = in_time(lambda: images.make_once("a", refused), second)
    assert isinstance(one, CompileError)
    assert isinstance(two, CompileError)
    assert one is not two
    assert (str(one), one.log) == (str(two), two.log)
    assert "refused" not in [frame.name for frame in traceback.extract_tb(two.__traceback__)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_waits_for_no_making_of_its_parent() -> None:
    images = MemoryImages(1000)
    status: list[int] = []

    def forking(_: bool) -> Made:
        child = os.fork()
        if child == 0:
            ended = threading.Thread(target=images.make_once, args=("a", make), daemon=True)
            ended.start()
            ended.join(SECONDS)
            os._exit(images.get("a") is not IMAGE)
        status.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        return Made(IMAGE, True)

    assert images.make_once("a", forking) == (IMAGE, False)
    assert status == [0]
