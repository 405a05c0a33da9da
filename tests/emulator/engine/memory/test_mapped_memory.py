"""Kernels that reach page-locked host memory and the memory of another device."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ptx.emulate.access.faults import SeveralMemories
from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.mapped_memory import MappedHostMemory
from ptx.emulate.model.errors import OutOfBounds
from ptx.emulate.threads.device_model import DeviceModel
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text

_COPY = """.reg .b32 %r<9>; .reg .b64 %rd<9>;
ld.param.u64 %rd0, [from]; ld.param.u64 %rd1, [to]; mov.u32 %r0, %tid.x;
mul.wide.u32 %rd2, %r0, 4; add.u64 %rd0, %rd0, %rd2; add.u64 %rd1, %rd1, %rd2;
ld.global.u32 %r1, [%rd0]; add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1; ret;"""
# Every second thread reads and writes the other place.
_MIXED = """.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p;
ld.param.u64 %rd0, [from]; ld.param.u64 %rd1, [to]; mov.u32 %r0, %tid.x;
mul.wide.u32 %rd2, %r0, 4; and.b32 %r2, %r0, 1; setp.ne.u32 %p, %r2, 0;
selp.b64 %rd3, %rd0, %rd1, %p; add.u64 %rd3, %rd3, %rd2;
ld.global.u32 %r1, [%rd3]; add.u32 %r1, %r1, 1; st.global.u32 [%rd3], %r1; ret;"""
_ATOMIC = _MIXED.replace("ld.global.u32 %r1, [%rd3];", "red.global.add.u32 [%rd3], 1;")
_PARAMS = ".param .u64 from, .param .u64 to"
COUNT = 100


class Host:
    """An array of the host that one device's kernels may reach."""

    def __init__(self, runner: KernelRunner, offset: int = 0) -> None:
        self._bytes = (ctypes.c_uint8 * (4 * COUNT + 64))()
        self.address = -(-ctypes.addressof(self._bytes) // 16) * 16 + offset
        words = (ctypes.c_uint32 * COUNT).from_address(self.address)
        self.array = np.frombuffer(memoryview(words), np.uint32)
        self.array[:] = np.arange(COUNT)
        memory = MappedHostMemory(self.address, 4 * COUNT)
        runner.device.host = lambda address: memory if memory.find(address) else None


@pytest.mark.parametrize("offset", [0, 4, 12])
def test_kernels_read_and_write_host_memory_at_its_address(offset: int) -> None:
    runner = KernelRunner(ptx_text(_COPY, _PARAMS))
    host = Host(runner, offset)
    there = runner.put(np.zeros(COUNT, np.uint32))
    runner.launch("k", 1, COUNT, host.address, there)
    assert (runner.get(there, COUNT, np.uint32) == np.arange(COUNT) + 1).all()
    runner.launch("k", 1, COUNT, there, host.address)
    assert (host.array == np.arange(COUNT) + 2).all()


def test_one_access_reaches_host_and_device_memory() -> None:
    runner = KernelRunner(ptx_text(_MIXED, _PARAMS))
    host = Host(runner)
    there = runner.put(np.full(COUNT, 7, np.uint32))
    runner.launch("k", 1, COUNT, host.address, there)
    odd = np.arange(COUNT) % 2 == 1
    assert (host.array == np.arange(COUNT) + odd).all()
    assert (runner.get(there, COUNT, np.uint32) == 7 + ~odd).all()


def test_an_atomic_of_several_memories_stops_with_its_reason() -> None:
    runner = KernelRunner(ptx_text(_ATOMIC, _PARAMS))
    host = Host(runner)
    there = runner.put(np.zeros(COUNT, np.uint32))
    with pytest.raises(SeveralMemories, match="2 memories"):
        runner.launch("k", 1, COUNT, host.address, there)


def test_an_access_past_host_memory_is_out_of_bounds() -> None:
    runner = KernelRunner(ptx_text(_COPY, _PARAMS))
    host = Host(runner)
    there = runner.put(np.zeros(COUNT + 28, np.uint32))
    with pytest.raises(OutOfBounds) as caught:
        runner.launch("k", 1, COUNT + 28, host.address, there)
    assert caught.value.where.thread == (COUNT, 0, 0)


def test_memory_of_a_peer_is_reached_only_with_access() -> None:
    runner = KernelRunner(ptx_text(_COPY, _PARAMS))
    peer = DeviceMemory(1 << 50, 1 << 20)
    there = peer.allocate(4 * COUNT)
    mine = runner.put(np.arange(COUNT, dtype=np.uint32))
    with pytest.raises(OutOfBounds):
        runner.launch("k", 1, COUNT, mine, there)
    runner.device.peers = (peer,)
    runner.launch("k", 1, COUNT, mine, there)
    assert (peer.view(np.uint32)[:COUNT] == np.arange(COUNT) + 1).all()
    peer.free(there)
    with pytest.raises(OutOfBounds, match="after it was freed"):
        runner.launch("k", 1, COUNT, mine, there)


def test_a_device_reaches_no_host_memory_unless_enabled() -> None:
    assert DeviceModel(DeviceMemory(1 << 40, 1 << 20)).host(0x7FFF_0000_0000) is None
