"""What is interrupted: the public operations, each with what must hold afterwards.

An operation is a function of a `Place`. It prepares, and gives the act that is interrupted and the
check that follows, which gets whether the act came to its end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

import cudadrv
import ptx
from cudadrv import LaunchConfig
from cudadrv.memory.reuse.allocator import CudaAllocator
from cudadrv.memory.reuse.arena import DeviceArena
from cudadrv.runtime.probe import GpuRuntime
from tests.bump_kernel import PTX

N: Final = 16
LARGE: Final = 16 << 20
SOURCE: Final = 'extern "C" __global__ void bump(int* x) { x[0] += 1; }'

Act: TypeAlias = Callable[[], object]
Check: TypeAlias = Callable[[bool], None]
Operation: TypeAlias = Callable[["Place"], tuple[Act, Check]]


class Place:
    """Where operations run.

    Attributes:
        context: of the first device.
        stream: a stream of it, new for each attempt.
        other: another stream of it.
        far: a stream of the second device, or of the first where there is one.
        bump: a kernel that adds 1 to the first number of an array of int32.
        folder: for files.
        serial: a number of each attempt.
    """

    _serials: Final = itertools.count(1)

    def __init__(self, folder: Path, modules: list[cudadrv.Module]) -> None:
        self.context = cudadrv.cuda_context_for(0)
        self.stream = self.context.new_stream()
        self.other = self.context.new_stream()
        last = cudadrv.cuda_context_for(min(1, len(cudadrv.list_devices()) - 1))
        self.far = last.new_stream()
        self.context.bind()
        self.bump = modules[0].kernel("bump")
        self.folder = folder
        self.serial = next(self._serials)

    def close(self) -> None:
        """Close the streams."""
        for stream in (self.stream, self.other, self.far):
            stream.close()


def _numbers(place: Place, count: int = N) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.arange(count, dtype=np.int32) + place.serial


def _whole(found: np.ndarray[Any, Any], *may_be: object) -> None:
    """Each element is of one of the values that it may have."""
    right = np.zeros(found.shape, bool)
    for value in may_be:
        right |= found == value
    assert right.all(), f"{np.count_nonzero(~right)} of {found.size} elements are wrong"


def upload(place: Place, count: int = N) -> tuple[Act, Check]:
    stream, source = place.stream, _numbers(place, count)
    target = stream.zeros(count, np.int32)

    def check(done: bool) -> None:
        _whole(stream.to_host(target), source, *(() if done else (0,)))

    return lambda: stream.copy(target, source), check


def download(place: Place, count: int = N) -> tuple[Act, Check]:
    stream, numbers = place.stream, _numbers(place, count)
    source, target = stream.to_device(numbers), np.zeros(count, np.int32)
    stream.synchronize()

    def check(done: bool) -> None:
        then = target.copy()
        _whole(target, numbers, *(() if done else (0,)))
        stream.fill(source, -1)
        stream.synchronize()
        assert np.array_equal(then, target), "the array was written after the interrupt"

    return lambda: stream.to_host(source, target), check


def large_upload(place: Place) -> tuple[Act, Check]:
    return upload(place, LARGE // 4)


def large_download(place: Place) -> tuple[Act, Check]:
    return download(place, LARGE // 4)


def pinned_copies(place: Place) -> tuple[Act, Check]:
    stream, numbers = place.stream, _numbers(place)
    array = stream.zeros(N, np.int32)

    def act() -> None:
        source, target = cudadrv.pinned_empty(N, np.int32), cudadrv.pinned_empty(N, np.int32)
        source[...] = numbers
        stream.copy(array, source)
        stream.to_host(array, target)
        assert np.array_equal(target, numbers)

    def check(done: bool) -> None:
        _whole(stream.to_host(array), numbers, *(() if done else (0,)))

    return act, check


def managed(place: Place) -> tuple[Act, Check]:
    def act() -> None:
        array = cudadrv.managed_empty(N, np.int32)
        array[...] = 1

    return act, lambda done: None


def fill(place: Place) -> tuple[Act, Check]:
    stream = place.stream
    array = stream.zeros(N, np.int32)

    def check(done: bool) -> None:
        _whole(stream.to_host(array), place.serial, *(() if done else (0,)))

    return lambda: stream.fill(array, place.serial), check


def allocate(place: Place) -> tuple[Act, Check]:
    def act() -> None:
        buffer = place.stream.alloc(1000)
        array = place.stream.zeros(N, np.int32)
        buffer.close()
        del array

    return act, lambda done: None


def other_stream(place: Place) -> tuple[Act, Check]:
    """A use on a second stream, which waits for the first."""
    array = place.stream.to_device(_numbers(place))

    def act() -> None:
        place.bump.launch(place.other, LaunchConfig(1, 1), array)
        place.bump.launch(place.stream, LaunchConfig(1, 1), array)

    def check(done: bool) -> None:
        found = int(place.stream.to_host(array)[0]) - place.serial
        assert found == 2 if done else found in (0, 1, 2)

    return act, check


def unordered(place: Place) -> tuple[Act, Check]:
    array = place.stream.zeros(N, np.int32)

    def act() -> None:
        with place.stream.unordered():
            place.stream.fill(array, 1)

    def check(done: bool) -> None:
        assert not place.stream._box.unordered

    return act, check


def peer_copy(place: Place) -> tuple[Act, Check]:
    numbers = _numbers(place)
    source, target = place.stream.to_device(numbers), place.far.zeros(N, np.int32)

    def check(done: bool) -> None:
        _whole(place.far.to_host(target), numbers, *(() if done else (0,)))

    return lambda: place.far.copy(target, source), check


def launch(place: Place) -> tuple[Act, Check]:
    stream, config = place.stream, LaunchConfig(1, 1)
    array = stream.to_device(_numbers(place))

    def act() -> None:
        for _ in range(3):
            place.bump.launch(stream, config, array)
        launcher = place.bump.bind(stream, config)
        launcher(array)
        launcher(array)

    def check(done: bool) -> None:
        found = int(stream.to_host(array)[0]) - place.serial
        assert found == 5 if done else 0 <= found <= 5

    return act, check


def host_function(place: Place) -> tuple[Act, Check]:
    called: list[int] = []

    def check(done: bool) -> None:
        place.stream.synchronize()
        assert called == [1] or not (done or called)

    return lambda: place.stream.call_on_host(called.append, 1), check


def streams(place: Place) -> tuple[Act, Check]:
    def act() -> None:
        with place.context.new_stream(priority=-1) as stream:
            stream.synchronize()

    return act, lambda done: None


def events(place: Place) -> tuple[Act, Check]:
    def act() -> None:
        with cudadrv.Event(place.context) as event:
            event.record(place.stream)
            place.other.wait(event)
            place.other.wait(place.stream)
            event.synchronize()

    return act, lambda done: None


def contexts(place: Place) -> tuple[Act, Check]:
    def act() -> None:
        with cudadrv.Context.create(0) as context, context.new_stream() as stream:
            stream.to_host(stream.zeros(N, np.int32))

    return act, lambda done: None


def capture(place: Place) -> tuple[Act, Check]:
    stream, other = place.stream, place.other
    array = stream.zeros(N, np.int32)

    def act() -> None:
        before = stream.zeros(N, np.int32)
        with stream.capture() as graph:
            del before
            other.wait(stream)
            place.bump.launch(other, LaunchConfig(1, 1), array)
            born = stream.zeros(N, np.int32)
            stream.wait(other)
            del born
        with graph, graph.instantiate() as executable:
            executable.launch(stream)
            executable.launch(other)

    def check(done: bool) -> None:
        assert not stream.capturing
        assert not other.capturing
        found = int(stream.to_host(array)[0])
        assert found == 2 if done else found in (0, 1, 2)

    return act, check


def graph_update(place: Place) -> tuple[Act, Check]:
    stream, array = place.stream, place.stream.zeros(N, np.int32)

    def captured(value: int) -> cudadrv.Graph:
        with stream.capture() as graph:
            stream.fill(array, value)
        return graph

    def act() -> None:
        with captured(1).instantiate() as executable:
            executable.update(captured(2))
            executable.launch(stream)

    def check(done: bool) -> None:
        assert not stream.capturing
        _whole(stream.to_host(array), 2, *(() if done else (0,)))

    return act, check


def client_capture(place: Place) -> tuple[Act, Check]:
    client = cudadrv.CudaClient(0)
    stream, allocator = client.stream, client.allocator
    array = stream.zeros(N, np.int32)

    def work(_: object) -> None:
        address = allocator.allocate(1024)
        place.bump.launch(stream, LaunchConfig(1, 1), array)
        allocator.deallocate(address, 1024)
        allocator.allocate(512)

    def act() -> None:
        with client.capture_graph((), (array,), work, 1 << 16) as graph:
            graph.launch()
        with client.capture_graph((), (array,), work) as graph:
            graph.launch()

    def check(done: bool) -> None:
        assert not stream.capturing
        assert not allocator.is_frozen
        assert not allocator.has_arena
        found = int(stream.to_host(array)[0])
        assert found == 2 if done else found in (0, 1, 2)
        address = allocator.allocate(1024)
        allocator.deallocate(address, 1024)
        allocator.reset()

    return act, check


def allocator(place: Place) -> tuple[Act, Check]:
    own = CudaAllocator(place.stream, cap_bytes=4096)

    def act() -> None:
        addresses = [own.allocate(1024) for _ in range(2)]
        for address in addresses:
            own.deallocate(address, 1024)
        own.deallocate(own.allocate(8192), 8192)
        own.reset()

    def check(done: bool) -> None:
        # Addresses are numbers: what an interrupt kept from the caller, he cannot give back.
        for address, nbytes in own._live.copy().items():
            own.deallocate(address, nbytes)
        own.reset()
        assert own.statistics().cached_bytes == 0

    return act, check


def arena(place: Place) -> tuple[Act, Check]:
    own = DeviceArena(max_cached_bytes=1 << 12)

    def act() -> None:
        for stream in (place.stream, place.other):
            first, second = own.alloc(stream, 100), own.alloc(stream, 1000)
            own.release(*first)
            own.release(*second)
        own.trim()

    def check(done: bool) -> None:
        bucket, slab = own.alloc(place.stream, 100)
        own.release(bucket, slab)
        own.close()
        assert own.statistics().held_bytes == 0 or not done

    return act, check


def trace(place: Place) -> tuple[Act, Check]:
    array = place.stream.zeros(N, np.int32)
    api = place.context.device.driver.api

    def act() -> None:
        with cudadrv.trace(place.folder / "trace.json") as recording, recording.span("fill"):
            place.stream.fill(array, 1)

    def check(done: bool) -> None:
        assert place.context.device.driver.api is api
        _whole(place.stream.to_host(array), 1, *(() if done else (0,)))

    return act, check


def textures(place: Place) -> tuple[Act, Check]:
    numbers = np.arange(N, dtype=np.float32)

    def act() -> None:
        with cudadrv.CudaArray(place.context, N, np.float32, surface=True) as array:
            array.copy_from(place.stream, numbers)
            with cudadrv.Texture(array), cudadrv.Surface(array):
                found = np.zeros_like(numbers)
                array.copy_to(place.stream, found)
                assert np.array_equal(found, numbers)
        with cudadrv.MipmappedArray(place.context, (8, 8), np.float32) as levels:
            levels.level(1)

    return act, lambda done: None


def modules(place: Place) -> tuple[Act, Check]:
    def act() -> None:
        with place.context.load_module(PTX) as module:
            module.kernel("bump")

    return act, lambda done: None


def compile_cold(place: Place) -> tuple[Act, Check]:
    text = f"{SOURCE} // {place.serial}"

    def check(done: bool) -> None:
        assert ptx.compile(text, name="cold.cu").data

    return lambda: ptx.compile(text, name="cold.cu"), check


def compile_warm(place: Place) -> tuple[Act, Check]:
    ptx.compile(SOURCE)

    def act() -> None:
        with place.context.compile(SOURCE) as module:
            module.kernel("bump")

    def check(done: bool) -> None:
        assert ptx.compile(SOURCE).data

    return act, check


def scatter(place: Place) -> tuple[Act, Check]:
    devices = [device.info() for device in cudadrv.list_devices()]
    runtime = GpuRuntime(devices=devices, policy=cudadrv.GpuDispatchPolicy())
    items = np.zeros(1000, np.int32)

    def work(ordinal: int, tile: np.ndarray[Any, np.dtype[np.int32]]) -> None:
        stream = cudadrv.current_tile().stream
        array = stream.to_device(tile)
        stream.fill(array, place.serial)
        stream.to_host(array, tile)

    def check(done: bool) -> None:
        then = items.copy()
        _whole(items, place.serial, *(() if done else (0,)))
        cudadrv.scatter_batched(runtime, items, work)
        _whole(items, place.serial)
        assert then.size

    return lambda: cudadrv.scatter_batched(runtime, items, work), check


OPERATIONS: Final[dict[str, Operation]] = {
    "upload": upload,
    "download": download,
    "upload of 16 MiB": large_upload,
    "download of 16 MiB": large_download,
    "copies of pinned arrays": pinned_copies,
    "managed arrays": managed,
    "fill": fill,
    "allocations": allocate,
    "use on another stream": other_stream,
    "unordered": unordered,
    "copy between devices": peer_copy,
    "launches": launch,
    "host function": host_function,
    "streams": streams,
    "events": events,
    "contexts": contexts,
    "capture and graphs": capture,
    "update of a graph": graph_update,
    "captures of a client": client_capture,
    "allocator": allocator,
    "arena": arena,
    "trace": trace,
    "textures and arrays": textures,
    "modules": modules,
    "compile, cold": compile_cold,
    "compile, warm": compile_warm,
    "scatter": scatter,
}

HUGE: Final = 64 << 20


def huge_upload(place: Place) -> tuple[Act, Check]:
    return upload(place, HUGE // 4)


def huge_download(place: Place) -> tuple[Act, Check]:
    return download(place, HUGE // 4)


LONG: Final[dict[str, Operation]] = {
    "upload of 64 MiB": huge_upload,
    "download of 64 MiB": huge_download,
    "scatter": scatter,
    "compile, cold": compile_cold,
    "capture and graphs": capture,
    "captures of a client": client_capture,
    "trace": trace,
}
"""What is interrupted at random moments."""
