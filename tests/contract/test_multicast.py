"""Multicast objects: one address for memory of each device of a team."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray, LaunchConfig
from cudadrv.driver._api import CUresult
from cudadrv.driver.attributes import DeviceAttribute
from cudadrv.driver.driver_selection import current
from cudadrv.errors import (
    ArgumentValueError,
    ClosedError,
    InvalidValueError,
    NotSupportedError,
    UnsupportedError,
)
from cudadrv.memory import MappedBuffer, MulticastObject, PhysicalMemory
from tests.noted_calls import calls_of, replaced_calls

from .conftest import compile_module


@pytest.fixture(autouse=True, scope="module")
def multicast() -> None:
    devices = cudadrv.list_devices()[:2]
    if len(devices) < 2:
        pytest.skip("needs a second device")
    if os.environ.get("NCCL_NVLS_ENABLE") == "0" and not current().is_emulated:
        pytest.skip("needs NVLink multicast, which NCCL_NVLS_ENABLE=0 forbids on this machine")
    if not all(each.attribute(DeviceAttribute.MULTICAST_SUPPORTED) for each in devices):
        with pytest.raises(UnsupportedError, match="MulticastObject: devices: device"):
            MulticastObject(1, [0, 1])
        pytest.skip("the devices have no multicast")


def test_memory_is_bound_once_at_an_offset() -> None:
    team = MulticastObject(1, [0, 1])
    requested = 2 * team.nbytes
    team.close()
    team = MulticastObject(requested, [0, 1])
    # The granularity depends on the size: 2 MiB for one byte, 512 MiB for 4 MiB on two H200s.
    assert team.nbytes >= requested
    unit = team.nbytes // 2
    assert [each.ordinal for each in team.devices] == [0, 1]
    assert repr(team) == f"<MulticastObject {team.nbytes} bytes for devices [0, 1]>"
    memory = PhysicalMemory(2 * unit, 0)
    team.bind(memory, memory_offset=unit)
    with pytest.raises(InvalidValueError, match="binding <PhysicalMemory"):
        team.bind(memory, nbytes=unit)
    team.bind(memory, offset=unit, nbytes=unit)
    with pytest.raises(ArgumentValueError, match="is not bound to"):
        team.unbind(PhysicalMemory(1, 1))
    team.unbind(memory)
    team.bind(memory)
    team.close()
    with pytest.raises(ClosedError):
        team.bind(memory)


def test_an_object_keeps_the_memory_that_is_bound(stream: cudadrv.Stream) -> None:
    names = ("cuMulticastCreate", "cuMulticastBindMem", "cuMulticastUnbind", "cuMemRelease")
    with calls_of(*names) as calls:
        team = MulticastObject(1, [0, 1])
        for device in (0, 1):
            with PhysicalMemory(team.nbytes, device) as memory:
                team.bind(memory)
        buffer = MappedBuffer(stream, [team])
        team.close()
        assert "cuMemRelease" not in dict(calls)
        buffer.close()
    assert {code for _, code in calls} == {0}
    assert Counter(name for name, _ in calls) == {
        "cuMulticastCreate": 1,
        "cuMulticastBindMem": 2,
        "cuMulticastUnbind": 2,
        "cuMemRelease": 3,
    }


def test_wrong_teams_are_rejected() -> None:
    with pytest.raises(TypeError, match="MulticastObject: devices"):
        MulticastObject(1, [])
    with pytest.raises(ValueError, match="MulticastObject: nbytes"):
        MulticastObject(0, [0, 1])
    with pytest.raises(ValueError, match="MulticastObject: team_size"):
        MulticastObject(1, [0, 1], team_size=1)
    with pytest.raises(ValueError, match="MulticastObject: team_size"):
        MulticastObject(1, [0, 1], team_size=2**31)
    team = MulticastObject(1, [0, 1])
    with pytest.raises(TypeError, match=r"MulticastObject.bind: memory"):
        team.bind(3)  # type: ignore[arg-type]


SOURCE = """
#define OP(name, op, type, reg, letter) \\
extern "C" __global__ void name(const type* team, type* out, int n) { \\
    int i = blockIdx.x * blockDim.x + threadIdx.x; \\
    if (i >= n) return; \\
    reg x; \\
    asm volatile("multimem.ld_reduce.relaxed.sys.global." op " %0, [%1];" \\
        : "=" letter(x) : "l"(team + i) : "memory"); \\
    memcpy(out + i, &x, sizeof(x)); \\
}
OP(add_f32, "add.f32", float, float, "f")
OP(add_f64, "add.f64", double, double, "d")
OP(add_s32, "add.s32", int, int, "r")
OP(min_s32, "min.s32", int, int, "r")
OP(max_u64, "max.u64", unsigned long long, unsigned long long, "l")
OP(min_s64, "min.s64", long long, long long, "l")
OP(and_b32, "and.b32", int, int, "r")
OP(or_b64, "or.b64", long long, long long, "l")
OP(xor_b32, "xor.b32", int, int, "r")
OP(add_f16x2, "add.f16x2", unsigned, unsigned, "r")
OP(max_f16x2, "max.f16x2", unsigned, unsigned, "r")
OP(wide_f16x2, "add.acc::f32.f16x2", unsigned, unsigned, "r")
OP(add_bf16x2, "add.bf16x2", unsigned, unsigned, "r")

