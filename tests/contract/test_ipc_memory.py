"""Device memory that two processes of one host have."""

from __future__ import annotations

import gc
import os
import pickle
from collections.abc import Callable
from copy import deepcopy
from multiprocessing import reduction
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray, DeviceBuffer, MemoryPool
from cudadrv.driver.pickling import device_named
from cudadrv.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ClosedError,
    CudaError,
    ExportError,
    InvalidDeviceError,
    InvalidValueError,
    NotPermittedError,
    StreamCaptureUnsupportedError,
    WrongDeviceError,
)
from cudadrv.ipc import IpcMemoryHandle
from cudadrv.memory import CountedMemory, HookedMemory, UnpooledMemory
from tests.noted_calls import calls_of
from tests.patience import SECONDS

from .peer import KEPT, START, Peer

AnyArray = DeviceArray[Any]
RESOURCES: dict[str, Callable[[], MemoryPool | UnpooledMemory]] = {
    "pool": lambda: MemoryPool(shareable=True),
    "unpooled": UnpooledMemory,
}


@pytest.fixture(params=RESOURCES)
def resource(request: pytest.FixtureRequest) -> MemoryPool | UnpooledMemory:
    return RESOURCES[request.param]()


def keep(name: str, value: object) -> None:
    KEPT[name] = value


def drop(name: str) -> None:
    del KEPT[name]
    gc.collect()
    cudadrv.cuda_context_for(0).synchronize()


def default_stream() -> cudadrv.Stream:
    return cudadrv.cuda_context_for(0).default_stream


def numbers(array: AnyArray) -> list[Any]:
    found: list[Any] = default_stream().to_host(array).tolist()
    return found


def numbers_kept(name: str) -> list[Any]:
    return numbers(KEPT[name])


def add(array: AnyArray, value: int) -> None:
    stream = default_stream()
    stream.copy(array, stream.to_host(array) + value)
    stream.synchronize()


def fill_ends(array: AnyArray, value: int) -> tuple[int, int]:
    """Fill both ends of a large array; gives what stood there."""
    stream = default_stream()
    before = stream.to_host(array[:1]).item(), stream.to_host(array[-1:]).item()
    stream.fill(array[: 1 << 16], value)
    stream.fill(array[-(1 << 16) :], value)
    stream.synchronize()
    return before


