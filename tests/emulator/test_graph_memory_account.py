"""What the driver tells of the memory that graphs take."""

from __future__ import annotations

import pytest

from cudadrv.driver._api import CUdevice, CUdeviceptr, CUgraphExec
from cudadrv.emulator import Emulator

from .calls import LEGACY, code, ok
from .handles import RELAXED, a_stream

USED, USED_HIGH, RESERVED, RESERVED_HIGH = range(4)


@pytest.fixture
def api(in_either_order: Emulator) -> Emulator:
    return in_either_order


def account(api: Emulator) -> list[int]:
    device = CUdevice(0)
    return [int(ok(api.cuDeviceGetGraphMemAttribute(device, each))) for each in range(4)]


def allocating(api: Emulator, *, frees: bool) -> tuple[CUgraphExec, int]:
    """A graph that allocates 1024 bytes, which it frees or leaves to others; and where."""
    stream = a_stream(api)
    ok(api.cuStreamBeginCapture(stream, RELAXED))
    memory = ok(api.cuMemAllocAsync(1024, stream))
    if frees:
        ok(api.cuMemFreeAsync(memory, stream))
    return ok(api.cuGraphInstantiate(ok(api.cuStreamEndCapture(stream)), 0)), int(memory)


def test_memory_counts_from_the_first_launch_until_it_is_trimmed(
    api: Emulator,
) -> None:
    graph, _ = allocating(api, frees=True)
    assert account(api) == [0, 0, 0, 0]
    ok(api.cuGraphLaunch(graph, LEGACY))
    ok(api.cuCtxSynchronize())
    assert account(api) == [1024, 1024, 1024, 1024]  # freed, and still mapped by the graph
    ok(api.cuDeviceGraphMemTrim(CUdevice(0)))
    assert account(api) == [0, 1024, 0, 1024]
    for mark in (USED_HIGH, RESERVED_HIGH):
        ok(api.cuDeviceSetGraphMemAttribute(CUdevice(0), mark, 0))
    assert account(api) == [0, 0, 0, 0]


def test_memory_that_a_graph_leaves_is_used_until_it_is_freed_and_trimmed(api: Emulator) -> None:
    graph, address = allocating(api, frees=False)
    ok(api.cuGraphLaunch(graph, LEGACY))
    ok(api.cuDeviceGraphMemTrim(CUdevice(0)))
    assert account(api) == [1024] * 4
    ok(api.cuMemFree(CUdeviceptr(address)))
    assert account(api)[USED] == 1024
    ok(api.cuDeviceGraphMemTrim(CUdevice(0)))
    assert account(api)[USED] == 0


def test_attributes_that_cannot_be_queried_or_set_are_rejected(api: Emulator) -> None:
    device = CUdevice(0)
    assert code(api.cuDeviceGetGraphMemAttribute(device, 4)) == 1
    assert code(api.cuDeviceGetGraphMemAttribute(CUdevice(2), USED)) == 101
    assert code(api.cuDeviceSetGraphMemAttribute(device, USED, 0)) == 1
    assert code(api.cuDeviceSetGraphMemAttribute(device, RESERVED_HIGH, 1)) == 1
    assert code(api.cuDeviceGraphMemTrim(CUdevice(2))) == 101
