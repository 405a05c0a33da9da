"""What garbage collections do to objects of the driver, and to those that finalizers save."""

from __future__ import annotations

import ast
import gc
import random
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import ClosedError, Stream, emulator
from cudadrv.driver import handle
from cudadrv.texture import CudaArray, Surface, Texture
from tests.bump_kernel import PTX

ROOT, ROOT_OF_PTX = Path(cudadrv.__file__).parent, Path(ptx.__file__).parent
# The plugin looks for what a test has left, which is a question to the collector.
# Leaks are looked for at the end of a program or test, by what its modules refer to.
MAY_ASK_THE_COLLECTOR = {ROOT / "testing", ROOT / "driver" / "reachable_numbers.py"}


@pytest.fixture
def machine() -> Iterator[emulator.Emulator]:
    with emulator.session() as machine:
        yield machine
        gc.collect()


class Saver:
    """Saves itself, and what it holds, from the collection that finds it."""

    def __init__(self, saved: list[Saver], held: list[Any]) -> None:
        self.saved, self.held, self.itself = saved, held, self

    def __del__(self) -> None:
        self.saved.append(self)


def save(held: list[Any]) -> list[Any]:
    """Have a collection find objects, and a finalizer save them."""
    saved: list[Saver] = []
    Saver(saved, held.copy())
    held.clear()
    gc.collect()
    return saved.pop().held


def everything(context: cudadrv.Context) -> list[Any]:
    stream = context.new_stream()
    array = stream.to_device(np.arange(16, dtype="u4"))
    texels = CudaArray(context, 9, np.float32, surface=True)
    borrowed = cudadrv.DeviceBuffer.borrowed(stream, array.ptr, array.nbytes, array)
    return [stream, array, stream.record(), texels, Texture(texels), Surface(texels), borrowed]


def test_objects_that_a_finalizer_saves_work_as_before(machine: emulator.Emulator) -> None:
    held = everything(cudadrv.cuda_context_for(0))
    random.Random(1).shuffle(held)
    held = save(held)
    (array,) = (each for each in held if isinstance(each, cudadrv.DeviceArray))
    (stream,) = (each for each in held if isinstance(each, Stream))
    assert stream.to_host(array).tolist() == list(range(16))
    (texture,) = (each for each in held if isinstance(each, Texture))
    assert texture.handle


@pytest.mark.parametrize("is_own", [False, True])
def test_objects_that_finalizers_save_twice_are_closed_and_all_goes(
    machine: emulator.Emulator, monkeypatch: pytest.MonkeyPatch, is_own: bool
) -> None:
    told: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: told.append(args.exc_value))
    for seed in range(20):
        context = cudadrv.Context.create(0) if is_own else cudadrv.cuda_context_for(0)
        held = everything(context)
        del context
        random.Random(seed).shuffle(held)
        held = save(save(held))
        (array,) = (each for each in held if isinstance(each, cudadrv.DeviceArray))
        (stream,) = (each for each in held if isinstance(each, Stream))
        with pytest.raises(ClosedError):
            stream.to_host(array)
        del array, stream
        held.clear()
        gc.collect()
    assert told == []
    left = machine.live_objects()
    assert (left["stream"], left["event"], left["array"]) == (0, 0, 0)
    assert cudadrv.memory.pool_info(cudadrv.Device.get(0)).used == 0
    assert left["context"] <= 1  # the primary one


