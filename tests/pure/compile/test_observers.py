"""Observers see every compilation and link, with its outcome, and change nothing of it."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

import ptx
from ptx import CompileError, CompileOptions, LinkError, Target
from ptx.compiling import observed
from tests.several_threads import all_at_once

KERNEL = 'extern "C" __global__ void k(float* a) { a[0] = 1.0f; }'
WITHOUT_A_FUNCTION = """
.version 8.0
.target sm_80
.address_size 64
.extern .func missing;
.visible .entry k() { call.uni missing; ret; }
"""


class Log:
    """An observer that writes down what it sees."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.seen: list[str] = []

    @contextmanager
    def __call__(self, verb: str) -> Iterator[None]:
        self.seen.append(f"{self.name}{verb}")
        try:
            yield
        except BaseException as error:
            self.seen.append(f"{self.name}{type(error).__name__}")
            raise
        self.seen.append(f"{self.name}done")


@pytest.mark.slow
def test_compiling_and_linking_are_observed_inside_the_block_alone() -> None:
    log = Log()
    ptx.compile(KERNEL)
    with ptx.observe(log):
        part = ptx.compile(KERNEL, CompileOptions(target=Target.ltoir("sm_90")))
        linked = ptx.link([part], Target.cubin("sm_90"))
    ptx.compile(KERNEL)
    assert list(linked.signatures) == ["k"]
    assert log.seen == ["compile", "done", "link", "done"]


def test_errors_pass_through_the_observer() -> None:
    log = Log()
    with ptx.observe(log):
        with pytest.raises(CompileError):
            ptx.compile("nonsense")
        with pytest.raises(LinkError):
            ptx.link([ptx.Image.from_ptx(WITHOUT_A_FUNCTION)], Target.ptx("sm_90"))
    assert log.seen == ["compile", "CompileError", "link", "LinkError"]


def test_an_observer_cannot_swallow_the_error() -> None:
    @contextmanager
    def swallowing(verb: str) -> Iterator[None]:
        try:
            yield
        except CompileError:
            pass

    with ptx.observe(swallowing), pytest.raises(CompileError):
        ptx.compile("nonsense")


def test_an_error_of_the_observer_reaches_the_caller_and_leaves_no_trace() -> None:
    def failing(verb: str) -> AbstractContextManager[None]:
        raise RuntimeError("the observer failed")

    with ptx.observe(failing), pytest.raises(RuntimeError, match="the observer failed"):
        ptx.compile(KERNEL)
    assert ptx.compile(KERNEL).signatures


def test_observers_nest_and_each_leaves_by_itself() -> None:
    outer, inner = Log("outer "), Log("inner ")
    outer.seen = inner.seen
    first, second = ptx.observe(outer), ptx.observe(inner)
    first.__enter__()
    second.__enter__()
    ptx.compile(KERNEL)
    first.__exit__(None, None, None)  # not in the reverse order, as other threads may
    ptx.compile(KERNEL)
    second.__exit__(None, None, None)
    ptx.compile(KERNEL)
    assert inner.seen == [
        "outer compile", "inner compile", "inner done", "outer done", "inner compile", "inner done",
    ]  # fmt: skip


def test_the_same_observer_twice_sees_twice() -> None:
    log = Log()
    with ptx.observe(log):
        with ptx.observe(log):
            ptx.compile(KERNEL)
        ptx.compile(KERNEL)
    assert log.seen == ["compile", "compile", "done", "done", "compile", "done"]


def test_threads_may_begin_and_end_observing_while_others_call() -> None:
    logs = [Log() for _ in range(8)]
    called = observed("call")(lambda: None)
    start = threading.Barrier(len(logs))

    def work(log: Log) -> Callable[[], None]:
        def run() -> None:
            start.wait()
            for _ in range(200):
                with ptx.observe(log):
                    called()

        return run

    all_at_once([work(log) for log in logs])
    for log in logs:
        assert log.seen.count("call") == log.seen.count("done") >= 200
    before = [len(log.seen) for log in logs]
    called()
    assert [len(log.seen) for log in logs] == before


def test_the_verbs_keep_their_signatures_and_docstrings() -> None:
    assert list(inspect.signature(ptx.compile).parameters)[:2] == ["source", "options"]
    assert inspect.signature(ptx.link).parameters["cache"].default is True
    assert (ptx.compile.__doc__ or "").startswith("Compile CUDA C++ to an image.")