extern "C" __global__ void add_v4(const float4* team, float4* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 x;
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
        : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w) : "l"(team + i) : "memory");
    out[i] = x;
}
extern "C" __global__ void store(int* team, int n, int first) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    asm volatile("multimem.st.relaxed.sys.global.u32 [%0], %1;"
        :: "l"(team + i), "r"(first + i) : "memory");
}
extern "C" __global__ void add_to_first(int* team, int n) {
    if (blockIdx.x * blockDim.x + threadIdx.x >= n) return;
    asm volatile("multimem.red.relaxed.sys.global.add.u32 [%0], 1;" :: "l"(team) : "memory");
}
"""


class Team:
    """A multicast object of two devices, with a mapping of all memory on each."""

    def __init__(self) -> None:
        contexts = [cudadrv.cuda_context_for(device) for device in (0, 1)]
        self.streams = [context.new_stream() for context in contexts]
        self.object = MulticastObject(1, [0, 1])
        self.memory = [PhysicalMemory(self.object.nbytes, device) for device in (0, 1)]
        for memory in self.memory:
            self.object.bind(memory)
        self.own = [
            MappedBuffer(stream, [memory])
            for stream, memory in zip(self.streams, self.memory, strict=True)
        ]
        self.shared = [MappedBuffer(stream, [self.object]) for stream in self.streams]

    def put(self, arrays: list[Any]) -> None:
        """Write an array to the memory of each device."""
        for stream, buffer, array in zip(self.streams, self.own, arrays, strict=True):
            stream.copy(DeviceArray(buffer, array.shape, array.dtype), array)
            stream.synchronize()

    def get(self, count: int, dtype: Any) -> list[Any]:
        """Return the first elements of each device's memory."""
        for stream in self.streams:
            stream.synchronize()
        return [
            stream.to_host(DeviceArray(buffer, count, dtype))
            for stream, buffer in zip(self.streams, self.own, strict=True)
        ]

    def close(self) -> None:
        for stream in self.streams:
            stream.synchronize()
        for buffer in (*self.shared, *self.own):
            buffer.close()
        self.object.close()
        for stream in self.streams:
            stream.close()


@pytest.fixture
def team() -> Iterator[Team]:
    made = Team()
    yield made
    made.close()


@pytest.fixture(scope="module")
def both() -> list[cudadrv.Module]:
    return [compile_module(cudadrv.cuda_context_for(device), SOURCE) for device in (0, 1)]


def halves(array: Any) -> Any:
    return array.view(np.float16)