@pytest.mark.parametrize("kind", ["event", "stream"])
def test_what_finalizers_save_twice_shares_nothing_with_later_objects(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("CUDADRV_KEEP_BLOCKS", "1")
    with emulator.session():
        stream = cudadrv.cuda_context_for(0).new_stream()
        made = stream.record if kind == "event" else stream.context.new_stream
        (saved,) = save(save([made()]))
        new = [made() for _ in range(3)]
        with pytest.raises(ClosedError, match="was destroyed"):
            saved.synchronize()
        assert len({int(each.handle) for each in new}) == 3


class Owner:
    """Another library's queue, which has objects of ours that were used on its stream."""

    def __init__(self, context: cudadrv.Context) -> None:
        self.theirs = context.new_stream()
        self.stream = context.external_stream(self)
        self.things: list[Any] = []

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, int(self.theirs.handle)


def allocated(owner: Owner, own: Stream) -> None:
    owner.things.append(owner.stream.zeros(4, "u4"))


def written(owner: Owner, own: Stream) -> None:
    array = own.zeros(4, "u4")
    owner.stream.fill(array, 1)
    owner.things.append(array)


def under_a_texture(owner: Owner, own: Stream) -> None:
    array = own.zeros(512, "f4")
    texture = Texture(array)
    owner.stream.fill(array, 1)
    owner.things += [array, texture]


@pytest.mark.parametrize("use", [allocated, written, under_a_texture])
def test_a_borrowed_stream_whose_owner_has_what_was_used_there_is_released(
    machine: emulator.Emulator, use: Callable[[Owner, Stream], None]
) -> None:
    context = cudadrv.cuda_context_for(0)
    owner, own = Owner(context), context.new_stream()
    use(owner, own)
    own.synchronize()
    gone = weakref.ref(owner)
    del owner
    for _ in range(2):
        gc.collect()
        context.synchronize()
    assert gone() is None


def rooted() -> int:
    return sum(each is not None for each in handle._live.values())


def test_nothing_stays_rooted_that_was_closed_or_dropped(machine: emulator.Emulator) -> None:
    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    module = context.load_module(PTX)
    gc.collect()
    before, keys = rooted(), len(handle._live)
    kept = everything(context)
    assert rooted() > before
    for each in kept:
        each.close()
    assert rooted() == before
    kept = everything(context)
    kept.clear()
    del each
    gc.collect()
    assert (rooted(), len(handle._live)) == (before, keys)
    module.close()
    stream.close()
    assert rooted() == before - 2
    del module, stream
    assert len(handle._live) == keys - 2


@pytest.mark.slow
def test_the_library_counts_no_references_and_queries_no_objects_of_the_collector() -> None:
    forbidden = {
        "getrefcount", "get_objects", "get_referents", "get_referrers", "gc.callbacks", "isenabled",
        "get_count", "get_stats", "get_threshold", "get_freeze_count", "is_finalized", "is_tracked",
    }  # fmt: skip
    found = set()
    for path in (*ROOT.rglob("*.py"), *ROOT_OF_PTX.rglob("*.py")):
        if not MAY_ASK_THE_COLLECTOR & {path, *path.parents}:
            tree = ast.parse(path.read_text())
            attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
            names = {"gc.callbacks" for node in attributes if ast.unparse(node) == "gc.callbacks"}
            names |= {node.attr for node in attributes}
            names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            found |= {(path.name, name) for name in names & forbidden}
    # A pause switches the collector on again only if it was on.
    assert found == {("collection.py", "isenabled")}


@pytest.mark.parametrize("is_ours", [False, True])
def test_memory_of_a_resource_outlives_its_closed_stream_in_a_collection(
    machine: emulator.Emulator, monkeypatch: pytest.MonkeyPatch, is_ours: bool
) -> None:
    told: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: told.append(args.exc_value))
    given: list[tuple[int, int]] = []

    class Resource:
        def __init__(self) -> None:
            self.pool = cudadrv.MemoryPool(0)
            self.arrays: list[Any] = []

        def allocate(self, nbytes: int, stream: cudadrv.memory.MemoryStream) -> int:
            return self.pool.allocate(nbytes, stream)

        def deallocate(
            self, address: int, nbytes: int, stream: cudadrv.memory.MemoryStream
        ) -> None:
            given.append((address, int(stream)))
            self.pool.deallocate(address, nbytes, stream)

    context = cudadrv.cuda_context_for(0)
    made = []
    for seed in range(20):
        stream = context.new_stream()
        resource = cudadrv.MemoryPool(0) if is_ours else Resource()
        with cudadrv.using_memory(resource):
            held: list[Any] = [stream.zeros(4, "u4") for _ in range(3)]
        made.append(held[0].ptr)
        stream.close()
        held.append(held)
        random.Random(seed).shuffle(held)
        if isinstance(resource, Resource):
            resource.arrays += held
        del held, resource, stream
        gc.collect()
    assert told == []
    assert is_ours or len(given) == 60
    context.synchronize()
    assert machine.live_objects()["stream"] == 0


def test_memory_goes_though_a_collection_has_destroyed_spare_events_of_its_streams(
    machine: emulator.Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: told.append(args.exc_value))
    context = cudadrv.cuda_context_for(0)
    a, b = context.new_stream(), context.new_stream()
    used = cudadrv.memory.pool_info(context.device).used
    array = a.zeros(4, "u4")
    b.fill(array, 1)
    assert len(a._handle.spare) == 1
    a._handle.spare[0]._destroy_and_report()  # as a collection does, in any order
    array.close()
    assert told == []
    assert cudadrv.memory.pool_info(context.device).used == used


@pytest.mark.parametrize("uses", [1, 2])
def test_memory_goes_though_a_collection_has_destroyed_its_streams(
    machine: emulator.Emulator, uses: int
) -> None:
    context = cudadrv.cuda_context_for(0)
    streams = [context.new_stream() for _ in range(uses)]
    used = cudadrv.memory.pool_info(context.device).used
    array = streams[0].zeros(4, "u4")
    for stream in streams[1:]:
        stream.fill(array, 1)
    for stream in streams:
        stream._handle._destroy_and_report()  # as a collection does, in any order
    array.close()
    assert cudadrv.memory.pool_info(context.device).used == used
    streams.clear()
    del stream, array  # a free-threaded build destroys a stream with the last that refers to it
    assert machine.live_objects()["stream"] == 0
