"""What emulators share: two of one process stand for those of two, where that is enough."""

from __future__ import annotations

import ctypes
import gc
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray, MemoryPool
from cudadrv.driver._api import (
    CUdeviceptr,
    CUipcEventHandle,
    CUipcMemHandle,
    CUmemAllocationHandleType,
    CUmemAllocationType,
    CUmemLocationType,
    CUmemoryPool,
    CUmemPoolProps,
    CUmemPoolPtrExportData,
    CUpointer_attribute,
    CUresult,
    CUstream,
    of_opaque_bytes,
    opaque_bytes,
)
from cudadrv.emulator import Emulator, session
from cudadrv.emulator.calls.interprocess import PoolPointer, ProcessHandle
from cudadrv.emulator.profiles import EmulatedDevice
from cudadrv.ipc import IpcMemoryHandle
from cudadrv.memory import UnpooledMemory
from tests.at_each_line import Line, raising
from tests.contract.peer import KEPT, Peer
from tests.short_cases import few

from .calls import Parameters, attribute, code, functions, launch, load, ok
from .kernels import INCREMENT

_USED, _KIND = 7, 12  # attributes of pools: bytes in use, type of the location
ORDINAL = CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
FILES = CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
NBYTES = 3 << 20


def an_emulator(**options: Any) -> Emulator:
    made = Emulator(**options)
    ok(made.cuInit(0))
    ok(made.cuCtxSetCurrent(ok(made.cuDevicePrimaryCtxRetain(ok(made.cuDeviceGet(0))))))
    return made


def a_pool(driver: Emulator, *, shared: bool = True) -> CUmemoryPool:
    properties = CUmemPoolProps()
    properties.allocType = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    if shared:
        properties.handleTypes = FILES
    return ok(driver.cuMemPoolCreate(properties))


def a_host_pool(driver: Emulator) -> CUmemoryPool:
    properties = CUmemPoolProps()
    properties.allocType = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA
    properties.handleTypes = FILES
    return ok(driver.cuMemPoolCreate(properties))


def imported(driver: Emulator, other: Emulator, pool: CUmemoryPool) -> CUmemoryPool:
    number = ok(other.cuMemPoolExportToShareableHandle(pool, FILES, 0))
    try:
        return ok(driver.cuMemPoolImportFromShareableHandle(number, FILES, 0))
    finally:
        os.close(number)


def read(driver: Emulator, pointer: CUdeviceptr, nbytes: int) -> bytes:
    found = ctypes.create_string_buffer(nbytes)
    ok(driver.cuMemcpyDtoHAsync(ctypes.addressof(found), pointer, nbytes, CUstream(0)))
    ok(driver.cuStreamSynchronize(CUstream(0)))
    return found.raw


def fill(driver: Emulator, pointer: CUdeviceptr, value: int, nbytes: int) -> None:
    ok(driver.cuMemsetD8Async(pointer, value, nbytes, CUstream(0)))
    ok(driver.cuStreamSynchronize(CUstream(0)))


@pytest.fixture
def same_descriptors() -> Iterator[None]:
    gc.collect()
    before = os.listdir("/proc/self/fd")
    yield
    gc.collect()
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.usefixtures("same_descriptors")
@pytest.mark.parametrize("order", few(["immediate", "late"], 1))
def test_memory_of_a_pool_is_one_in_two_emulators_and_counts_where_it_is_from(order: str) -> None:
    first, second = an_emulator(order=order), an_emulator(order=order)
    free = ok(second.cuMemGetInfo())
    pool = a_pool(first)
    pointer = ok(first.cuMemAllocFromPoolAsync(NBYTES, pool, CUstream(0)))
    fill(first, pointer, 5, NBYTES)
    there = imported(second, first, pool)
    data = ok(first.cuMemPoolExportPointer(pointer))
    opened = ok(second.cuMemPoolImportPointer(there, data))
    assert read(second, opened, NBYTES) == b"\5" * NBYTES
    fill(second, opened, 6, 100)
    assert read(first, pointer, 101) == b"\6" * 100 + b"\5"
    assert ok(second.cuMemGetInfo()) == free
    ok(second.cuMemFreeAsync(opened, CUstream(0)))
    ok(second.cuStreamSynchronize(CUstream(0)))
    assert read(first, pointer, 101) == b"\6" * 100 + b"\5"
    assert code(second.cuMemcpyDtoHAsync(0, opened, 1, CUstream(0))) == 1
    ok(second.cuMemPoolDestroy(there))
    ok(first.cuMemFreeAsync(pointer, CUstream(0)))
    ok(first.cuMemPoolDestroy(pool))
    ok(first.cuStreamSynchronize(CUstream(0)))
    first.finish()


