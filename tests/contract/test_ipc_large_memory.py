"""1 GiB of device memory that two processes have without a copy."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import DeviceArray, MemoryPool
from cudadrv.memory import UnpooledMemory

from .peer import Peer

Numbers = DeviceArray[np.int32]
NBYTES = 1 << 30
SLACK = NBYTES // 8
"""What contexts and libraries may take meanwhile; a copy would take all of `NBYTES`."""
PART = 1 << 14
PLACES = range(0, NBYTES // 4, NBYTES // 32)
RESOURCES: dict[str, Callable[[], MemoryPool | UnpooledMemory]] = {
    "pool": lambda: MemoryPool(shareable=True),
    "unpooled": UnpooledMemory,
}


def large(stream: cudadrv.Stream, name: str) -> Numbers:
    """An array of 1 GiB, of which a part in every 128 MiB has numbers."""
    free = stream.context.memory_info().free
    if free < 2 * NBYTES:
        pytest.skip(f"needs {2 * NBYTES} bytes of free device memory; there are {free}")
    with cudadrv.using_memory(RESOURCES[name]()):
        array: Numbers = stream.empty(NBYTES // 4, np.int32)
    for place in PLACES:
        stream.fill(array[place : place + PART], place)
    return array


def free_bytes() -> int:
    gc.collect()
    context = cudadrv.cuda_context_for(0)
    context.synchronize()
    return context.memory_info().free


def added(array: Numbers, value: int) -> tuple[list[int], int]:
    """What stood in the parts, to which a value was added; and what was free meanwhile."""
    stream, found = cudadrv.cuda_context_for(0).default_stream, []
    for place in PLACES:
        part = array[place : place + PART]
        numbers = stream.to_host(part)
        assert (numbers == numbers[0]).all()
        found.append(int(numbers[0]))
        stream.copy(part, numbers + value)
    return found, free_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", RESOURCES)
def test_a_gibibyte_goes_to_another_process_without_a_copy(
    stream: cudadrv.Stream, peer: Peer, name: str
) -> None:
    array = large(stream, name)
    stream.synchronize()
    there, here = peer.ask(free_bytes), free_bytes()  # the peer's own context is there by then
    found, free = peer.ask(added, array, 1)
    is_ours = stream.context.device.is_emulated  # other processes use the memory of a GPU too
    assert found == list(PLACES)
    assert free > there - SLACK or not is_ours
    found, free = added(array, 1)
    assert found == [place + 1 for place in PLACES]
    assert free > here - SLACK or not is_ours


@pytest.mark.slow
@pytest.mark.parametrize("name", RESOURCES)
def test_a_process_that_dies_leaves_all_of_a_gibibyte_usable(
    stream: cudadrv.Stream, peer: Peer, name: str
) -> None:
    peer.ask(free_bytes)
    before = free_bytes()
    array = large(stream, name)
    killed = Peer()
    assert killed.ask(added, array, 1)[0] == list(PLACES)
    killed.begin(added_for_ever, array)
    killed.kill()
    for place in PLACES:
        stream.fill(array[place : place + PART], 7)
    assert peer.ask(added, array, 1)[0] == [7] * len(PLACES)
    array.close()
    stream.synchronize()
    del array
    # Other processes use the memory of a GPU too, and a pool gives it back later.
    assert free_bytes() > before - SLACK or not stream.context.device.is_emulated


def added_for_ever(array: Numbers) -> Any:
    while True:
        added(array, 1)
