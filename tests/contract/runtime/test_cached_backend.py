"""`CachedBackend`: one probe for each driver in use, for all threads, failures included."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.errors import (
    ClosedError,
    DriverCallFailed,
    DriverLibraryUnavailable,
    InvalidValueError,
)
from cudadrv.runtime import CachedBackend, CudaBackendContext, probe_backend_with_compile
from tests.patience import SECONDS

from .conftest import NoDriver

THREADS = 8


class Probe:
    """Makes a backend, and counts how often."""

    def __init__(self, build: Callable[[], object] = object) -> None:
        self.calls = 0
        self.build = build

    def __call__(self) -> object:
        self.calls += 1
        return self.build()


class Unlike(Exception):
    """An error that cannot be copied, as its constructor takes no text."""

    def __init__(self) -> None:
        super().__init__("unlike")


def made() -> CudaBackendContext:
    return probe_backend_with_compile("cached", CudaBackendContext.from_parts)


def test_threads_that_call_at_once_get_the_backend_of_one_probe() -> None:
    begin = threading.Barrier(THREADS)
    held: CachedBackend[CudaBackendContext] = CachedBackend()
    calls: list[int] = []

    def probe() -> CudaBackendContext:
        calls.append(threading.get_ident())
        return made()

    def use() -> CudaBackendContext:
        begin.wait()
        return held.get_or_probe(probe)

    with emulator.session(), ThreadPoolExecutor(THREADS) as pool:
        backends = [done.result() for done in [pool.submit(use) for _ in range(THREADS)]]
    assert len(calls) == 1
    assert all(backend is backends[0] for backend in backends)


def test_an_error_of_the_probe_is_raised_by_each_call_without_another_probe() -> None:
    cause = KeyError("why")

    def fail() -> object:
        raise DriverCallFailed("no kernel") from cause

    def fail_otherwise() -> object:
        raise Unlike

    with emulator.session():
        cudadrv.init()
        for build, kind in ((fail, DriverCallFailed), (fail_otherwise, Unlike)):
            held: CachedBackend[object] = CachedBackend()
            probe = Probe(build)
            raised = []
            for _ in range(3):
                with pytest.raises(kind) as caught:
                    held.get_or_probe(probe)
                raised.append(caught.value)
            assert probe.calls == 1
            assert {str(error) for error in raised} == {str(raised[0])}
            assert raised[2].__cause__ is (cause if kind is DriverCallFailed else None)
            depths = [len(_frames(error)) for error in raised[1:]]
            assert depths[0] == depths[1], "frames pile up"


def _frames(error: BaseException) -> list[object]:
    frames: list[object] = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    return frames


def test_each_session_makes_its_own_backend_and_drops_it_at_its_end() -> None:
    held: CachedBackend[CudaBackendContext] = CachedBackend()
    first, values = [], []
    for start in (0, 10):
        with emulator.session(check="leak"):
            backend = held.get_or_probe(made)
            assert held.get_or_probe(made) is backend
            first.append(weakref.ref(backend.ctx))
            x = backend.stream.to_device(np.arange(start, start + 3))
            values.append(backend.stream.to_host(x).tolist())
            del x
        with pytest.raises(ClosedError, match="emulator session has ended"):
            backend.stream.zeros(1, "i4")
        del backend
    gc.collect()
    assert values == [[0, 1, 2], [10, 11, 12]]
    assert [context() for context in first] == [None, None]


def test_an_outer_session_keeps_its_backend_while_an_inner_one_has_another() -> None:
    held: CachedBackend[object] = CachedBackend()
    probe = Probe()
    with emulator.session():
        outer = held.get_or_probe(probe)
        with emulator.session():
            assert held.get_or_probe(probe) is not outer
        assert held.get_or_probe(probe) is outer
    assert probe.calls == 2


def test_two_holders_have_two_backends() -> None:
    one: CachedBackend[object] = CachedBackend()
    two: CachedBackend[object] = CachedBackend()
    with emulator.session():
        assert one.get_or_probe(object) is not two.get_or_probe(object)


def test_a_probe_that_returns_none_is_called_once() -> None:
    held: CachedBackend[object] = CachedBackend()
    probe = Probe(lambda: None)
    with emulator.session():
        assert [held.get_or_probe(probe) for _ in range(3)] == [None] * 3
    assert probe.calls == 1


def test_without_a_driver_the_failure_is_cached_until_there_is_one(no_driver: NoDriver) -> None:
    held: CachedBackend[object] = CachedBackend()
    probe = Probe(made)
    for _ in range(3):
        with pytest.raises(DriverLibraryUnavailable, match="no CUDA runtime available"):
            held.get_or_probe(probe)
    assert (probe.calls, no_driver.looked) == (1, 1)
    with emulator.session():
        assert isinstance(held.get_or_probe(probe), CudaBackendContext)


def test_an_interrupted_probe_is_not_cached() -> None:
    held: CachedBackend[object] = CachedBackend()

    def interrupt() -> object:
        raise KeyboardInterrupt

    with emulator.session():
        cudadrv.init()
        with pytest.raises(KeyboardInterrupt):
            held.get_or_probe(interrupt)
        assert held.get_or_probe(lambda: "made") == "made"


def test_a_probe_that_calls_its_own_holder_raises() -> None:
    held: CachedBackend[object] = CachedBackend()
    with emulator.session():
        cudadrv.init()
        with pytest.raises(InvalidValueError, match="by its own probe"):
            held.get_or_probe(lambda: held.get_or_probe(object))


FORK = """
import os, warnings
warnings.simplefilter("ignore")
import cudadrv
from cudadrv import emulator

held, failing = cudadrv.runtime.CachedBackend(), cudadrv.runtime.CachedBackend()

def made():
    parts = cudadrv.runtime.probe_cuda_backend("f")
    return parts, os.getpid()

def fail():
    raise ValueError(os.getpid())

def outcome(holder, probe):
    try:
        return holder.get_or_probe(probe)[1] == os.getpid()
    except Exception as error:
        return type(error).__name__

def report():
    found = [outcome(held, made), outcome(failing, fail)]
    with emulator.session():
        found += [outcome(held, made), outcome(failing, fail)]
    print(found, flush=True)

BEFORE
if os.fork():
    os.wait()
else:
    report()
    os._exit(0)
report()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
def test_a_forked_child_makes_its_own_or_raises() -> None:
    """Before the first driver call of the parent it makes its own; afterwards it cannot."""
    own = str([True, "ValueError", True, "ValueError"])
    lost = str(["ForkedProcessError", "ForkedProcessError", True, "ValueError"])
    for before, child in (("", own), ("report()", lost)):
        done = subprocess.run(
            [sys.executable, "-c", FORK.replace("BEFORE", before)],
            cwd=Path(__file__).parents[3],
            env={**os.environ, "CUDADRV_DRIVER": "emulator"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        assert done.stdout.splitlines() == [*([own] if before else []), child, own]
