"""Memory that something else allocated, owned from then on."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray, DeviceBuffer
from cudadrv.errors import ClosedError
from cudadrv.memory import DriverMemory, MemoryStream
from tests.memory_place import place_on


def allocated(stream: cudadrv.Stream, nbytes: int) -> int:
    """The address of memory that nobody owns."""
    return DriverMemory().allocate(nbytes, place_on(stream))


def test_adopted_memory_is_freed_once_after_its_uses(context: cudadrv.Context) -> None:
    given: list[tuple[int, int, int]] = []

    def release(address: int, nbytes: int, place: MemoryStream) -> None:
        given.append((address, nbytes, int(place)))
        DriverMemory().deallocate(address, nbytes, place)

    with context.new_stream() as stream, context.new_stream() as other:
        address = allocated(stream, 4000)
        buffer = DeviceBuffer.adopted(stream, address, 4000, release)
        array: DeviceArray[np.int32] = DeviceArray(buffer, 1000, np.int32)
        other.fill(array, 7)
        copied = other.contiguous(array[::2])
        part = array[5:]
        del buffer, array
        gc.collect()
        assert given == []
        del part
        gc.collect()
        assert given == [(address, 4000, int(stream.handle))]
        assert (other.to_host(copied) == 7).all()


def test_closing_frees_and_ends_all_over_it(stream: cudadrv.Stream) -> None:
    given: list[int] = []
    address = allocated(stream, 64)

    def release(address: int, nbytes: int, place: MemoryStream) -> None:
        given.append(address)
        DriverMemory().deallocate(address, nbytes, place)

    with DeviceBuffer.adopted(stream, address, 64, release) as buffer:
        array: DeviceArray[np.int32] = DeviceArray(buffer, 16, np.int32)
        assert buffer.ptr == array.ptr == address
    assert given == [address]
    with pytest.raises(ClosedError):
        stream.to_host(array)


def test_what_cannot_be_adopted_is_rejected(stream: cudadrv.Stream) -> None:
    def release(*_: object) -> None:
        raise AssertionError

    with pytest.raises(ValueError, match="DeviceBuffer.adopted: pointer"):
        DeviceBuffer.adopted(stream, 0, 8, release)
    with pytest.raises(ValueError, match="DeviceBuffer.adopted: nbytes"):
        DeviceBuffer.adopted(stream, 4096, 0, release)
    with pytest.raises(TypeError, match="DeviceBuffer.adopted: release"):
        DeviceBuffer.adopted(stream, 4096, 8, 3)  # type: ignore[arg-type]  # what is tested
