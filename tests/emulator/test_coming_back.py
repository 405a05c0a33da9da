"""A finalizer may come at any line of ours, and use the object that is being used.

Each test plants a collection before every line in turn of the code that a lock guards. Garbage of
the user's is found there, whose finalizer uses the same object in the same thread. A lock that it
would wait for would be its own thread's: so each round has a thread of its own and a time limit.
"""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import FrameType
from typing import Any, Final, cast

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig, emulator
from cudadrv.blas import LinearAlgebra
from cudadrv.client.cuda_client import CapturedGraph, ModuleRegistry
from cudadrv.client.sobol import SobolDvCache
from cudadrv.driver.driver_selection import current
from cudadrv.memory.reuse.allocator import BumpArena
from cudadrv.pool.device_pool import DevicePool
from cudadrv.runtime.module_cache import KeyedPtxModuleCache, PtxModuleCache
from ptx import compiling
from ptx.cache.store import Counter
from ptx.emulate.exec.collection import collection_paused
from ptx.image_cache import Made, MemoryImages
from tests.bump_kernel import PTX
from tests.patience import SECONDS

SOURCE: Final = 'extern "C" __global__ void f(int* x) { x[0] += 1; }'


class Busy:
    """Garbage that only a collection finds; its finalizer acts."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.circle = self
        self._act = act

    def __del__(self) -> None:
        self._act()


def find(garbage: list[Busy]) -> None:
    """Let collections find the garbage in the list; the list is empty then.

    One may not be enough: while another thread collects, `gc.collect` returns at once.
    """
    planted = weakref.ref(garbage.pop())
    gc.collect(0)
    while planted() is not None:
        gc.collect()


def planting(place: object, number: int, act: Callable[[], object]) -> Callable[..., Any]:
    """A trace function that has garbage found before the line of this number of a class or module.

    The outermost call alone counts lines: the finalizer's own calls go undisturbed.
    """
    file = sys.modules[getattr(place, "__module__", getattr(place, "__name__", ""))].__file__
    lines = itertools.count()

    def trace_lines(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != file:
            return None
        if event == "line" and next(lines) == number:
            find([Busy(act)])
        return trace_lines

    return trace_lines


def come_back_everywhere(
    place: object,
    begin: Callable[[], tuple[Callable[[], object], Callable[[], object], Callable[[], None]]],
) -> int:
    """Come back at each line in turn; gives how many lines there were.

    Args:
        place: the class or module whose lines they are.
        begin: gives the call, what the finalizer does, and what must hold afterwards.
    """
    for number in range(500):
        work, act, check = begin()
        acted: list[object] = []
        faults: list[BaseException] = []

        def run(
            number: int = number,
            work: Callable[[], object] = work,
            act: Callable[[], object] = act,
            acted: list[object] = acted,
            faults: list[BaseException] = faults,
        ) -> None:
            def act_once() -> None:
                act()
                acted.append(True)

            sys.settrace(planting(place, number, act_once))
            try:
                work()
            except BaseException as error:
                faults.append(error)
            finally:
                sys.settrace(None)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(SECONDS)
        assert not thread.is_alive(), f"it waits for itself, from line {number}"
        assert faults == []
        check()
        if not acted:
            return number
    raise AssertionError("too many lines")


@pytest.fixture
def context() -> Iterator[cudadrv.Context]:
    with emulator.session(devices=3):
        yield cudadrv.cuda_context_for(0)


@pytest.fixture(autouse=True)
def _unraisable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    told: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(repr(args.exc_value)))
    yield
    assert told == []


@pytest.mark.slow
def test_a_module_cache(context: cudadrv.Context) -> None:
    def begin() -> Any:
        cache, found = PtxModuleCache(), list[object]()

        def get() -> None:
            found.append(cache.get_or_compile(context, "f", lambda: SOURCE))

        def check() -> None:
            assert {id(module) for module in found} == {id(cache.get(context))}

        return get, get, check

    assert come_back_everywhere(PtxModuleCache, begin) > 15


@pytest.mark.slow
def test_a_keyed_module_cache(context: cudadrv.Context) -> None:
    def begin() -> Any:
        cache, found = KeyedPtxModuleCache(), list[object]()

        def get() -> None:
            found.append(cache.get_or_compile(context, 1, "f", lambda key: SOURCE))

        def check() -> None:
            assert {id(module) for module in found} == {id(cache.get(1, context))}
            assert len(cache) == 1

        return get, get, check

    assert come_back_everywhere(KeyedPtxModuleCache, begin) > 15


def test_images_in_memory() -> None:
    image = ptx.Image(ptx.Target.parse("compute_80"), PTX.encode())

    def begin() -> Any:
        images = MemoryImages(max_bytes=2 * len(PTX))

        def make(_: bool) -> Made:
            return Made(image, True)

        def use() -> None:
            made, _ = images.make_once("a", make)
            assert made is image
            assert images.get("a") in (image, None)
            images.make_once("b", make)
            images.make_once("c", make)

        def disturb() -> None:
            use()
            images.clear()
            use()

        def check() -> None:
            assert images.nbytes == len(PTX) * len(images) <= images.max_bytes
            assert not images._makings

        return use, disturb, check

    assert come_back_everywhere(MemoryImages, begin) > 50


def test_observers() -> None:
    def begin() -> Any:
        first, second = (compiling.observe(lambda verb: nullcontext()) for _ in range(2))
        entered: list[object] = []

        def work() -> None:
            with first:
                pass

        def act() -> None:
            entered.append(second.__enter__())

        def check() -> None:
            assert len(compiling._observers) == len(entered)
            if entered:
                second.__exit__(None, None, None)
            assert not compiling._observers

        return work, act, check

    assert come_back_everywhere(compiling, begin) > 4


def test_a_counter() -> None:
    def begin() -> Any:
        counter, added = Counter(), list[int]()

        def add() -> None:
            added.append(1)
            counter.add(hits=1, misses=2)
            counter.read()

        def check() -> None:
            assert counter.read() == {"hits": len(added), "misses": 2 * len(added)}

        return add, add, check

    assert come_back_everywhere(Counter, begin) > 5


def test_pauses_of_the_collector() -> None:
    def begin() -> Any:
        gc.enable()

        def pause() -> None:
            with collection_paused():
                pass

        def check() -> None:
            was_enabled = gc.isenabled()
            gc.enable()
            assert was_enabled

        return pause, pause, check

    assert come_back_everywhere(collection_paused, begin) > 5


def test_turns_of_a_pool() -> None:
    def begin() -> Any:
        pool, taken = DevicePool(), list[int]()

        def take() -> None:
            taken.append(pool.next_device().ordinal)

        return take, take, lambda: check(taken)

    def check(taken: list[int]) -> None:
        assert sorted(taken) == sorted(i % devices for i in range(len(taken)))

    devices = len(cudadrv.list_devices())
    assert come_back_everywhere(DevicePool, begin) > 3


def test_a_registry_of_modules() -> None:
    def begin() -> Any:
        registry = ModuleRegistry()

        def register() -> None:
            registry.register("f", SOURCE)

        def check() -> None:
            assert registry.names == ("f",)

        return register, register, check

    assert come_back_everywhere(ModuleRegistry, begin) > 3


def test_the_linear_algebra_of_a_stream(context: cudadrv.Context) -> None:
    def begin() -> Any:
        stream, found = context.new_stream(), list[object]()

        def get() -> None:
            found.append(LinearAlgebra.for_stream(stream))

        def check() -> None:
            assert len({id(each) for each in found}) == 1

        return get, get, check

    assert come_back_everywhere(LinearAlgebra, begin) > 4


def captured(context: cudadrv.Context) -> tuple[CapturedGraph, Any]:
    """A graph that adds 1, and the array; not closed, which would wait for a thread that hangs."""
    stream = context.new_stream()
    x = stream.zeros(1, np.uint32)
    kernel = context.load_module(PTX).kernel("bump")
    with stream.capture() as graph:
        kernel.launch(stream, LaunchConfig(1, 1), x)
    return CapturedGraph(graph, stream, (), (), None), x


def test_launching_a_captured_graph(context: cudadrv.Context) -> None:
    graph, x = captured(context)

    def check() -> None:
        assert graph.stream.to_host(x).tolist() == [graph.launch_count]

    count = come_back_everywhere(CapturedGraph, lambda: (graph.launch, graph.launch, check))
    assert count > 4
    assert graph.launch_count == 2 * count + 1


def test_closing_a_captured_graph_that_is_launched(context: cudadrv.Context) -> None:
    machine = cast(emulator.Emulator, current().api)

    def begin() -> Any:
        graph, _ = captured(context)

        def launch() -> None:
            try:
                graph.launch()
            except cudadrv.errors.ClosedError:
                graph.close()

        def check() -> None:
            graph.close()
            assert machine.live_objects()["executable graph"] == 0

        return launch, graph.close, check

    assert come_back_everywhere(CapturedGraph, begin) > 4


def test_vectors_of_sobol(context: cudadrv.Context) -> None:
    pytest.importorskip("scipy")

    def begin() -> Any:
        cache, found = SobolDvCache(context.new_stream()), list[object]()

        def get() -> None:
            found.append(cache.warmup(1))

        def check() -> None:
            assert {id(array) for array in found} == {id(cache.get(1))}

        return get, get, check

    assert come_back_everywhere(SobolDvCache, begin) > 10


def test_addresses_of_an_arena() -> None:
    def begin() -> Any:
        arena, taken = BumpArena(256, 1 << 16), list[int]()

        def take() -> None:
            taken.append(arena.take(100))
            arena.give(taken[-1])

        def check() -> None:
            assert len(set(taken)) == len(taken) == arena.given

        return take, take, check

    assert come_back_everywhere(BumpArena, begin) > 8