@pytest.mark.parametrize("waits", [False, True])
def test_values_of_another_process_stay_if_the_allocation_was_waited_for(waits: bool) -> None:
    first, second = an_emulator(order="late"), an_emulator(order="late")
    pool = a_pool(first)
    pointer = ok(first.cuMemAllocFromPoolAsync(64, pool, CUstream(0)))
    if waits:
        ok(first.cuStreamSynchronize(CUstream(0)))
    there = imported(second, first, pool)
    opened = ok(second.cuMemPoolImportPointer(there, ok(first.cuMemPoolExportPointer(pointer))))
    fill(second, opened, 5, 64)
    # The allocation runs now, if it has not: its memory has new content.
    assert (read(first, pointer, 64) == b"\5" * 64) is waits
    ok(second.cuMemPoolDestroy(there))
    ok(first.cuMemPoolDestroy(pool))
    first.finish()


@pytest.mark.usefixtures("same_descriptors")
def test_what_was_opened_stays_until_it_is_closed_there() -> None:
    first, second = an_emulator(), an_emulator()
    pool = a_pool(first)
    pointer = ok(first.cuMemAllocFromPoolAsync(NBYTES, pool, CUstream(0)))
    fill(first, pointer, 5, NBYTES)
    there = imported(second, first, pool)
    opened = ok(second.cuMemPoolImportPointer(there, ok(first.cuMemPoolExportPointer(pointer))))
    ok(first.cuMemFreeAsync(pointer, CUstream(0)))
    ok(first.cuMemPoolDestroy(pool))
    # What comes to the place of what was freed is not what the other one has.
    plain = ok(first.cuMemAlloc(NBYTES))
    fill(first, plain, 9, NBYTES)
    del first
    gc.collect()
    assert read(second, opened, NBYTES) == b"\5" * NBYTES
    ok(second.cuMemPoolDestroy(there))
    assert read(second, opened, 3) == b"\5\5\5"
    ok(second.cuMemFree(opened))


@pytest.mark.usefixtures("same_descriptors")
@pytest.mark.parametrize("order", few(["immediate", "late"], 1))
def test_page_locked_memory_of_a_pool_is_one_in_two_emulators(order: str) -> None:
    first, second = an_emulator(order=order), an_emulator(order=order)
    pool = a_host_pool(first)
    other = ok(first.cuMemAllocFromPoolAsync(100, pool, CUstream(0)))
    pointer = ok(first.cuMemAllocFromPoolAsync(NBYTES, pool, CUstream(0)))
    ctypes.memset(int(pointer), 5, NBYTES)
    there = imported(second, first, pool)
    opened = ok(second.cuMemPoolImportPointer(there, ok(first.cuMemPoolExportPointer(pointer))))
    assert int(opened) != int(pointer)
    assert ctypes.string_at(int(opened), NBYTES) == b"\5" * NBYTES
    ctypes.memset(int(opened), 6, 100)
    assert ctypes.string_at(int(pointer), 101) == b"\6" * 100 + b"\5"
    # A device writes what the other process reads.
    device = ok(second.cuMemAlloc(64))
    fill(second, device, 7, 64)
    ok(second.cuMemcpyDtoHAsync(int(opened), device, 64, CUstream(0)))
    ok(second.cuStreamSynchronize(CUstream(0)))
    assert ctypes.string_at(int(pointer), 65) == b"\7" * 64 + b"\6"
    assert [int(ok(second.cuMemPoolGetAttribute(there, number))) for number in (_USED, _KIND)] == [
        NBYTES,
        int(CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA),
    ]
    ok(second.cuMemFreeAsync(opened, CUstream(0)))
    ok(second.cuStreamSynchronize(CUstream(0)))
    assert int(ok(second.cuMemPoolGetAttribute(there, _USED))) == 0
    assert code(second.cuMemFreeAsync(opened, CUstream(0))) == 1
    assert ctypes.string_at(int(pointer), 65) == b"\7" * 64 + b"\6"
    ok(second.cuMemPoolDestroy(there))
    for each in (other, pointer):
        ok(first.cuMemFreeAsync(each, CUstream(0)))
    ok(first.cuMemPoolDestroy(pool))
    ok(first.cuStreamSynchronize(CUstream(0)))
    first.finish()
    second.finish()


