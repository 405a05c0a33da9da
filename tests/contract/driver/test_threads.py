"""Shared structures are read in one thread while others change them; no reader fails."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.driver._api import CUdeviceptr
from cudadrv.driver.driver_selection import Driver, current
from cudadrv.driver.registry import Registry
from cudadrv.driver.stream_block_cache import StreamBlockCache
from cudadrv.emulator.leaks import MadeAt
from cudadrv.pool.workers import Worker, Workers
from cudadrv.runtime.module_cache import PtxModuleCache
from cudadrv.stream import reset
from ptx import compiling, diagnostics
from ptx.cache.header_dependencies import HeaderMemo
from tests.several_threads import running

SECONDS = 0.25
LEAST = 400  # writes of each thread, on a machine that is too busy for them in this time
WRITERS = 3


@pytest.fixture(autouse=True)
def machine() -> Iterator[emulator.Emulator]:
    with emulator.session() as machine:
        yield machine


class Thing:
    """Something that weak references may refer to."""


def hammer(write: Callable[[int], object], read: Callable[[], object]) -> None:
    """Call `write` with ever new numbers in several threads, and `read` in this one."""
    ends = time.monotonic() + SECONDS
    failed: list[BaseException] = []

    def write_until_the_end(first: int) -> None:
        try:
            for count, number in enumerate(itertools.count(first, WRITERS)):
                if count >= LEAST and time.monotonic() > ends:
                    return
                write(number)
        except BaseException as error:
            failed.append(error)

    with running(partial(write_until_the_end, first) for first in range(WRITERS)):
        read()
        while time.monotonic() < ends:
            read()
    assert not failed, failed[0]


def test_the_caches_of_a_driver_are_cleared_while_threads_fill_them() -> None:
    driver = Driver(emulator.Emulator())
    kinds = [type(f"Cached{number}", (), {}) for number in range(400)]

    def fill(number: int) -> None:
        driver.cache(kinds[number % 400])
        driver.one_of(Thing, number)

    hammer(fill, driver.clear_caches)


def test_a_reset_looks_at_caches_that_threads_fill() -> None:
    driver = current()
    kinds = [type(f"Cached{number}", (), {}) for number in range(40)]

    def fill(number: int) -> None:
        driver.cache(kinds[number % 40])
        driver.cached().pop(kinds[(number * 7) % 40], None)

    hammer(fill, lambda: reset._forget(driver, 5))


def _open_cache() -> StreamBlockCache:
    cache = StreamBlockCache()
    cache.is_open = True
    return cache


def test_a_cache_of_blocks_is_closed_while_threads_add_sizes() -> None:
    caches = [_open_cache()]

    def free(number: int) -> None:
        cache = caches[0]
        if len(cache) == 60:
            cache = caches[0] = _open_cache()
        kept = cache.of_size(number % 60 + 1)
        if kept is not None:
            kept.append((CUdeviceptr(number), number))

    def close() -> None:
        cache = caches[0]
        cache.close()
        cache.is_open = True

    hammer(free, close)


def test_a_registry_lists_objects_while_threads_make_and_drop_them() -> None:
    registry: Registry[Thing] = Registry()
    kept: dict[int, Thing] = {}

    def make(number: int) -> None:
        kept[number % 100] = made = Thing()
        registry.add(made)

    hammer(make, registry.alive)
    assert len(registry) == len(registry.alive()) == len(kept)


def test_the_first_module_of_a_cache_is_found_while_threads_load_modules() -> None:
    cache = PtxModuleCache()
    modules = cache._on(current())

    def load(number: int) -> None:
        key = cast(Any, number % 200)
        modules[key] = cast(Any, SimpleNamespace(closed=True))
        modules.pop(cast(Any, (number * 7) % 200), None)

    hammer(load, lambda: cache.get(None))


@pytest.mark.slow
def test_compilations_are_observed_while_observers_come_and_go() -> None:
    compile_nothing = compiling.observed("compile")(lambda: None)

    def observe(_: int) -> None:
        with ExitStack() as several:
            for _ in range(3):
                several.enter_context(compiling.observe(lambda verb: ExitStack()))

    hammer(observe, compile_nothing)
    assert not compiling._observers


def test_warnings_reach_collectors_that_come_and_go() -> None:
    log = "k.cu(1): warning #1-D: it is so\n\n"
    with diagnostics.collected() as all_of_them:

        def collect(_: int) -> None:
            with diagnostics.collected(), diagnostics.collected():
                pass

        def warn() -> None:
            diagnostics.warn_of(log, name="k.cu", source="x")

        with pytest.warns(ptx.CompileWarning):
            hammer(collect, warn)
    assert all_of_them
    assert list(diagnostics._collectors.values()) == []


def test_a_memo_of_headers_is_written_while_threads_read_headers(tmp_path: Path) -> None:
    memo = HeaderMemo()
    paths = [str(tmp_path / f"{number}.h") for number in range(40)]
    for path in paths:
        Path(path).touch()
    known = memo.header(paths[0])
    assert known is not None

    def read(number: int) -> None:
        memo._headers[paths[number % 40]] = known
        memo._headers.pop(paths[(number * 7) % 40], None)

    hammer(read, lambda: memo.to_bytes(paths))


def test_leaks_are_listed_while_threads_make_objects() -> None:
    made: MadeAt[object] = MadeAt({})

    def make(number: int) -> None:
        made[number] = number
        made.pop(number - 30, None)

    hammer(make, lambda: list(made.left()))


def test_a_worker_is_given_to_one_thread_and_leaves_once() -> None:
    workers = Workers(0)
    all_workers = [cast(Worker, object()) for _ in range(100)]
    workers.idle.update(dict.fromkeys(all_workers))
    taken: list[object] = []

    def take(number: int) -> None:
        if number % 2:
            worker = all_workers[number % 100]
            if workers.leave(worker):
                taken.append(worker)
        else:
            try:
                taken.append(workers.idle.popitem()[0])
            except KeyError:
                pass

    hammer(take, lambda: len(workers.idle))
    assert sorted(map(id, taken)) == sorted(map(id, all_workers))


@pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="needs a free-threaded build"
)
def test_importing_leaves_the_interpreter_lock_disabled() -> None:
    program = (
        "import sys, cudadrv\n"
        "from cudadrv import emulator\n"
        "with emulator.session():\n"
        "    cudadrv.cuda_context_for(0).new_stream().zeros(1, 'i4')\n"
        "print(sys._is_gil_enabled())"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("PYTHON_GIL", None)
    command = [sys.executable, "-c", program]
    assert subprocess.check_output(command, env=environment, text=True) == "False\n"


def test_a_collection_frees_what_waits_for_the_thread_that_made_it(
    machine: emulator.Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without the interpreter lock, memory that another thread drops waits for its maker. Two
    # collections find it and its stream there, and finalize them in any order.
    context = cudadrv.cuda_context_for(0)
    stream, captured = context.new_stream(), context.new_stream()
    out = stream.zeros(64, np.int32)
    before = context.memory_info().free
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda given: told.append(given.exc_value))
    arrays: list[cudadrv.DeviceArray[np.int32]] = []
    made, done = threading.Event(), threading.Event()

    def make() -> None:
        streams = [context.new_stream() for _ in range(10)]
        arrays.extend(each.to_device(np.zeros(64, np.int32)) for each in streams)
        streams.clear()
        made.set()
        done.wait()

    with running([make]):
        made.wait()
        for array in arrays:
            stream.copy(out, array)
        del array
        try:
            with captured.capture() as graph:
                arrays.clear()
                for _ in range(3):
                    gc.collect()
                captured.fill(out, 5)
        finally:
            done.set()
    graph.instantiate().launch(stream)
    assert stream.to_host(out).tolist() == [5] * 64
    context.synchronize()
    assert not told
    assert context.memory_info().free == before


_IMPORTS = """\
import cudadrv
from cudadrv.errors import ClosedError
import cudadrv.driver.device
from cudadrv import emulator, list_devices
from cudadrv.emulator import Emulator
import cudadrv.emulator.emulator
from cudadrv.interop import register
import cudadrv.interop.foreign
from cudadrv.runtime import PirlsFamily
import cudadrv.runtime.policy
from cudadrv import Stream, GpuRuntime
import cudadrv.graph.capture
from ptx import ImageCache
from ptx.isa import PtxSyntaxError
import ptx.isa.errors
from ptx.emulate import Limits
import ptx.emulate.threads.limits
import ptx.emulate.program
import cuda.bindings.driver
import cuda.bindings.nvrtc
"""


@pytest.mark.slow
def test_threads_import_different_files_for_the_first_time_at_once() -> None:
    # The finder widens the moment between a file's lock and its package's.
    program = (
        "import sys, threading, time\n"
        "class Slow:\n"
        "    def find_spec(*_): time.sleep(0.001)\n"
        "sys.meta_path.insert(0, Slow)\n"
        f"statements = {_IMPORTS.splitlines()}\n"
        "threading.excepthook = lambda given: print(repr(given.exc_value))\n"
        "begin = threading.Barrier(len(statements))\n"
        "def work(statement):\n"
        "    begin.wait()\n"
        "    exec(statement, {})\n"
        "threads = [threading.Thread(target=work, args=[each]) for each in statements]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    assert subprocess.check_output(command, env=environment, text=True) == ""


@pytest.mark.slow
def test_a_counter_gives_each_number_once() -> None:
    numbers = itertools.count()
    got: list[list[int]] = [[] for _ in range(WRITERS)]
    hammer(lambda number: got[number % WRITERS].append(next(numbers)), threading.get_ident)
    every = list(itertools.chain(*got))
    assert sorted(every) == list(range(len(every)))
