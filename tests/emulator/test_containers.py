"""Public objects with elements: `len`, iteration, `in` and subscripts agree."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, cast

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig, emulator
from cudadrv.errors import KernelNotFoundError, NotSupportedError
from tests.documents.reference import named, names_of_cudadrv

SOURCE: Final = """
template <typename T> __global__ void scale(T* x) { x[0] *= 2; }
extern "C" __global__ void k(int* x) { *x = 1; }
"""
PARTS: Final = ("__len__", "__iter__", "__contains__", "__getitem__")
# Classes by the parts that they have. Sizes of caches alone have no other part.
EXPECTED: Final = {
    "DeviceArray": ("__len__", "__iter__", "__getitem__"),
    "DevicePool": ("__len__", "__iter__"),
    "KernelAttributes": ("__getitem__",),
    "KeyedPtxModuleCache": ("__len__",),
    "SobolDvCache": ("__len__",),
    "StreamPool": ("__len__", "__iter__", "__getitem__"),
}


def test_each_public_class_with_elements_has_a_row() -> None:
    found = {}
    for full in names_of_cudadrv():
        value = named(full)
        if isinstance(value, type) and not issubclass(value, (tuple, str, int)):
            own = [
                part
                for part in PARTS
                if any(
                    part in vars(base) and vars(base)[part] is not None
                    for base in value.__mro__
                    if base.__module__.startswith("cudadrv")
                )
            ]
            if own and not full.startswith("cudadrv.emulator."):
                found[value.__name__] = tuple(own)
    assert found == EXPECTED


def test_counters_are_a_collection_of_kernels() -> None:
    with emulator.session() as machine, machine.counting() as counters:
        assert (len(counters), list(counters), "k" in counters) == (0, [], False)
        stream = cudadrv.cuda_context_for(0).new_stream()
        x = stream.zeros(1, np.int32)
        module = stream.context.compile(SOURCE, name_expressions=["scale<int>"])
        for name in ("scale<int>", "k", "k"):
            module.kernel(name).launch(stream, LaunchConfig(1, 1), x)
        stream.synchronize()
    names = ["scale<int>", "k"]
    assert (len(counters), list(counters)) == (2, names)
    assert all(name in counters for name in [*names, counters.launches[0].symbol])
    assert [name in counters for name in ("scale", "", 5, None)] == [False] * 4
    assert {name: counters[name] for name in counters} == counters.kernels
    for missing in ("scale", ""):
        with pytest.raises(KernelNotFoundError):
            counters[missing]
    assert isinstance(counters, Collection)


def test_pools_are_collections_and_attributes_by_number_are_none() -> None:
    with emulator.session(2):
        context = cudadrv.cuda_context_for(0)
        streams = context.new_stream_pool(3)
        assert [streams[n] for n in range(len(streams))] == list(streams)
        assert streams[-1] in streams
        assert context.new_stream() not in streams
        pool = cudadrv.DevicePool()
        pairs = list(pool)
        assert len(pairs) == len(pool) == 2
        assert all(pair in pool for pair in pairs)
        attributes = cast(Any, context.compile(SOURCE).kernel("k").attributes)
        for use in (iter, list, lambda each: 0 in each):
            with pytest.raises(TypeError):
                use(attributes)


def with_driver_memory(stream: cudadrv.Stream) -> object:
    with cudadrv.using_memory(cudadrv.memory.DriverMemory()):
        return stream.zeros(3, np.float32)


WAYS: Final[dict[str, Callable[[cudadrv.Stream], object]]] = {
    "zeros": lambda stream: stream.zeros(3, np.float32),
    "allocator": lambda stream: cudadrv.memory.CudaAllocator(stream).allocate(64),
    "pool": lambda stream: cudadrv.MemoryPool(stream.context.device),
    "driver memory": with_driver_memory,
}


@pytest.mark.parametrize("way", WAYS)
def test_without_memory_pools_the_error_names_the_resource_that_needs_none(way: str) -> None:
    with emulator.session() as machine:
        stream = cudadrv.cuda_context_for(0).new_stream()
        for call in ("cuMemAllocAsync", "cuMemAllocFromPoolAsync", "cuMemPoolCreate"):
            machine.fail(call, times=None, with_=801)
        with pytest.raises(NotSupportedError, match=r"using_memory\(memory.UnpooledMemory\(\)\)"):
            WAYS[way](stream)
        with cudadrv.using_memory(cudadrv.memory.UnpooledMemory()):
            assert stream.to_host(stream.zeros(3, np.float32)).tolist() == [0, 0, 0]