def test_page_locked_memory_of_a_pool_is_zeroed_and_uses_no_memory_once_it_is_freed() -> None:
    driver = an_emulator()
    pool = a_host_pool(driver)
    number = ok(driver.cuMemPoolExportToShareableHandle(pool, FILES, 0))
    for _ in range(3):
        pointer = ok(driver.cuMemAllocFromPoolAsync(NBYTES, pool, CUstream(0)))
        assert ctypes.string_at(int(pointer), NBYTES) == bytes(NBYTES)
        ctypes.memset(int(pointer), 5, NBYTES)
        assert os.fstat(number).st_blocks * 512 >= NBYTES
        ok(driver.cuMemFreeAsync(pointer, CUstream(0)))
        ok(driver.cuStreamSynchronize(CUstream(0)))
        assert os.fstat(number).st_blocks == 0
    os.close(number)


def test_many_allocations_of_a_shared_host_pool_need_one_descriptor() -> None:
    driver = an_emulator()
    pool = a_host_pool(driver)
    before = len(os.listdir("/proc/self/fd"))
    pointers = [ok(driver.cuMemAllocFromPoolAsync(8, pool, CUstream(0))) for _ in range(50)]
    assert len(os.listdir("/proc/self/fd")) <= before
    for pointer in pointers:
        ok(driver.cuMemFreeAsync(pointer, CUstream(0)))


def test_what_is_no_shared_memory_of_a_host_pool_is_rejected() -> None:
    first, second = an_emulator(), an_emulator()
    pool = a_host_pool(first)
    there = imported(second, first, pool)
    pointer = ok(first.cuMemAllocFromPoolAsync(64, pool, CUstream(0)))
    data = ok(first.cuMemPoolExportPointer(pointer))
    assert code(first.cuMemPoolExportPointer(CUdeviceptr(int(pointer) + 8))) == 1
    assert code(first.cuMemPoolExportPointer(CUdeviceptr(ok(first.cuMemHostAlloc(64, 0))))) == 1
    assert code(first.cuMemPoolImportPointer(pool, data)) == 1  # it was not imported
    assert code(second.cuMemAllocFromPoolAsync(64, there, CUstream(0))) == 1
    assert code(second.cuMemPoolExportToShareableHandle(there, FILES, 0)) == 1
    opened = ok(second.cuMemPoolImportPointer(there, data))
    assert code(second.cuMemPoolExportPointer(opened)) == 1
    # Data of another pool, and data that name bytes after the end of the file.
    other = ok(first.cuMemAllocFromPoolAsync(64, a_host_pool(first), CUstream(0)))
    of_other = ok(first.cuMemPoolExportPointer(other))
    assert code(second.cuMemPoolImportPointer(there, of_other)) == 1
    exported = PoolPointer.read(opaque_bytes(data))
    assert exported is not None
    beyond = of_opaque_bytes(CUmemPoolPtrExportData, exported._replace(nbytes=1 << 40).packed)
    assert code(second.cuMemPoolImportPointer(there, beyond)) == 1


def test_an_address_that_is_opened_anew_has_no_accesses_of_what_was_there() -> None:
    first, second = an_emulator(), an_emulator(check=("race",))
    pool = a_pool(first)
    pointer = ok(first.cuMemAllocFromPoolAsync(NBYTES, pool, CUstream(0)))
    there, data = imported(second, first, pool), ok(first.cuMemPoolExportPointer(pointer))
    places = set()
    for _ in range(3):
        stream = ok(second.cuStreamCreateWithPriority(1, 0))
        opened = ok(second.cuMemPoolImportPointer(there, data))
        places.add(int(opened))
        ok(second.cuMemsetD8Async(opened, 1, NBYTES, stream))
        ok(second.cuMemFreeAsync(opened, stream))
    assert len(places) == 1
    assert second.findings == ()