REDUCTIONS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "add_f32": (np.float32, np.add),
    "add_f64": (np.float64, np.add),
    "add_s32": (np.int32, np.add),
    "min_s32": (np.int32, np.minimum),
    "max_u64": (np.uint64, np.maximum),
    "min_s64": (np.int64, np.minimum),
    "and_b32": (np.int32, np.bitwise_and),
    "or_b64": (np.int64, np.bitwise_or),
    "xor_b32": (np.int32, np.bitwise_xor),
    "add_f16x2": (np.uint32, lambda a, b: (halves(a) + halves(b)).view(np.uint32)),
    "wide_f16x2": (np.uint32, lambda a, b: (halves(a) + halves(b)).view(np.uint32)),
    "max_f16x2": (np.uint32, lambda a, b: np.maximum(halves(a), halves(b)).view(np.uint32)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_load_combines_the_memory_of_all_devices(
    team: Team, both: list[cudadrv.Module], name: str
) -> None:
    dtype, expected = REDUCTIONS[name]
    count, rng = 1000, np.random.default_rng(3)
    if dtype is np.uint32:
        values = [rng.integers(-99, 99, 2 * count).astype(np.float16) for _ in range(2)]
        arrays = [each.view(np.uint32) for each in values]
    else:
        arrays = [rng.integers(0, 10**6, count).astype(dtype) for _ in range(2)]
    team.put(arrays)
    for stream, module, shared in zip(team.streams, both, team.shared, strict=True):
        out = stream.empty(count, dtype)
        config = LaunchConfig.for_elements(count)
        module.kernel(name).launch(stream, config, shared, out, count)
        assert np.array_equal(stream.to_host(out), expected(*arrays))


@pytest.mark.parametrize("name", ["add_f32", "xor_b32", "add_f16x2", "wide_f16x2", "max_f16x2"])
def test_a_single_thread_combines(team: Team, both: list[cudadrv.Module], name: str) -> None:
    dtype, expected = REDUCTIONS[name]
    arrays = [np.array([1.5, -2.25], np.float16).view(np.uint32), np.array([7], np.uint32)]
    arrays = [each.view(np.uint32).astype(dtype) for each in arrays]
    team.put(arrays)
    out = team.streams[0].empty(1, dtype)
    both[0].kernel(name).launch(team.streams[0], LaunchConfig(1, 1), team.shared[0], out, 1)
    assert np.array_equal(team.streams[0].to_host(out), expected(*arrays))


def test_brain_floats_are_combined(team: Team, both: list[cudadrv.Module]) -> None:
    values = [np.arange(64, dtype=np.float32) * factor for factor in (1, -3)]
    # A bfloat16 is the upper half of a float32.
    arrays = [(each.view(np.uint32) >> 16).astype(np.uint16).view(np.uint32) for each in values]
    team.put(arrays)
    out = team.streams[0].empty(32, np.uint32)
    config = LaunchConfig.for_elements(32)
    both[0].kernel("add_bf16x2").launch(team.streams[0], config, team.shared[0], out, 32)
    found = team.streams[0].to_host(out).view(np.uint16).astype(np.uint32) << 16
    assert np.array_equal(found.view(np.float32), values[0] + values[1])


def test_a_vector_is_combined(team: Team, both: list[cudadrv.Module]) -> None:
    arrays = [np.arange(400, dtype=np.float32) * (device + 1) for device in range(2)]
    team.put(arrays)
    stream = team.streams[1]
    out = stream.empty(400, np.float32)
    config = LaunchConfig.for_elements(100)
    both[1].kernel("add_v4").launch(stream, config, team.shared[1], out.buffer, 100)
    assert np.array_equal(stream.to_host(out), arrays[0] + arrays[1])


def test_a_store_writes_the_memory_of_all_devices(team: Team, both: list[cudadrv.Module]) -> None:
    config = LaunchConfig.for_elements(500)
    both[0].kernel("store").launch(team.streams[0], config, team.shared[0], 500, 7)
    for found in team.get(500, np.int32):
        assert np.array_equal(found, np.arange(500) + 7)


def test_a_reduction_changes_the_memory_of_all_devices(
    team: Team, both: list[cudadrv.Module]
) -> None:
    team.put([np.array([first], np.uint32) for first in (5, 100)])
    for stream, module, shared in zip(team.streams, both, team.shared, strict=True):
        config = LaunchConfig.for_elements(300)
        module.kernel("add_to_first").launch(stream, config, shared, 300)
    assert [int(found[0]) for found in team.get(1, np.uint32)] == [605, 700]


def test_an_object_is_released_though_memory_cannot_be_unbound() -> None:
    team = MulticastObject(1, [0, 1])
    for device in team.devices:
        with PhysicalMemory(team.nbytes, device) as memory:
            team.bind(memory)

    def refused(*_: object) -> tuple[CUresult]:
        return (CUresult.CUDA_ERROR_NOT_SUPPORTED,)

    with (
        replaced_calls(cuMulticastUnbind=refused),
        calls_of("cuMemRelease") as calls,
        pytest.raises(NotSupportedError, match="unbinding"),
    ):
        team.close()
    assert len(calls) == 3
