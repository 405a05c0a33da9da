"""Who owns what a public function returns: leaving its block leaves the owner's object open.

Each public function that returns an object with `close` stands in one of four tables.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray, DeviceBuffer
from cudadrv.client import SobolDvCache
from cudadrv.driver.driver_selection import current
from cudadrv.driver.handle import Closeable
from cudadrv.memory import DriverMemory, MemoryStream
from cudadrv.runtime import KeyedPtxModuleCache
from cudadrv.tensor_map import TensorMap
from cudadrv.texture import MipmappedArray
from tests.documents.reference import listed, named
from tests.short_cases import few

SOURCE: Final = 'extern "C" { __device__ int table[4]; __global__ void k(int* x) { *x = 1; } }'


@dataclass(frozen=True)
class Theirs:
    """An object of another library over one of ours, by one of the protocols."""

    ours: Any
    protocol: str

    def __getattr__(self, name: str) -> Any:
        if name != self.protocol and not (name == "__dlpack_device__" and "dlpack" in name):
            raise AttributeError(name)
        return getattr(object.__getattribute__(self, "ours"), name)


class Lab:
    """A stream, an array on it, and the other owners."""

    def __init__(self, context: cudadrv.Context) -> None:
        self.context = context
        self.stream = context.new_stream()
        self.array = cast("DeviceArray[np.int32]", self.stream.zeros((2, 4), np.int32))
        self.base = self.array.reshape(8)
        self.buffer = self.stream.alloc(64)
        self.module = context.compile(SOURCE)
        self.released: list[int] = []
        if np.array(self.stream.to_host(self.array)).any():
            raise AssertionError

    def adopted(self) -> DeviceBuffer:
        place = MemoryStream(self.stream, self.stream._handle)
        memory = DriverMemory()

        def release(address: int, nbytes: int, on: MemoryStream) -> None:
            self.released.append(address)
            memory.deallocate(address, nbytes, on)

        return DeviceBuffer.adopted(self.stream, memory.allocate(64, place), 64, release)

    def check(self) -> None:
        """All owners are open and work."""
        assert not self.stream.closed
        assert not self.array.closed
        assert not self.buffer.closed
        assert not self.module.closed
        self.stream.fill(self.array, 3)
        assert self.stream.to_host(self.array).tolist() == [[3] * 4] * 2
        self.stream.fill(self.buffer, 1)
        out = self.stream.zeros(1, np.int32)
        self.module.kernel("k").launch(self.stream, cudadrv.LaunchConfig(1, 1), out)
        assert self.stream.to_host(out).tolist() == [1]
        table = self.module.global_array("table", 4, np.int32)
        assert self.stream.to_host(table).tolist() == [0] * 4


def _level(lab: Lab) -> Closeable:
    mipmapped: MipmappedArray[Any] = MipmappedArray(lab.context, (8, 8), np.float32)
    with mipmapped.level(0):
        pass
    assert not mipmapped.closed
    return mipmapped.level(0)


VIEWS: Final[dict[str, list[Callable[[Lab], Closeable]]]] = {
    "cudadrv.Context.external_stream": [
        lambda lab: lab.context.external_stream(lab.stream),
        lambda lab: lab.context.external_stream(lab.stream.handle),
        lambda lab: lab.context.external_stream(int(lab.stream.handle)),
        lambda lab: lab.context.external_stream(Theirs(lab.stream, "__cuda_stream__")),
        lambda lab: lab.context.external_stream(lab.context.external_stream(lab.stream)),
        lambda lab: lab.context.external_stream(lab.context.new_stream_pool(1).next_stream()),
    ],
    "cudadrv.Stream.import_array": [
        lambda lab: lab.stream.import_array(lab.array),
        lambda lab: lab.stream.import_array(lab.array[1:]),
        lambda lab: lab.stream.import_array(Theirs(lab.array, "__cuda_array_interface__")),
        lambda lab: lab.stream.import_array(Theirs(lab.array, "__dlpack__")),
        lambda lab: lab.context.external_stream(lab.stream).import_array(lab.array),
    ],
    "cudadrv.DeviceBuffer.borrowed": [
        lambda lab: DeviceBuffer.borrowed(lab.stream, lab.array.ptr, 32, lab.array),
        lambda lab: DeviceBuffer.borrowed(lab.stream, lab.array.ptr, 32, None, is_read_only=True),
        lambda lab: DeviceArray(
            DeviceBuffer.borrowed(lab.stream, lab.buffer.ptr, 64, lab.buffer), 16, np.int32
        )[2:],
    ],
    "cudadrv.DeviceArray.T": [lambda lab: lab.array.T],
    "cudadrv.DeviceArray.buffer": [lambda lab: lab.array.buffer],
    "cudadrv.DeviceArray.origin": [
        lambda lab: lab.array.origin,
        lambda lab: lab.array[1:].origin,
        lambda lab: lab.stream.import_array(lab.array).origin,
    ],
    "cudadrv.DeviceArray.reshape": [lambda lab: lab.array.reshape(8)],
    "cudadrv.DeviceArray.transpose": [lambda lab: lab.array.transpose(1, 0)],
    "cudadrv.DeviceArray.view": [lambda lab: lab.array.view(np.uint32)],
    "cudadrv.DeviceBuffer.buffer": [lambda lab: lab.buffer.buffer],
    "cudadrv.Stream.contiguous": [lambda lab: lab.stream.contiguous(lab.array)],
    "cudadrv.Module.global_array": [lambda lab: lab.module.global_array("table", 4, np.int32)],
    "cudadrv.texture.MipmappedArray.level": [_level],
}
"""Results that another object owns: closing one, or leaving its block, leaves the owner open."""


@pytest.fixture
def lab(context: cudadrv.Context) -> Lab:
    return Lab(context)


@pytest.mark.parametrize(
    ("name", "number"), [(name, n) for name, makers in VIEWS.items() for n in range(len(makers))]
)
@pytest.mark.parametrize("end", ["block", *few(["close", "drop"], 0)])
def test_the_owner_stays_open(lab: Lab, name: str, number: int, end: str) -> None:
    make = VIEWS[name][number]
    lent = make(lab)
    if end == "block":
        with lent:
            pass
    elif end == "close":
        lent.close()
    else:
        del lent
        lab.check()
        return
    assert lent.closed
    lab.check()
    again = make(lab)
    assert not again.closed
    lab.check()


def test_an_adopted_buffer_releases_once_and_after_its_last_view(lab: Lab) -> None:
    buffer = lab.adopted()
    with buffer.buffer:
        pass
    assert not lab.released
    with buffer:
        pass
    lab.stream.synchronize()
    buffer.close()
    assert len(lab.released) == 1
    del buffer
    lab.check()
    assert len(lab.released) == 1


def test_an_own_stream_that_is_given_lives_until_the_result_is_closed(lab: Lab) -> None:
    for form in (lambda s: s, lambda s: s.handle, lambda s: int(s.handle)):
        own = lab.context.new_stream()
        lent = lab.context.external_stream(form(own))
        own.close()
        with lent:
            assert lent.to_host(lent.zeros(2, np.int32)).tolist() == [0, 0]
    lab.check()


NEVER: Final[dict[str, Callable[[Lab], Closeable]]] = {
    "cudadrv.cuda_context_for": lambda lab: cudadrv.cuda_context_for(0),
    "cudadrv.Context.default_stream": lambda lab: lab.context.default_stream,
    "cudadrv.DeviceArray.context": lambda lab: lab.array.context,
    "cudadrv.DevicePool.context": lambda lab: _pool().context(0),
    "cudadrv.DevicePool.context_at": lambda lab: _pool().context_at(0),
}
"""Results whose `close` does nothing: a primary context, and a default stream."""


def _pool() -> cudadrv.DevicePool:
    return cudadrv.DevicePool(cudadrv.list_devices()[:1])


@pytest.mark.parametrize("name", NEVER)
def test_leaving_the_block_of_a_primary_context_or_a_default_stream_closes_nothing(
    lab: Lab, name: str
) -> None:
    lent = NEVER[name](lab)
    with lent:
        pass
    assert not lent.closed
    for form in (lab.context.default_stream, 0, 1):
        with lab.context.external_stream(form) as stream:
            pass
        assert stream is lab.context.default_stream
        assert not stream.closed
    lab.check()


@contextmanager
def _sobol(lab: Lab) -> Iterator[Callable[[], Closeable]]:
    pytest.importorskip("scipy")
    cache = SobolDvCache(lab.stream)
    yield lambda: cache.warmup(2)


@contextmanager
def _module_cache(lab: Lab) -> Iterator[Callable[[], Closeable]]:
    cache = cudadrv.PtxModuleCache()
    yield lambda: cache.get_or_compile(lab.context, "label", SOURCE)


@contextmanager
def _keyed_cache(lab: Lab) -> Iterator[Callable[[], Closeable]]:
    cache = KeyedPtxModuleCache()
    yield lambda: cache.get_or_compile(lab.context, 1, "label", SOURCE)


@contextmanager
def _library(lab: Lab) -> Iterator[Callable[[], Closeable]]:
    library = cudadrv.KernelLibrary({"k.cu": SOURCE})
    yield lambda: library.module(lab.context)


SHARED: Final[dict[str, Callable[[Lab], AbstractContextManager[Callable[[], Closeable]]]]] = {
    "cudadrv.client.SobolDvCache.warmup": _sobol,
    "cudadrv.PtxModuleCache.get_or_compile": _module_cache,
    "cudadrv.runtime.KeyedPtxModuleCache.get_or_compile": _keyed_cache,
    "cudadrv.KernelLibrary.module": _library,
}
"""Results that a cache shares: `close` closes them for all, and the cache then makes a new one."""


@pytest.mark.parametrize("name", SHARED)
def test_a_cache_makes_a_closed_object_anew(lab: Lab, name: str) -> None:
    with SHARED[name](lab) as take:
        first = take()
        assert take() is first
        with first:
            pass
        assert first.closed
        assert not take().closed
    lab.check()


# They make an object that the result owns.
NEW: Final = """
cudadrv.Context.compile cudadrv.Context.compile_nvvm cudadrv.Context.create
cudadrv.Context.create_green cudadrv.Context.link cudadrv.Context.load_module
cudadrv.Context.new_graph cudadrv.Context.new_stream cudadrv.CudaClient.record_event_on_compute
cudadrv.DeviceArena.alloc cudadrv.DeviceArena.borrow cudadrv.Graph.clone
cudadrv.Graph.instantiate cudadrv.Stream.alloc cudadrv.Stream.empty cudadrv.Stream.empty_pitched
cudadrv.Stream.record cudadrv.Stream.to_device cudadrv.Stream.zeros
cudadrv.driver.DefaultStream.record cudadrv.texture.CudaArray.from_host
cudadrv.texture.CudaArray.copy_to cudadrv.testing.strategies.device_arrays
cudadrv.testing.strategies.streams
"""
# They own the object of a descriptor or of another process, or map it: test_foreign_handles.py
# (descriptors that are opened twice, closed, or of another file later), test_ipc_memory.py,
# test_virtual_memory.py, test_external_resources.py, test_multicast.py and test_opengl.py.
OPENED: Final = """
cudadrv.DeviceBuffer.adopted cudadrv.MemoryPool.from_descriptor
cudadrv.interop.ExternalMemory.buffer cudadrv.ipc.IpcEventHandle.open
cudadrv.ipc.IpcMemoryHandle.open cudadrv.memory.MulticastObject.from_descriptor
cudadrv.memory.MulticastObject.from_fabric cudadrv.memory.PhysicalMemory.from_descriptor
cudadrv.memory.PhysicalMemory.from_fabric cudadrv.opengl.OpenGLBuffer.map
cudadrv.opengl.OpenGLImage.map cudadrv.Stream.in_place
"""
# They return an object that another one has, the same each time: closing it closes it for all.
MEMBERS: Final = """
cudadrv.CudaClient.module cudadrv.PtxModuleCache.get cudadrv.StreamPool.next_stream
cudadrv.client.SobolDvCache.get cudadrv.graph.ConditionalNode.body cudadrv.pool.Tile.stream
cudadrv.runtime.KeyedPtxModuleCache.get cudadrv.tensor_map.TensorMap.array
cudadrv.texture.CudaArray.of_level
"""


def _is_closeable(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, Closeable)


def _returning_closeables() -> set[str]:
    def kinds(cls: type) -> Iterator[str]:
        each: type
        for each in cls.__subclasses__():
            yield each.__name__
            yield from kinds(each)

    values = {name: named(name) for name in set(listed()) if name.startswith("cudadrv.")}
    names = "|".join({*kinds(Closeable), "AnyDeviceArray"})
    functions: dict[int, str] = {}
    for name, value in sorted(values.items()):
        members = {name: value} if inspect.isfunction(value) else {}
        pattern = re.compile(rf"\b(?:{names}{'|Self' * _is_closeable(value)})\b")
        if inspect.isclass(value):
            members = {
                f"{name}.{each}": inspect.getattr_static(value, each)
                for each in dir(value)
                if not each.startswith("_")
            }
        for full, member in members.items():
            function = getattr(member, "__func__", getattr(member, "fget", member))
            if inspect.isfunction(function) and pattern.search(
                str(function.__annotations__.get("return", ""))
            ):
                functions.setdefault(id(function), full)
    return set(functions.values())


def test_each_public_function_that_returns_an_object_with_close_is_in_a_table() -> None:
    known = {*VIEWS, *NEVER, *SHARED, *NEW.split(), *OPENED.split(), *MEMBERS.split()}
    found = _returning_closeables()
    assert found <= known, sorted(found - known)
    assert known <= found, sorted(known - found)


def test_a_tensor_map_is_of_its_array(lab: Lab) -> None:
    if not current().is_emulated and lab.context.device.compute_capability < (9, 0):
        pytest.skip("needs compute capability 9.0")
    matrix = lab.stream.zeros((8, 8), np.float32)
    assert TensorMap(matrix, (8, 8)).array is matrix
