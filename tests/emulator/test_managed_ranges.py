"""What is said of managed memory, in ranges and in batches."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from cudadrv.driver._api import CUdeviceptr, CUstream
from cudadrv.emulator import Emulator

from .calls import LEGACY, code, ok
from .handles import RELAXED, a_stream

PAGE = 4096
DEVICE, HOST, HOST_NUMA, HOST_NUMA_CURRENT = 1, 2, 3, 4
(
    READ_MOSTLY, PREFERRED, ACCESSED_BY, PREFETCHED, PREFERRED_TYPE, PREFERRED_ID,
    PREFETCHED_TYPE, PREFETCHED_ID,
) = range(1, 9)  # fmt: skip
SET_READ_MOSTLY, UNSET_READ_MOSTLY, PREFER, PREFER_NOTHING, SET_ACCESSED, UNSET_ACCESSED = range(
    1, 7
)
CPU, NOWHERE = -1, -2


@dataclass(frozen=True)
class Place:
    """A CUmemLocation of any number."""

    type: int
    id: int = 0


@pytest.fixture
def api(in_either_order: Emulator) -> Emulator:
    return in_either_order


def told(api: Emulator, attribute: int, memory: CUdeviceptr, nbytes: int = PAGE) -> object:
    return ok(api.cuMemRangeGetAttribute(4, attribute, memory, nbytes))


def behind(memory: CUdeviceptr, nbytes: int) -> CUdeviceptr:
    return CUdeviceptr(int(memory) + nbytes)


def content(memory: CUdeviceptr, nbytes: int) -> NDArray[np.uint8]:
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(int(memory)))


def test_advice_is_returned_for_all_of_a_range_and_not_for_a_part(api: Emulator) -> None:
    memory = ok(api.cuMemAllocManaged(4 * PAGE, 1))
    ok(api.cuMemAdvise(behind(memory, PAGE), 2 * PAGE, SET_READ_MOSTLY, Place(HOST)))
    found = [told(api, READ_MOSTLY, behind(memory, at * PAGE)) for at in range(4)]
    assert found == [0, 1, 1, 0]
    assert told(api, READ_MOSTLY, behind(memory, PAGE), 2 * PAGE) == 1
    assert told(api, READ_MOSTLY, memory, 4 * PAGE) == 0
    # Advice is given to whole pages.
    ok(api.cuMemAdvise(behind(memory, PAGE + 9), 1, UNSET_READ_MOSTLY, Place(HOST)))
    assert told(api, READ_MOSTLY, behind(memory, PAGE)) == 0
    assert told(api, READ_MOSTLY, behind(memory, 2 * PAGE)) == 1


def test_a_preferred_place_is_returned_in_both_forms(api: Emulator) -> None:
    memory = ok(api.cuMemAllocManaged(PAGE, 1))
    for place, expected in (
        (Place(DEVICE, 1), [1, DEVICE, 1]),
        (Place(HOST), [CPU, HOST, CPU]),
        (Place(HOST_NUMA), [CPU, HOST, CPU]),
        (Place(HOST_NUMA_CURRENT), [CPU, HOST, CPU]),
    ):
        ok(api.cuMemAdvise(memory, PAGE, PREFER, place))
        each = (PREFERRED, PREFERRED_TYPE, PREFERRED_ID)
        assert [told(api, number, memory) for number in each] == expected
    ok(api.cuMemAdvise(memory, PAGE, PREFER_NOTHING, Place(HOST)))
    assert [told(api, each, memory) for each in (PREFERRED, PREFERRED_TYPE)] == [NOWHERE, 0]


def test_those_that_access_memory_are_reported_as_far_as_there_is_room(api: Emulator) -> None:
    memory = ok(api.cuMemAllocManaged(2 * PAGE, 1))
    for place in (Place(HOST), Place(DEVICE, 1), Place(DEVICE)):
        ok(api.cuMemAdvise(memory, 2 * PAGE, SET_ACCESSED, place))
    assert ok(api.cuMemRangeGetAttribute(16, ACCESSED_BY, memory, PAGE)) == [0, 1, CPU, NOWHERE]
    assert ok(api.cuMemRangeGetAttribute(4, ACCESSED_BY, memory, PAGE)) == [0]
    ok(api.cuMemAdvise(memory, PAGE, UNSET_ACCESSED, Place(DEVICE)))
    assert ok(api.cuMemRangeGetAttribute(8, ACCESSED_BY, memory, 2 * PAGE)) == [1, CPU]
    assert code(api.cuMemAdvise(memory, PAGE, SET_ACCESSED, Place(HOST_NUMA))) == 1


def test_a_batch_of_prefetches_is_reported_range_by_range(api: Emulator) -> None:
    stream, memory = a_stream(api), ok(api.cuMemAllocManaged(3 * PAGE, 1))
    ranges = [behind(memory, at * PAGE) for at in range(3)]
    assert told(api, PREFETCHED, memory) == NOWHERE
    places = [Place(DEVICE, 1), Place(HOST)]
    ok(api.cuMemPrefetchBatchAsync(ranges, [PAGE] * 3, 3, places, [0, 2], 2, 0, stream))
    assert [told(api, PREFETCHED, each) for each in ranges] == [1, 1, CPU]
    assert told(api, PREFETCHED, memory, 3 * PAGE) == NOWHERE
    ok(api.cuMemPrefetchAsync(memory, 3 * PAGE, Place(DEVICE), 0, stream))
    assert told(api, PREFETCHED, memory, 3 * PAGE) == 0
    asked = [PREFETCHED_TYPE, PREFETCHED_ID, READ_MOSTLY]
    assert ok(api.cuMemRangeGetAttributes([4] * 3, asked, 3, memory, PAGE)) == [DEVICE, 0, 0]


def test_what_is_discarded_has_any_content_until_it_is_written(api: Emulator) -> None:
    stream, memory = a_stream(api), ok(api.cuMemAllocManaged(2 * PAGE, 1))
    content(memory, 2 * PAGE)[:] = 5
    ok(api.cuMemDiscardBatchAsync([memory], [PAGE], 1, 0, stream))
    ok(api.cuMemsetD8Async(memory, 7, 16, stream))
    ok(api.cuStreamSynchronize(stream))
    found = content(memory, 2 * PAGE)
    assert (found[:16] == 7).all()
    assert (found[PAGE:] == 5).all()
    if api.order == "late":
        assert (found[16:PAGE] != 5).all()
    rest = [behind(memory, PAGE)]
    ok(api.cuMemDiscardAndPrefetchBatchAsync(rest, [PAGE], 1, [Place(DEVICE)], [0], 1, 0, stream))
    ok(api.cuStreamSynchronize(stream))
    assert told(api, PREFETCHED, rest[0]) == 0
    if api.order == "late":
        assert (content(rest[0], PAGE) != 5).all()


def test_memory_of_a_pool_prefers_the_place_of_that(api: Emulator) -> None:
    for place, number in ((Place(DEVICE, 1), 1), (Place(HOST), CPU), (Place(0), NOWHERE)):
        pool = ok(api.cuMemGetMemPool(place, 2))
        memory = ok(api.cuMemAllocFromPoolAsync(64, pool, LEGACY))
        assert told(api, PREFERRED, memory, 64) == number


def test_batches_that_are_none_are_rejected(api: Emulator) -> None:
    stream, memory = a_stream(api), ok(api.cuMemAllocManaged(PAGE, 1))
    other = ok(api.cuMemAlloc(PAGE))
    host = [Place(HOST)]

    def prefetch(
        memory: CUdeviceptr, nbytes: int, count: int, flags: int, stream: CUstream
    ) -> list[int]:
        where = host, [0], 1, flags, stream
        return [
            code(api.cuMemPrefetchBatchAsync([memory], [nbytes], count, *where)),
            code(api.cuMemDiscardAndPrefetchBatchAsync([memory], [nbytes], count, *where)),
            code(api.cuMemDiscardBatchAsync([memory], [nbytes], count, flags, stream)),
        ]

    assert prefetch(memory, PAGE, 1, 0, stream) == [0] * 3
    assert prefetch(other, PAGE, 1, 0, stream) == [1] * 3
    assert prefetch(memory, PAGE + 1, 1, 0, stream) == [1] * 3
    assert prefetch(memory, PAGE, 0, 0, stream) == [1] * 3
    assert prefetch(memory, PAGE, 1, 1, stream) == [1] * 3
    assert prefetch(memory, PAGE, 1, 0, LEGACY) == [1] * 3
    given = [memory], [PAGE], 1
    assert code(api.cuMemPrefetchBatchAsync(*given, None, [], 0, 0, stream)) == 1
    assert code(api.cuMemPrefetchBatchAsync(*given, host, [1], 1, 0, stream)) == 1
    assert code(api.cuMemPrefetchBatchAsync(*given, [Place(9)], [0], 1, 0, stream)) == 1
    assert code(api.cuMemPrefetchBatchAsync(*given, [Place(DEVICE, 7)], [0], 1, 0, stream)) == 101
    ok(api.cuStreamBeginCapture(stream, RELAXED))
    assert prefetch(memory, PAGE, 1, 0, stream) == [900] * 3
    ok(api.cuStreamEndCapture(stream))


def test_attributes_that_there_are_not_are_rejected(api: Emulator) -> None:
    memory, other = ok(api.cuMemAllocManaged(PAGE, 1)), ok(api.cuMemAlloc(PAGE))
    assert code(api.cuMemRangeGetAttribute(4, READ_MOSTLY, other, PAGE)) == 1
    assert code(api.cuMemRangeGetAttribute(4, READ_MOSTLY, memory, 2 * PAGE)) == 1
    assert code(api.cuMemRangeGetAttribute(8, READ_MOSTLY, memory, PAGE)) == 1
    assert code(api.cuMemRangeGetAttribute(6, ACCESSED_BY, memory, PAGE)) == 1
    assert code(api.cuMemRangeGetAttribute(4, 99, memory, PAGE)) == 1
    assert code(api.cuMemRangeGetAttributes([4], None, 0, memory, PAGE)) == 1
    assert code(api.cuMemAdvise(memory, PAGE, 99, Place(HOST))) == 1
