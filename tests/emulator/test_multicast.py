"""Checks of instructions that reach the memory of all devices of a team."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray, LaunchConfig
from cudadrv.emulator import EmulatedDevice, session
from cudadrv.errors import CudaError, IllegalAddressError, UnsupportedError
from cudadrv.memory import MappedBuffer, MulticastObject, PhysicalMemory

SOURCE = """
extern "C" __global__ void store(int* team, int* own, int* out, int weak) {
    int i = threadIdx.x;
    if (blockIdx.x == 0) {
        if (weak) asm volatile("multimem.st.weak.global.u32 [%0], %1;" :: "l"(team + i), "r"(i));
        else asm volatile("multimem.st.relaxed.sys.global.u32 [%0], %1;" :: "l"(team + i), "r"(i));
    } else if (weak) out[i] = own[i];
    else asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(out[i]) : "l"(own + i));
}
extern "C" __global__ void plain(int* team) { team[threadIdx.x] = 1; }
extern "C" __global__ void sum(int* team, int* out) {
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.s32 %0, [%1];"
        : "=r"(out[threadIdx.x]) : "l"(team + threadIdx.x));
}
"""


class Team:
    """A multicast object of two devices, used by the first one."""

    def __init__(self) -> None:
        self.context = cudadrv.cuda_context_for(0)
        self.stream = self.context.new_stream()
        self.object = MulticastObject(4 << 20, [0, 1])
        self.memory = [PhysicalMemory(4 << 20, device) for device in (0, 1)]
        self.shared = MappedBuffer(self.stream, [self.object])
        self.module = self.context.compile(SOURCE)

    def bind(self) -> list[MappedBuffer]:
        for memory in self.memory:
            self.object.bind(memory)
        return [
            MappedBuffer(cudadrv.cuda_context_for(device).default_stream, [memory])
            for device, memory in enumerate(self.memory)
        ]


@pytest.mark.slow
@pytest.mark.parametrize("weak", [0, 1])
def test_a_store_races_with_a_read_of_a_devices_own_memory(weak: int) -> None:
    with session(devices=2, check=["race"], raise_findings=False) as emulator:
        team = Team()
        own = team.bind()
        out = team.stream.zeros(32, np.int32)
        config = LaunchConfig(2, 32)
        team.module.kernel("store").launch(team.stream, config, team.shared, own[0], out, weak)
        team.stream.synchronize()
        assert bool(emulator.findings) == bool(weak)
        assert {each.kernel for each in emulator.findings} == ({"store"} if weak else set())
        # Nothing but this uses the other device's memory.
        found = cudadrv.cuda_context_for(1).default_stream.to_host(
            DeviceArray(own[1], 32, np.int32)
        )
        assert found.tolist() == list(range(32))


def test_another_access_to_the_address_is_a_fault() -> None:
    with session(devices=2):
        team = Team()
        team.bind()
        with pytest.raises(IllegalAddressError, match="out-of-bounds write"):
            team.module.kernel("plain").launch(team.stream, LaunchConfig(1, 32), team.shared)
            team.stream.synchronize()


def test_a_store_opens_the_memory_of_a_team_to_no_other_access() -> None:
    with session(devices=2):
        team = Team()
        own = team.bind()
        out = team.stream.zeros(32, np.int32)
        config = LaunchConfig(2, 32)
        with pytest.raises(IllegalAddressError, match="out-of-bounds read"):
            team.module.kernel("store").launch(team.stream, config, team.shared, own[1].ptr, out, 1)
            team.stream.synchronize()


def test_memory_that_is_not_bound_is_a_fault() -> None:
    with session(devices=2):
        team = Team()
        team.object.bind(team.memory[0])
        out = team.stream.zeros(32, np.int32)
        with pytest.raises(IllegalAddressError, match="multimem.ld_reduce of 4 bytes at global"):
            team.module.kernel("sum").launch(team.stream, LaunchConfig(1, 32), team.shared, out)
            team.stream.synchronize()


def test_lanes_reach_memory_that_is_bound_in_pieces() -> None:
    with session(devices=2):
        team = Team()
        own = team.bind()
        for memory in team.memory:
            team.object.unbind(memory)
            for offset, there in ((0, 2 << 20), (2 << 20, 0)):
                team.object.bind(memory, offset=offset, memory_offset=there, nbytes=2 << 20)
        for number, (buffer, start) in enumerate(zip(own, (100, 1000), strict=True)):
            stream = cudadrv.cuda_context_for(number).default_stream
            array: DeviceArray[np.int32] = DeviceArray(buffer, 1 << 20, np.int32)
            stream.copy(array, np.arange(1 << 20, dtype=np.int32) + start)
            stream.synchronize()
        out = team.stream.zeros(32, np.int32)
        # 16 lanes on each side of the border of two pieces.
        middle: DeviceArray[np.int32] = DeviceArray(team.shared, 1 << 20, np.int32)
        first = (1 << 19) - 16
        team.module.kernel("sum").launch(
            team.stream, LaunchConfig(1, 32), middle[first : first + 32], out
        )
        expected = [*range((1 << 20) - 16, 1 << 20), *range(16)]
        assert team.stream.to_host(out).tolist() == [2 * each + 1100 for each in expected]


def test_older_devices_have_no_multicast() -> None:
    old = EmulatedDevice(compute_capability=(8, 0))
    unsupported = pytest.raises(UnsupportedError, match=r"compute capability 8\.0")
    with session(devices=[old, old]), unsupported:
        MulticastObject(1, [0, 1])


def test_a_team_waits_for_devices_of_other_processes() -> None:
    with session(devices=2):
        team = MulticastObject(1, [0], team_size=2)
        with pytest.raises(CudaError, match="the emulator has one process"):
            team.bind(PhysicalMemory(1, 0))
