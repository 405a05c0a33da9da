"""Memory that an allocator of cudadrv reuses is unwritten again, as memory of the driver is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

import numpy as np
import pytest

import cudadrv
from cudadrv import CudaClient, DeviceArena, DeviceArray, DeviceBuffer, Stream, emulator
from cudadrv.emulator import CheckName
from cudadrv.errors import CheckError
from cudadrv.memory import ArenaMemory

Floats: TypeAlias = DeviceArray[np.float32]
Borrowed: TypeAlias = Callable[[], "Iterator[tuple[Stream, Floats]]"]
COUNT: Final = 64


@contextmanager
def of_allocator(stream: Stream) -> Iterator[Borrowed]:
    client = CudaClient(0)
    allocator = client.allocator

    def borrowed() -> Iterator[tuple[Stream, Floats]]:
        address = allocator.allocate(4 * COUNT)
        with DeviceBuffer.borrowed(client.stream, address, 4 * COUNT, allocator) as buffer:
            yield client.stream, DeviceArray(buffer, COUNT, np.float32)
        allocator.deallocate(address, 4 * COUNT)

    yield borrowed


@contextmanager
def of_arena(stream: Stream) -> Iterator[Borrowed]:
    with DeviceArena(np.float32) as arena:

        def borrowed() -> Iterator[tuple[Stream, Floats]]:
            with arena.borrow(stream, COUNT) as slab:
                yield stream, slab

        yield borrowed


@contextmanager
def of_resource(stream: Stream) -> Iterator[Borrowed]:
    with cudadrv.using_memory(ArenaMemory()):

        def borrowed() -> Iterator[tuple[Stream, Floats]]:
            with stream.empty(COUNT, np.float32) as array:
                yield stream, array

        yield borrowed


WAYS: Final = {"allocator": of_allocator, "arena": of_arena, "resource": of_resource}


@pytest.mark.parametrize("checks", [("init",), ("init", "bounds")])
@pytest.mark.parametrize("way", WAYS)
def test_reused_memory_is_unwritten_again(way: str, checks: tuple[CheckName, ...]) -> None:
    with pytest.raises(CheckError, match="init: ") as caught, emulator.session(check=checks):
        stream = cudadrv.cuda_context_for(0).new_stream()
        with WAYS[way](stream) as borrowed:
            addresses = set[int]()
            for written in (COUNT, COUNT, COUNT // 2):
                for ordered, array in borrowed():
                    addresses.add(array.ptr)
                    ordered.fill(array[:written], 1)
                    ordered.to_host(array)
            assert len(addresses) == 1
    assert f"{4 * COUNT // 2} bytes of global memory" in str(caught.value)
    assert str(caught.value).count("init: ") == 1


def test_without_the_check_reused_memory_has_its_former_values() -> None:
    with emulator.session():
        stream = cudadrv.cuda_context_for(0).new_stream()
        with of_arena(stream) as borrowed:
            for _, array in borrowed():
                stream.fill(array, 3)
            for _, array in borrowed():
                assert (stream.to_host(array) == 3).all()