def test_two_processes_have_one_memory_and_see_each_others_writes(
    stream: cudadrv.Stream, peer: Peer, resource: MemoryPool | UnpooledMemory
) -> None:
    # More than 1 GiB on a large GPU.
    size = stream.context.memory_info().total // 64 // 4
    with cudadrv.using_memory(resource):
        array = stream.empty(size, np.int32)
    fill_ends(array, 7)
    assert peer.ask(fill_ends, array, 8) == (7, 7)
    assert fill_ends(array, 9) == (8, 8)
    assert peer.ask(fill_ends, array, 0) == (9, 9)
    assert stream.to_host(array[size // 2 - 1 : size // 2 + 1]).size == 2


def test_views_arrive_as_they_are_over_one_memory(
    stream: cudadrv.Stream, peer: Peer, resource: MemoryPool | UnpooledMemory
) -> None:
    with cudadrv.using_memory(resource):
        array = stream.to_device(np.arange(24, dtype=np.int64).reshape(4, 6))
    rows, strided, first = array[1:3], array.T[::2], array[0]
    peer.ask(keep, "views", (rows, strided, first, array.buffer, array[:0]))
    assert peer.ask(described) == [
        ((2, 6), True, list(range(6, 18))),
        ((3, 4), False, [0, 6, 12, 18, 2, 8, 14, 20, 4, 10, 16, 22]),
        ((6,), True, list(range(6))),
        (192, 0),
    ]
    assert peer.ask(filled_through_views) == [0, -1, 2, -1, 4, -1]
    assert stream.to_host(array)[0].tolist() == [0, -1, 2, -1, 4, -1]
    peer.ask(drop, "views")


def described() -> list[Any]:
    *arrays, buffer, nothing = KEPT["views"]
    assert isinstance(buffer, DeviceBuffer)
    # All have the memory of one box, so that their uses are ordered.
    assert len({int(each._memory.raw) for each in (*arrays, buffer)}) == 1
    found: list[Any] = [
        (each.shape, each.is_contiguous, each.stream.to_host(each).ravel().tolist())
        for each in arrays
    ]
    return [*found, (buffer.nbytes, nothing.size)]


def filled_through_views() -> list[int]:
    first = KEPT["views"][2]
    first.stream.fill(first[1::2], -1)
    first.stream.synchronize()
    return numbers(first)


def test_what_comes_back_is_the_memory_itself(
    stream: cudadrv.Stream, peer: Peer, resource: MemoryPool | UnpooledMemory
) -> None:
    with cudadrv.using_memory(resource):
        array = stream.to_device(np.arange(10))
    peer.ask(keep, "there", array)
    back = peer.ask(kept, "there")
    assert back.ptr == array.ptr
    with stream.context.new_stream() as other:
        other.fill(back, 7)
        with calls_of("cuStreamWaitEvent") as waits:
            stream.copy(array, np.arange(10))  # uses of both are ordered
    assert waits
    peer.ask(drop, "there")
    assert numbers(back) == list(range(10))


def kept(name: str) -> object:
    return KEPT[name]


@pytest.mark.slow
def test_a_process_sends_memory_that_it_opened_to_a_third(
    stream: cudadrv.Stream, peer: Peer
) -> None:
    third, (ours, theirs) = Peer(), START.Pipe()
    third.ask(keep, "end", ours)
    peer.ask(keep, "other end", theirs)
    for make in RESOURCES.values():
        with cudadrv.using_memory(make()):
            array = stream.to_device(np.arange(5))
        peer.ask(keep, "given", array[1:])
        peer.ask(pass_on, "given")
        assert third.ask(received_and_changed) == [1, 2, 3, 4]
        assert numbers(array) == [0, 11, 12, 13, 14]
        assert peer.ask(numbers_kept, "given") == [11, 12, 13, 14]
        peer.ask(drop, "given")
        assert numbers(array) == [0, 11, 12, 13, 14]
    third.end()


def pass_on(name: str) -> None:
    KEPT["other end"].send(KEPT[name])


def received_and_changed() -> list[Any]:
    array = KEPT["end"].recv()
    before = numbers(array)
    add(array, 10)
    return before


def test_arrays_are_arguments_of_a_process_and_go_through_queues(stream: cudadrv.Stream) -> None:
    arrays: list[AnyArray] = []
    for make in RESOURCES.values():
        with cudadrv.using_memory(make()):
            arrays.append(stream.zeros((3, 2), np.float32))
    queue = START.Queue()
    process = START.Process(target=take_part, args=([each[1] for each in arrays], queue))
    process.start()
    for array in arrays:
        queue.put(array[2])
    process.join(SECONDS)
    assert process.exitcode == 0
    for array in arrays:
        assert numbers(array) == [[0, 0], [1, 1], [2, 2]]


def take_part(rows: list[AnyArray], queue: Any) -> None:
    for row in rows:
        add(row, 1)
        add(queue.get(timeout=SECONDS), 2)


def test_a_pool_goes_along_and_gives_no_memory_elsewhere(
    stream: cudadrv.Stream, peer: Peer
) -> None:
    pool = MemoryPool(shareable=True)
    assert (pool.shareable, pool.is_foreign) == (True, False)
    peer.ask(keep, "pool", pool)
    with pytest.raises(NotPermittedError, match="of another process of device 0>: only the"):
        peer.ask(allocate_of_kept, "pool")
    with cudadrv.using_memory(pool):
        array = stream.to_device(np.arange(3))
    handle = IpcMemoryHandle.of(array)
    assert pickle.loads(pickle.dumps(handle)) == handle
    peer.ask(open_kept, handle, "opened")
    assert peer.ask(numbers_of_buffer, "opened") == [0, 1, 2]
    assert peer.ask(kept_pool_is_foreign)
    peer.ask(drop, "opened")
    peer.ask(drop, "pool")
    with pytest.raises(InvalidValueError, match="send the MemoryPool as well"):
        peer.ask(open_kept, handle, "opened")


def allocate_of_kept(name: str) -> None:
    with cudadrv.using_memory(KEPT[name]):
        default_stream().empty(3, "u1")


def open_kept(handle: IpcMemoryHandle, name: str) -> None:
    KEPT[name] = handle.open(default_stream())


def kept_pool_is_foreign() -> bool:
    return bool(KEPT["pool"].is_foreign and KEPT["pool"].shareable)


def numbers_of_buffer(name: str) -> list[Any]:
    buffer = KEPT[name]
    return numbers(DeviceArray(buffer, buffer.nbytes // 8, np.int64))


def test_a_descriptor_and_bytes_do_without_multiprocessing(
    stream: cudadrv.Stream, peer: Peer
) -> None:
    pool = MemoryPool(shareable=True)
    with cudadrv.using_memory(pool):
        array = stream.to_device(np.arange(4))
    ours, theirs = START.Pipe()
    peer.ask(keep, "end", theirs)
    peer.begin(open_by_descriptor, IpcMemoryHandle.of(array))
    # From Python 3.14 on this waits until the other process has received the descriptor.
    reduction.send_handle(ours, pool.descriptor, peer.process.pid)
    assert peer.answer() == [0, 1, 2, 3]
    assert numbers(array) == [5, 6, 7, 8]
    # A handle of another pool's memory is refused there.
    other_pool = MemoryPool(shareable=True)
    with cudadrv.using_memory(other_pool):
        other = stream.zeros(4, "i8")
    with pytest.raises(CudaError):
        peer.ask(open_by_kept_pool, IpcMemoryHandle.of(other))
    peer.ask(drop, "by descriptor")
    peer.ask(drop, "end")


def open_by_descriptor(handle: IpcMemoryHandle) -> list[Any]:
    number = reduction.recv_handle(KEPT["end"])
    pool = KEPT["by descriptor"] = MemoryPool.from_descriptor(0, number)
    os.close(number)
    with handle.open(default_stream(), pool) as buffer:
        array: AnyArray = DeviceArray(buffer, 4, np.int64)
        found = numbers(array)
        add(array, 5)
    return found


def open_by_kept_pool(handle: IpcMemoryHandle) -> None:
    handle.open(default_stream(), KEPT["by descriptor"])


def test_work_that_was_queued_before_memory_is_sent_is_done_there(
    stream: cudadrv.Stream, peer: Peer, resource: MemoryPool | UnpooledMemory
) -> None:
    with cudadrv.using_memory(resource):
        array = stream.zeros(1 << 20, np.int32)
    with stream.context.new_stream() as other:
        for value in range(30):
            other.fill(array, value)
        assert peer.ask(numbers, array[-1:]) == [29]


def test_an_opened_memory_closed_there_is_still_here(
    stream: cudadrv.Stream, peer: Peer, resource: MemoryPool | UnpooledMemory
) -> None:
    with cudadrv.using_memory(resource):
        array = stream.to_device(np.arange(6))
        for _ in range(3):
            peer.ask(keep, "opened", array)
            peer.ask(drop, "opened")
        assert numbers(array) == list(range(6))
        array.close()
        stream.synchronize()
        again = stream.to_device(np.arange(6) * 2)
    assert peer.ask(numbers, again) == [0, 2, 4, 6, 8, 10]


@pytest.mark.slow
def test_a_killed_process_leaves_shared_memory_usable(stream: cudadrv.Stream, peer: Peer) -> None:
    killed = Peer()
    arrays: list[AnyArray] = []
    for make in RESOURCES.values():
        with cudadrv.using_memory(make()):
            arrays.append(stream.to_device(np.arange(6)))
        killed.ask(keep, f"array {len(arrays)}", arrays[-1])
        killed.ask(add, arrays[-1], 1)
    theirs = killed.ask(handle_of_own)
    killed.kill()
    assert [each for each in os.listdir("/dev/shm") if "cudadrv" in each] == []
    for array in arrays:
        assert numbers(array) == [1, 2, 3, 4, 5, 6]
        add(array, 1)
        assert peer.ask(numbers, array) == [2, 3, 4, 5, 6, 7]
        array.close()
        with cudadrv.using_memory(UnpooledMemory()):
            assert numbers(stream.to_device(np.arange(6))) == list(range(6))
    # What it had is gone, and asking for it is an error.
    with pytest.raises(CudaError):
        theirs.open(stream)


def handle_of_own() -> IpcMemoryHandle:
    stream = default_stream()
    with cudadrv.using_memory(UnpooledMemory()):
        KEPT["own"] = stream.zeros(10, "u1")
    return IpcMemoryHandle.of(KEPT["own"])


def test_other_ways_to_pickle_are_rejected_with_what_to_do(
    stream: cudadrv.Stream, resource: MemoryPool | UnpooledMemory
) -> None:
    with cudadrv.using_memory(resource):
        array = stream.zeros(3, "f4")
    for refused in (pickle.dumps, deepcopy):
        for each in (array, array[1:], array.buffer):
            with pytest.raises(ArgumentTypeError, match="only multiprocessing sends it"):
                refused(each)
    if isinstance(resource, MemoryPool):
        with pytest.raises(ArgumentTypeError, match="give it to multiprocessing or send its"):
            pickle.dumps(resource)


def test_memory_that_cannot_be_shared_is_rejected_with_what_to_do(
    stream: cudadrv.Stream, peer: Peer
) -> None:
    UnpooledMemory()
    array = stream.zeros(3, "f4")
    with pytest.raises(ExportError, match=r"MemoryPool\(shareable=True\) or UnpooledMemory"):
        peer.ask(numbers, array)
    with pytest.raises(ExportError, match="cannot go to another process"):
        IpcMemoryHandle.of(array)
    pool = MemoryPool()
    assert not pool.shareable
    with pytest.raises((ExportError, ArgumentTypeError), match="shareable=True"):
        peer.ask(keep, "pool", pool)  # the one once a pool of the process was shareable
    with pytest.raises(ExportError, match="shareable=True"):
        _ = pool.descriptor
    with cudadrv.using_memory(MemoryPool(shareable=True)):
        used = stream.zeros(3, "f4")
    with stream.capture():
        stream.fill(used, 3)
        with pytest.raises(StreamCaptureUnsupportedError, match="a capture uses"):
            IpcMemoryHandle.of(used)
    assert peer.ask(numbers, used) == [0, 0, 0]


def test_memory_of_a_pool_is_shared_whatever_counts_it_on_its_way(
    stream: cudadrv.Stream, peer: Peer
) -> None:
    pool = MemoryPool(shareable=True)
    with cudadrv.using_memory(CountedMemory(HookedMemory(pool))):
        array = stream.to_device(np.arange(3))
    assert peer.ask(numbers, array) == [0, 1, 2]
    pool.close()
    with pytest.raises(ClosedError, match="the memory pool of device 0 was closed"):
        IpcMemoryHandle.of(array)


@pytest.mark.slow
def test_what_is_of_a_device_that_is_not_seen_here_is_rejected() -> None:
    with pytest.raises(InvalidDeviceError, match="CUDA_VISIBLE_DEVICES and CUDADRV_DRIVER"):
        device_named(bytes(16), "memory")


@pytest.mark.slow
def test_handles_that_name_nothing_are_rejected(stream: cudadrv.Stream) -> None:
    device = stream.context.device.uuid.bytes
    with pytest.raises(ArgumentValueError, match="7 bytes are no handle of memory"):
        IpcMemoryHandle(b"nothing", device, 10).open(stream)
    with pytest.raises(WrongDeviceError):
        IpcMemoryHandle(bytes(64), bytes(16), 10).open(stream)
    with pytest.raises(CudaError):
        IpcMemoryHandle(bytes(64), device, 10).open(stream)
    with pytest.raises(ArgumentTypeError, match="IpcMemoryHandle.open: pool"):
        IpcMemoryHandle(bytes(64), device, 10).open(stream, cudadrv.memory.DriverMemory())
    with pytest.raises(ArgumentTypeError, match="IpcMemoryHandle.of: memory"):
        IpcMemoryHandle.of(np.zeros(3))  # type: ignore[arg-type]  # what is tested
    with open("/dev/null") as file, pytest.raises(CudaError):
        MemoryPool.from_descriptor(0, file.fileno())
    with pytest.raises(OSError, match="descriptor"):
        MemoryPool.from_descriptor(0, 1 << 20)
