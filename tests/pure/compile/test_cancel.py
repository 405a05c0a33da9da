"""A compilation that its caller stops: by an event, by a function, or by Ctrl-C."""

from __future__ import annotations

import _thread
import itertools
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda.bindings import nvrtc

import ptx
from ptx import _nvrtc
from ptx.image_cache import ImageCache
from tests.patience import wait_until

SMALL = 'extern "C" __global__ void f(int* x) { *x = 7; }'
# A second and more, all of which a cancelled compilation takes in its thread.
LARGE = "".join(
    f"__global__ void k{n}(double* x) {{ x[0] = sin(x[1]) + cos(x[2]) + pow(x[3], {n}.5); }}\n"
    for n in range(40)
)
CUBIN = ptx.CompileOptions(target=ptx.Target.cubin("sm_90"))


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    wait_until(lambda: not is_compiling())


def is_compiling() -> bool:
    return any(each.name == "cudadrv compile" for each in threading.enumerate())


@contextmanager
def once_it_compiles(function: Callable[[], object]) -> Iterator[None]:
    """Call a function when NVRTC is called first, which goes on after the block."""
    calls, left = itertools.count(), threading.Event()

    class Held:
        def __getattr__(self, name: str) -> object:
            return getattr(nvrtc, name)

        def nvrtcCompileProgram(self, *arguments: Any) -> object:  # Any: NVRTC's own types
            if next(calls) == 0:
                function()
                left.wait()
            return nvrtc.nvrtcCompileProgram(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_nvrtc, "api", Held)
        try:
            yield
        finally:
            left.set()


def test_an_event_stops_a_compilation_that_runs() -> None:
    event = threading.Event()
    with once_it_compiles(event.set), pytest.raises(ptx.CompileCancelledError):
        ptx.compile(SMALL, CUBIN, cache=False, cancel=event)


def test_a_function_stops_a_compilation_in_another_thread() -> None:
    outcomes: list[BaseException] = []
    queries = itertools.count()

    def work() -> None:
        try:
            ptx.compile(LARGE, CUBIN, cache=False, cancel=lambda: next(queries) > 3)
        except ptx.CompileCancelledError as error:
            outcomes.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(outcomes) == 1


def test_a_compilation_that_is_cancelled_before_does_not_begin() -> None:
    with pytest.raises(ptx.CompileCancelledError, match="the compilation was cancelled"):
        ptx.compile(SMALL, CUBIN, cache=False, cancel=lambda: True)
    assert "cudadrv compile" not in [each.name for each in threading.enumerate()]


def test_an_error_of_the_function_stops_it_too() -> None:
    def fail() -> bool:
        raise LookupError("of the user")

    with pytest.raises(LookupError, match="of the user"):
        ptx.compile(LARGE, CUBIN, cache=False, cancel=fail)


@pytest.fixture
def interrupts_raise() -> Iterator[None]:
    """Handle SIGINT as an interactive program does; a background process ignores it."""
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, earlier)


def test_a_function_whose_result_is_no_bool_is_named() -> None:
    for wrong in (np.ones(2), np.zeros(3)):
        with pytest.raises(TypeError, match="the result of cancel is array"):
            ptx.compile(SMALL, CUBIN, cache=False, cancel=lambda wrong=wrong: wrong)


@pytest.mark.usefixtures("interrupts_raise")
def test_an_interrupt_of_the_main_thread_ends_a_compilation_without_cancel() -> None:
    with once_it_compiles(_thread.interrupt_main), pytest.raises(KeyboardInterrupt):
        ptx.compile(SMALL, CUBIN, cache=False)


@pytest.mark.slow
def test_a_compilation_that_nothing_stops_gives_the_same_image(tmp_path: Path) -> None:
    plain = ptx.compile(SMALL, CUBIN, cache=False)
    for cancel in (threading.Event(), lambda: False):
        assert ptx.compile(SMALL, CUBIN, cache=False, cancel=cancel) == plain
    cache = ImageCache(tmp_path)
    assert cache.get_or_compile(SMALL, CUBIN, cancel=threading.Event()) == plain
    hit = cache.get_or_compile(SMALL, CUBIN, cancel=lambda: True)
    assert hit.origin is ptx.ImageOrigin.MEMORY  # there is nothing to stop


def test_a_cancelled_compilation_is_not_cached_and_the_next_thread_makes_the_image(
    tmp_path: Path,
) -> None:
    cache, event = ImageCache(tmp_path), threading.Event()
    images: list[ptx.Image] = []
    maker_waits = threading.Event()

    def cancelled() -> bool:
        maker_waits.set()
        return event.is_set()

    def wait_for_image() -> None:
        maker_waits.wait()
        images.append(cache.get_or_compile(SMALL, CUBIN))

    other = threading.Thread(target=wait_for_image)
    other.start()
    with once_it_compiles(event.set), pytest.raises(ptx.CompileCancelledError):
        cache.get_or_compile(SMALL, CUBIN, cancel=cancelled)
    other.join()
    (image,) = images
    assert set(image.signatures) == {"f"}
    assert cache.stats().process.compiled == 2


@pytest.mark.slow
def test_a_program_is_destroyed_once_when_its_compilation_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    destroyed: list[int] = []

    class Counting:
        def __getattr__(self, name: str) -> object:
            function = getattr(nvrtc, name)
            if name == "nvrtcDestroyProgram":
                destroyed.append(1)
            return function

    monkeypatch.setattr(_nvrtc, "api", Counting)
    with (
        pytest.raises(ptx.CompileCancelledError),
        _nvrtc.NvrtcProgram(LARGE, "a.cu", ()) as program,
    ):
        answers = iter((False, False, True))
        program.compile(("--gpu-architecture=sm_90",), lambda: next(answers))
    wait_until(lambda: not is_compiling())
    assert destroyed == [1]
    with _nvrtc.NvrtcProgram(SMALL, "a.cu", ()) as program:
        assert program.compile((), threading.Event().is_set)
    assert destroyed == [1, 1]


@pytest.mark.slow
def test_nvrtc_itself_is_not_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVRTC 13.5 ends the process if its flow callback stops it between optimizer and code."""
    used: list[str] = []

    class Recording:
        def __getattr__(self, name: str) -> object:
            used.append(name)
            return getattr(nvrtc, name)

    monkeypatch.setattr(_nvrtc, "api", Recording)
    with pytest.raises(ptx.CompileCancelledError):
        answers = iter((False, True))
        ptx.compile(LARGE, CUBIN, cache=False, cancel=lambda: next(answers))
    assert "nvrtcCompileProgram" in used
    assert "nvrtcSetFlowCallback" not in used


def test_what_cannot_stop_a_compilation_is_rejected() -> None:
    with pytest.raises(TypeError, match="compile: cancel"):
        ptx.compile(SMALL, CUBIN, cancel=1)  # type: ignore[arg-type]  # what is tested