def test_closing_memory_of_another_process_waits_for_the_work_on_it() -> None:
    with session(order="late"):
        context = cudadrv.cuda_context_for(0)
        pool = MemoryPool(shareable=True)
        with context.new_stream() as ours, context.new_stream() as theirs:
            with cudadrv.using_memory(pool):
                array = ours.zeros(1000, np.int32)
            handle = IpcMemoryHandle.of(array)
            there = MemoryPool.from_descriptor(0, pool.descriptor)  # as another process takes it
            opened = replace(handle, pool=bytes(16)).open(theirs, there)
            theirs.fill(DeviceArray(opened, 1000, np.int32), 7)
            opened.close()
            assert (ours.to_host(array) == 7).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_line_of_opening_a_pool_closes_no_descriptor_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[int] = []
    close = os.close

    def noted(number: int) -> None:
        closed.append(number)
        close(number)

    monkeypatch.setattr(os, "close", noted)
    with session():
        cudadrv.cuda_context_for(0)
        pool = MemoryPool(shareable=True)
        for number in itertools.count():
            line = Line(number, ["cudadrv/ipc.py"], raising(KeyboardInterrupt))
            closed.clear()
            with suppress(KeyboardInterrupt):
                line.run(lambda: MemoryPool.from_descriptor(0, pool.descriptor).close())
            gc.collect()
            assert len(closed) == len(set(closed)), line.place
            if not line.place:
                break
    assert number > 10


