"""Memory and semaphores of other interfaces."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray
from cudadrv.driver.driver_selection import current
from cudadrv.errors import (
    ArgumentValueError,
    ClosedError,
    CudaError,
    NotSupportedError,
    StreamCaptureUnsupportedError,
    WrongDeviceError,
)
from cudadrv.interop import ExternalMemory, ExternalSemaphore
from cudadrv.memory import MappedBuffer, PhysicalMemory


@pytest.fixture
def exported() -> Iterator[tuple[PhysicalMemory, int]]:
    with PhysicalMemory(1, handle_type="posix_fd") as memory:
        number = memory.export_descriptor()
        yield memory, number
        os.close(number)


def opened(context: cudadrv.Context, number: int, nbytes: int) -> ExternalMemory:
    try:
        return ExternalMemory(context, number, nbytes)
    except CudaError as error:
        if current().is_emulated:
            raise
        pytest.skip(f"the driver imports no memory of its own: {error}")


def test_memory_is_used_by_its_descriptor(
    context: cudadrv.Context, stream: cudadrv.Stream, exported: tuple[PhysicalMemory, int]
) -> None:
    memory, number = exported
    external = opened(context, number, memory.nbytes)
    half = memory.nbytes // 2
    part = external.buffer(stream, offset=half)
    assert part.nbytes == half
    with MappedBuffer(stream, [memory]) as whole:
        own: DeviceArray[np.uint8] = DeviceArray(whole, memory.nbytes, np.uint8)
        array: DeviceArray[np.uint8] = DeviceArray(part, half, np.uint8)
        stream.fill(own, 3)
        stream.synchronize()
        assert (stream.to_host(array) == 3).all()
        stream.fill(array, 4)
        stream.synchronize()
        found = stream.to_host(own)
    assert (found[:half] == 3).all()
    assert (found[half:] == 4).all()
    # The buffer stays, and the descriptor is still the user's.
    external.close()
    with pytest.raises(ClosedError, match="external memory"):
        external.buffer(stream)
    assert (stream.to_host(array) == 4).all()
    os.fstat(number)
    del array, part
    gc.collect()


def test_wrong_parts_are_rejected(
    context: cudadrv.Context, stream: cudadrv.Stream, exported: tuple[PhysicalMemory, int]
) -> None:
    memory, number = exported
    external = opened(context, number, memory.nbytes)
    for offset, nbytes in ((0, memory.nbytes + 1), (memory.nbytes, None), (1, memory.nbytes)):
        with pytest.raises(ArgumentValueError, match="go past the end of <ExternalMemory"):
            external.buffer(stream, offset=offset, nbytes=nbytes)
    if len(cudadrv.list_devices()) > 1:
        with pytest.raises(WrongDeviceError, match="of another context"):
            external.buffer(cudadrv.cuda_context_for(1).default_stream)


def test_a_descriptor_of_something_else_is_rejected(context: cudadrv.Context) -> None:
    with open(os.devnull) as file:
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(CudaError, match="opening external memory of 4 bytes"):
            ExternalMemory(context, file.fileno(), 4)
        with pytest.raises(CudaError, match="opening an external semaphore"):
            ExternalSemaphore(context, file.fileno())
        assert len(os.listdir("/proc/self/fd")) == before
    with pytest.raises(OSError, match="ExternalMemory: descriptor: 1073741824 is not open"):
        ExternalMemory(context, 2**30, 4)
    with pytest.raises(OSError, match="ExternalSemaphore: descriptor: 1073741824 is not open"):
        ExternalSemaphore(context, 2**30)


@pytest.fixture
def event_file() -> Iterator[int]:
    if not current().is_emulated:
        pytest.skip("needs a semaphore of Vulkan; the emulator has files of events")
    number = os.eventfd(0)
    yield number
    os.close(number)


def test_a_binary_semaphore_is_waited_for_once(
    context: cudadrv.Context, stream: cudadrv.Stream, event_file: int
) -> None:
    with ExternalSemaphore(context, event_file) as semaphore, context.new_stream() as other:
        array = stream.to_device(np.arange(3))
        semaphore.signal(stream)
        semaphore.wait(other)
        other.synchronize()
        assert stream.to_host(array).tolist() == [0, 1, 2]
        os.eventfd_write(event_file, 1)  # as the other interface does
        semaphore.wait(other)
        other.synchronize()
        os.set_blocking(event_file, False)
        with pytest.raises(BlockingIOError):
            os.eventfd_read(event_file)
        with pytest.raises(ArgumentValueError, match="a binary semaphore has none"):
            semaphore.signal(stream, 3)
        with (
            pytest.raises(StreamCaptureUnsupportedError, match="records no external semaphores"),
            stream.capture(),
        ):
            semaphore.signal(stream)


def test_a_timeline_semaphore_counts_up(
    context: cudadrv.Context, stream: cudadrv.Stream, event_file: int
) -> None:
    with ExternalSemaphore(context, event_file, timeline=True) as semaphore:
        assert repr(semaphore) == "<ExternalSemaphore timeline on device 0>"
        semaphore.signal(stream, 3)
        for value in (2, 3):
            semaphore.wait(stream, value)
        semaphore.signal(stream, 7)
        semaphore.wait(stream, 5)
        stream.synchronize()
    with pytest.raises(ClosedError, match="semaphore was closed"):
        semaphore.wait(stream)
    assert os.eventfd_read(event_file) == 7


def test_a_wait_that_nothing_ends_is_reported(context: cudadrv.Context, event_file: int) -> None:
    semaphore = ExternalSemaphore(context, event_file, timeline=True)
    with (
        pytest.raises(NotSupportedError, match="value 1 of a semaphore that no earlier work"),
        context.new_stream() as stream,
    ):
        semaphore.wait(stream, 1)
        stream.synchronize()