@pytest.fixture
def thread_id() -> Iterator[int]:
    """The number of a thread, under which the system shows the descriptors of this process."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    assert thread.native_id is not None
    yield thread.native_id
    end.set()
    thread.join()


def a_shared_allocation(driver: Emulator, process: int) -> tuple[CUdeviceptr, CUipcMemHandle]:
    """Return memory, and its handle as if a process of that number had made it."""
    pointer = ok(driver.cuMemAlloc(NBYTES))
    fill(driver, pointer, 5, NBYTES)
    handle = ProcessHandle.read(opaque_bytes(ok(driver.cuIpcGetMemHandle(pointer))))
    assert handle is not None
    packed = handle._replace(process=process).packed
    return pointer, of_opaque_bytes(CUipcMemHandle, packed)


def test_a_context_of_another_device_opens_memory_and_its_kernels_reach_it(thread_id: int) -> None:
    first, second = an_emulator(), an_emulator(devices=2)
    pointer, handle = a_shared_allocation(first, thread_id)
    remote = ok(second.cuDevicePrimaryCtxRetain(ok(second.cuDeviceGet(1))))
    ok(second.cuCtxSetCurrent(remote))
    increment = functions(second, load(second, INCREMENT), "increment")[0]
    opened = ok(second.cuIpcOpenMemHandle(handle, 1))
    assert int(ok(second.cuIpcOpenMemHandle(handle, 1))) == int(opened)
    ok(second.cuIpcCloseMemHandle(opened))
    assert attribute(second, ORDINAL, int(opened)) == 0
    launch(second, increment, Parameters(ctypes.c_uint64(int(opened))))
    ok(second.cuStreamSynchronize(CUstream(0)))
    assert read(second, opened, 5) == b"\6\5\5\5\5"
    assert read(first, pointer, 5) == b"\6\5\5\5\5"
    # It is freed with its context.
    ok(second.cuDevicePrimaryCtxRelease(ok(second.cuDeviceGet(1))))
    ok(second.cuCtxSetCurrent(ok(second.cuDevicePrimaryCtxRetain(ok(second.cuDeviceGet(0))))))
    assert code(second.cuIpcCloseMemHandle(opened)) == 1


def test_an_event_of_another_device_is_not_opened(thread_id: int) -> None:
    first, second = an_emulator(), an_emulator(devices=2)
    made = ok(first.cuIpcGetEventHandle(ok(first.cuEventCreate(2 | 4))))
    handle = ProcessHandle.read(opaque_bytes(made))
    assert handle is not None
    there = of_opaque_bytes(CUipcEventHandle, handle._replace(process=thread_id).packed)
    assert int(ok(second.cuIpcOpenEventHandle(there)))
    remote = ok(second.cuDevicePrimaryCtxRetain(ok(second.cuDeviceGet(1))))
    ok(second.cuCtxSetCurrent(remote))
    assert code(second.cuIpcOpenEventHandle(there)) == 801
    assert b"of the current context's device" in (
        ok(second.cuGetErrorString(CUresult.CUDA_ERROR_NOT_SUPPORTED)) or b""
    )


def test_memory_of_a_device_out_of_reach_is_not_opened(thread_id: int) -> None:
    first = an_emulator()
    apart = an_emulator(devices=[EmulatedDevice(peer_access=False)] * 2)
    _, handle = a_shared_allocation(first, thread_id)
    ok(apart.cuCtxSetCurrent(ok(apart.cuDevicePrimaryCtxRetain(ok(apart.cuDeviceGet(1))))))
    assert code(apart.cuIpcOpenMemHandle(handle, 1)) == 217
    why = ok(apart.cuGetErrorString(CUresult.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED)) or b""
    assert b"of device 0, which device 1 cannot access" in why


def test_an_emulated_device_has_its_memory_again_after_much_of_it_was_shared() -> None:
    driver = an_emulator()
    pool, before = a_pool(driver), ok(driver.cuMemGetInfo())
    for _ in range(3):
        held = [ok(driver.cuMemAllocFromPoolAsync(1000, pool, CUstream(0))) for _ in range(20)]
        for each in held:
            fill(driver, each, 3, 1000)
            ok(driver.cuMemFreeAsync(each, CUstream(0)))
        ok(driver.cuStreamSynchronize(CUstream(0)))
        assert ok(driver.cuMemGetInfo()) == before


def test_what_is_no_shared_memory_is_rejected_with_the_drivers_codes() -> None:
    driver = an_emulator()
    private, shared, other = a_pool(driver, shared=False), a_pool(driver), a_pool(driver)
    assert code(driver.cuMemPoolExportToShareableHandle(private, FILES, 0)) == 1
    assert code(driver.cuMemPoolExportToShareableHandle(shared, FILES, 1)) == 1
    with open("/dev/null") as file:
        assert code(driver.cuMemPoolImportFromShareableHandle(file.fileno(), FILES, 0)) == 1
    plain, pooled = ok(driver.cuMemAlloc(64)), ok(driver.cuMemAllocAsync(64, CUstream(0)))
    assert code(driver.cuMemPoolExportPointer(plain)) == 1
    assert code(driver.cuMemPoolExportPointer(pooled)) == 1
    assert code(driver.cuIpcGetMemHandle(pooled)) == 1
    assert code(driver.cuIpcGetMemHandle(CUdeviceptr(16))) == 1
    there = imported(driver, driver, shared)
    assert code(driver.cuMemAllocFromPoolAsync(64, there, CUstream(0))) == 1
    wrong = ok(driver.cuMemAllocFromPoolAsync(64, other, CUstream(0)))
    assert code(driver.cuMemPoolImportPointer(there, ok(driver.cuMemPoolExportPointer(wrong)))) == 1
    assert code(driver.cuMemPoolImportPointer(there, CUmemPoolPtrExportData())) == 1
    assert (
        code(driver.cuMemPoolImportPointer(shared, ok(driver.cuMemPoolExportPointer(wrong)))) == 1
    )
    own = ok(driver.cuIpcGetMemHandle(plain))
    assert code(driver.cuIpcOpenMemHandle(own, 0)) == 1
    assert code(driver.cuIpcOpenMemHandle(own, 1)) == 201
    assert code(driver.cuIpcOpenMemHandle(CUipcMemHandle(), 1)) == 1
    assert code(driver.cuIpcCloseMemHandle(plain)) == 1
    event, untimed = ok(driver.cuEventCreate(2)), ok(driver.cuEventCreate(2 | 4))
    assert code(driver.cuIpcGetEventHandle(event)) == 400
    assert code(driver.cuIpcOpenEventHandle(ok(driver.cuIpcGetEventHandle(untimed)))) == 201
    assert code(driver.cuIpcOpenEventHandle(CUipcEventHandle())) == 1


def test_memory_shared_later_keeps_its_neighbours_and_what_is_in_them() -> None:
    driver = an_emulator()
    pointers = [ok(driver.cuMemAlloc(1000)) for _ in range(30)]
    for number, pointer in enumerate(pointers):
        fill(driver, pointer, number, 1000)
    for pointer in (*pointers[::3], pointers[0]):
        ok(driver.cuIpcGetMemHandle(pointer))
    for number, pointer in enumerate(pointers):
        assert read(driver, pointer, 1000) == bytes([number]) * 1000
        fill(driver, pointer, number + 1, 1000)
        ok(driver.cuIpcGetMemHandle(pointer))
        assert read(driver, pointer, 1000) == bytes([number + 1]) * 1000


def test_memory_shared_again_has_nothing_of_what_was_shared_at_its_place_before() -> None:
    driver, nbytes = an_emulator(), 80 << 20  # too many to wait for their next use
    first = ok(driver.cuMemAlloc(nbytes))
    fill(driver, first, 5, 4096)
    ok(driver.cuIpcGetMemHandle(first))
    ok(driver.cuMemFree(first))
    of_pool = ok(driver.cuMemAllocFromPoolAsync(nbytes, a_pool(driver), CUstream(0)))
    ok(driver.cuMemFreeAsync(of_pool, CUstream(0)))
    ok(driver.cuStreamSynchronize(CUstream(0)))
    second = ok(driver.cuMemAlloc(nbytes))
    assert int(first) == int(of_pool) == int(second)
    fill(driver, second, 0, 4096)
    ok(driver.cuIpcGetMemHandle(second))
    assert read(driver, second, 4096) == bytes(4096)


@pytest.mark.slow
def test_what_a_killed_process_had_shared_stays_with_those_that_have_it() -> None:
    killed = Peer()
    stream = cudadrv.cuda_context_for(0).default_stream
    pooled, plain = killed.ask(own_arrays)
    killed.kill()
    for array in (pooled, plain):
        assert stream.to_host(array).tolist() == [0, 1, 2, 3]
        stream.fill(array, 7)
        assert stream.to_host(array).tolist() == [7, 7, 7, 7]
    handle = IpcMemoryHandle.of(plain)
    plain.close()
    pooled.close()
    gc.collect()
    with pytest.raises(cudadrv.CudaError, match="has closed it, or has ended"):
        handle.open(stream)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [lambda: MemoryPool(shareable=True), UnpooledMemory], ids=["pool", "unpooled"]
)
def test_a_gibibyte_of_two_processes_is_one_file_with_the_pages_that_were_written(
    make: Callable[[], Any],
) -> None:
    peer, stream = Peer(), cudadrv.cuda_context_for(0).default_stream
    with cudadrv.using_memory(make()):
        array = stream.empty(1 << 30, np.uint8)
    before = files_mapped()  # what tests before this one had shared is in the file as well
    stream.fill(array[:4096], 1)
    assert peer.ask(ends_of_kept, array) == [1, 2]
    assert stream.to_host(array[-1:]).tolist() == [2]
    here, there = files_mapped(), peer.ask(files_mapped)
    (shared,) = here.keys() & there.keys()
    assert min(here[shared][0], there[shared][0]) >= 1 << 30
    assert here[shared][1] - before.get(shared, (0, 0))[1] <= 16 << 20
    assert there[shared][1] <= 16 << 20
    array.close()
    peer.end()


def ends_of_kept(array: Any) -> list[int]:
    stream = cudadrv.cuda_context_for(0).default_stream
    KEPT["gibibyte"] = array
    stream.fill(array[-4096:], 2)
    return [int(stream.to_host(end)[0]) for end in (array[:1], array[-1:])]


def files_mapped() -> dict[int, tuple[int, int]]:
    """The emulators' files in memory: bytes that are mapped, and those that take memory."""
    found: dict[int, tuple[int, int]] = {}
    inode = 0
    with open("/proc/self/smaps") as file:
        for line in file:
            words = line.split()
            if "-" in words[0]:
                inode = int(words[4]) if "memfd:cudadrv" in line else 0
            elif inode and words[0] in ("Size:", "Rss:"):
                size, rss = found.get(inode, (0, 0))
                amount = int(words[1]) << 10
                grown = (size + amount, rss) if words[0] == "Size:" else (size, rss + amount)
                found[inode] = grown
    return found


def own_arrays() -> tuple[Any, Any]:
    stream = cudadrv.cuda_context_for(0).default_stream
    for resource in (MemoryPool(shareable=True), UnpooledMemory()):
        with cudadrv.using_memory(resource):
            KEPT[type(resource).__name__] = stream.to_device(np.arange(4))
    return KEPT["MemoryPool"], KEPT["UnpooledMemory"]
