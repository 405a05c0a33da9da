from __future__ import annotations

import os

import numpy as np
import pytest

from cudadrv.driver._api import (
    CUdeviceptr,
    CUmemAccess_flags,
    CUmemAccessDesc,
    CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType,
    CUmemAllocationProp,
    CUmemAllocationType,
    CUmemGenericAllocationHandle,
    CUmemLocationType,
)
from cudadrv.emulator import Emulator
from cudadrv.emulator.calls.call import pointer_to

from .calls import LEGACY, code, ok
from .test_copies import past

UNIT = 2 << 20
ACCESS = CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE


def properties() -> CUmemAllocationProp:
    result = CUmemAllocationProp()
    result.type = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    result.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    return result


def access(ordinal: int = 0, flags: CUmemAccess_flags = ACCESS) -> list[CUmemAccessDesc]:
    result = CUmemAccessDesc()
    result.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    result.location.id, result.flags = ordinal, flags
    return [result]


@pytest.fixture
def api(emulator: Emulator) -> Emulator:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    return emulator


def mapped(api: Emulator, place: CUdeviceptr, nbytes: int) -> CUmemGenericAllocationHandle:
    memory = ok(api.cuMemCreate(nbytes, properties(), 0))
    ok(api.cuMemMap(place, nbytes, 0, memory, 0))
    return memory


def test_pieces_that_follow_each_other_are_used_as_one(api: Emulator) -> None:
    free, _ = ok(api.cuMemGetInfo())
    minimum = CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    assert ok(api.cuMemGetAllocationGranularity(properties(), minimum)) == UNIT
    place = ok(api.cuMemAddressReserve(8 * UNIT, 0, 0, 0))
    assert ok(api.cuMemGetInfo())[0] == free
    first = mapped(api, place, UNIT)
    second = mapped(api, past(place, UNIT), 2 * UNIT)
    assert ok(api.cuMemGetInfo())[0] == free - 3 * UNIT
    assert code(api.cuMemsetD8Async(place, 1, 8, LEGACY)) == 1  # nobody has access yet
    ok(api.cuMemSetAccess(place, 3 * UNIT, access(), 1))
    ok(api.cuMemsetD8Async(past(place, 8), 1, 3 * UNIT - 8, LEGACY))
    assert code(api.cuMemsetD8Async(place, 1, 3 * UNIT + 1, LEGACY)) == 1
    for memory in (first, second):
        ok(api.cuMemRelease(memory))
    ok(api.cuMemUnmap(place, UNIT))
    assert code(api.cuMemsetD8Async(place, 1, 8, LEGACY)) == 1
    ok(api.cuMemsetD8Async(past(place, UNIT), 1, 2 * UNIT, LEGACY))
    ok(api.cuMemUnmap(past(place, UNIT), 2 * UNIT))
    ok(api.cuMemAddressFree(place, 8 * UNIT))
    assert ok(api.cuMemGetInfo())[0] == free


def test_memory_stays_while_it_is_mapped_or_has_a_handle(api: Emulator) -> None:
    free, _ = ok(api.cuMemGetInfo())
    place = ok(api.cuMemAddressReserve(2 * UNIT, 0, 0, 0))
    memory = mapped(api, place, UNIT)
    ok(api.cuMemUnmap(place, UNIT))
    assert ok(api.cuMemGetInfo())[0] == free - UNIT
    ok(api.cuMemMap(past(place, UNIT), UNIT, 0, memory, 0))
    ok(api.cuMemRelease(memory))
    assert code(api.cuMemRelease(memory)) == 1
    assert ok(api.cuMemGetInfo())[0] == free - UNIT
    ok(api.cuMemUnmap(past(place, UNIT), UNIT))
    assert ok(api.cuMemGetInfo())[0] == free


def test_memory_keeps_its_bytes_from_one_place_to_the_next(api: Emulator) -> None:
    first, second = (ok(api.cuMemAddressReserve(UNIT, 0, 0, 0)) for _ in range(2))
    memory = mapped(api, first, UNIT)
    ok(api.cuMemSetAccess(first, UNIT, access(), 1))
    ok(api.cuMemsetD8Async(first, 5, UNIT, LEGACY))
    ok(api.cuMemUnmap(first, UNIT))
    other = mapped(api, first, UNIT)
    ok(api.cuMemSetAccess(first, UNIT, access(), 1))
    ok(api.cuMemsetD8Async(first, 9, UNIT, LEGACY))
    ok(api.cuMemMap(second, UNIT, 0, memory, 0))
    ok(api.cuMemSetAccess(second, UNIT, access(), 1))
    found = np.zeros(UNIT, np.uint8)
    for place, value in ((second, 5), (first, 9)):
        ok(api.cuMemcpyDtoH(found.ctypes.data, place, UNIT))
        assert (found == value).all()
    ok(api.cuMemRelease(other))


def test_a_handle_is_had_again_by_any_address_of_the_memory(api: Emulator) -> None:
    free, _ = ok(api.cuMemGetInfo())
    place = ok(api.cuMemAddressReserve(UNIT, 0, 0, 0))
    memory = mapped(api, place, UNIT)
    ok(api.cuMemRelease(memory))
    for address in (place, past(place, UNIT - 1)):
        assert int(ok(api.cuMemRetainAllocationHandle(address))) == int(memory)
    assert code(api.cuMemRetainAllocationHandle(past(place, UNIT))) == 1
    ok(api.cuMemUnmap(place, UNIT))
    for left in (free - UNIT, free):
        ok(api.cuMemRelease(memory))
        assert ok(api.cuMemGetInfo())[0] == left
    assert code(api.cuMemRelease(memory)) == 1


def test_ranges_are_held_to_their_rules(api: Emulator) -> None:
    place = ok(api.cuMemAddressReserve(4 * UNIT, 0, 0, 0))
    memory = mapped(api, place, UNIT)
    other = ok(api.cuMemCreate(UNIT, properties(), 0))
    assert code(api.cuMemAddressReserve(UNIT + 1, 0, 0, 0)) == 1
    assert code(api.cuMemCreate(UNIT + 1, properties(), 0)) == 1
    assert code(api.cuMemCreate(UNIT, None, 0)) == 1
    assert code(api.cuMemCreate(1 << 50, properties(), 0)) == 2
    assert code(api.cuMemMap(place, UNIT, 0, other, 0)) == 1  # something is there
    assert code(api.cuMemMap(past(place, 4 * UNIT), UNIT, 0, other, 0)) == 1
    assert code(api.cuMemMap(past(place, UNIT), UNIT, 1, memory, 0)) == 1
    assert code(api.cuMemUnmap(place, UNIT // 2)) == 1
    assert code(api.cuMemSetAccess(place, 2 * UNIT, access(), 1)) == 1
    assert code(api.cuMemSetAccess(place, UNIT, access(1), 1)) == 801
    assert code(api.cuMemAddressFree(place, 4 * UNIT)) == 1
    exported = properties()
    exported.requestedHandleTypes = CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_WIN32
    assert code(api.cuMemCreate(UNIT, exported, 0)) == 801


def test_access_is_taken_away_again(api: Emulator) -> None:
    place = ok(api.cuMemAddressReserve(2 * UNIT, 0, 0, 0))
    mapped(api, place, 2 * UNIT)
    ok(api.cuMemSetAccess(place, 2 * UNIT, access(), 1))
    ok(api.cuMemsetD8Async(place, 1, 8, LEGACY))
    none = CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE
    ok(api.cuMemSetAccess(place, 2 * UNIT, access(flags=none), 1))
    assert code(api.cuMemsetD8Async(place, 1, 8, LEGACY)) == 1


def test_memory_made_to_be_shared_is_mapped_where_it_is_imported(api: Emulator) -> None:
    files = CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    free, _ = ok(api.cuMemGetInfo())
    shared = properties()
    shared.requestedHandleTypes = files
    place = ok(api.cuMemAddressReserve(4 * UNIT, 0, 0, 0))
    memory = ok(api.cuMemCreate(UNIT, shared, 0))
    number = ok(api.cuMemExportToShareableHandle(memory, files, 0))
    assert isinstance(number, int)
    assert code(api.cuMemExportToShareableHandle(memory, files, 1)) == 1
    again = ok(api.cuMemImportFromShareableHandle(number, files))
    os.close(number)
    assert ok(api.cuMemGetInfo())[0] == free - UNIT
    for at, handle in ((place, memory), (past(place, 2 * UNIT), again)):
        ok(api.cuMemMap(at, UNIT, 0, handle, 0))
        ok(api.cuMemSetAccess(at, UNIT, access(), 1))
        ok(api.cuMemRelease(handle))
    ok(api.cuMemsetD8Async(place, 7, UNIT, LEGACY))
    found = np.zeros(UNIT, np.uint8)
    ok(api.cuMemcpyDtoHAsync(found.ctypes.data, past(place, 2 * UNIT), UNIT, LEGACY))
    assert (found == 7).all()
    ok(api.cuMemUnmap(place, UNIT))
    ok(api.cuMemcpyDtoHAsync(found.ctypes.data, past(place, 2 * UNIT), UNIT, LEGACY))
    assert (found == 7).all()
    ok(api.cuMemUnmap(past(place, 2 * UNIT), UNIT))
    ok(api.cuMemAddressFree(place, 4 * UNIT))
    assert ok(api.cuMemGetInfo())[0] == free
    private = ok(api.cuMemCreate(UNIT, properties(), 0))
    assert code(api.cuMemExportToShareableHandle(private, files, 0)) == 1
    with open("/dev/null") as file:
        assert code(api.cuMemImportFromShareableHandle(file.fileno(), files)) == 1


def test_memory_has_several_addresses(api: Emulator) -> None:
    free, _ = ok(api.cuMemGetInfo())
    place = ok(api.cuMemAddressReserve(2 * UNIT, 0, 0, 0))
    memory = mapped(api, place, UNIT)
    ok(api.cuMemSetAccess(place, UNIT, access(), 1))
    ok(api.cuMemsetD8Async(place, 5, UNIT, LEGACY))
    again = past(place, UNIT)
    ok(api.cuMemMap(again, UNIT, 0, memory, 0))
    ok(api.cuMemSetAccess(again, UNIT, access(), 1))
    assert ok(api.cuMemGetInfo())[0] == free - UNIT
    found = np.zeros(UNIT, np.uint8)
    ok(api.cuMemcpyDtoH(found.ctypes.data, again, UNIT))
    assert (found == 5).all()
    ok(api.cuMemsetD8Async(again, 6, UNIT, LEGACY))
    ok(api.cuMemUnmap(again, UNIT))
    ok(api.cuMemcpyDtoH(found.ctypes.data, place, UNIT))
    assert (found == 6).all()
    ok(api.cuMemUnmap(place, UNIT))
    ok(api.cuMemMap(again, UNIT, 0, memory, 0))
    ok(api.cuMemSetAccess(again, UNIT, access(), 1))
    ok(api.cuMemcpyDtoH(found.ctypes.data, again, UNIT))
    assert (found == 6).all()
    ok(api.cuMemUnmap(again, UNIT))
    ok(api.cuMemRelease(memory))
    assert ok(api.cuMemGetInfo())[0] == free


def test_memory_of_the_host_uses_no_device_memory(api: Emulator) -> None:
    free, _ = ok(api.cuMemGetInfo())
    of_host = properties()
    of_host.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA
    of_host.location.id = 1
    assert code(api.cuMemCreate(UNIT, of_host, 0)) == 1  # the host has one node
    of_host.location.id = 0
    memory = ok(api.cuMemCreate(UNIT, of_host, 0))
    assert ok(api.cuMemGetInfo())[0] == free
    seen = ok(api.cuMemGetAllocationPropertiesFromHandle(memory))
    assert (int(seen.location.type), seen.location.id) == (int(of_host.location.type), 0)
    place = ok(api.cuMemAddressReserve(UNIT, 0, 0, 0))
    ok(api.cuMemMap(place, UNIT, 0, memory, 0))
    assert ok(api.cuMemGetAccess(access()[0].location, place)) == 0
    ok(api.cuMemSetAccess(place, UNIT, access(), 1))
    assert ok(api.cuMemGetAccess(access()[0].location, place)) == 3
    ok(api.cuMemsetD8Async(place, 5, UNIT, LEGACY))
    ok(api.cuMemUnmap(place, UNIT))
    ok(api.cuMemRelease(memory))
    assert code(api.cuMemGetAllocationPropertiesFromHandle(memory)) == 1


def test_a_fabric_handle_opens_memory_while_its_owner_has_it(api: Emulator) -> None:
    fabric = CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_FABRIC
    shared = properties()
    shared.requestedHandleTypes = fabric
    memory = ok(api.cuMemCreate(UNIT, shared, 0))
    exported = ok(api.cuMemExportToShareableHandle(memory, fabric, 0))
    again = ok(api.cuMemImportFromShareableHandle(pointer_to(exported), fabric))
    places = [ok(api.cuMemAddressReserve(UNIT, 0, 0, 0)) for _ in range(2)]
    for place, handle in zip(places, (memory, again), strict=True):
        ok(api.cuMemMap(place, UNIT, 0, handle, 0))
        ok(api.cuMemSetAccess(place, UNIT, access(), 1))
        ok(api.cuMemRelease(handle))
    ok(api.cuMemsetD8Async(places[0], 7, UNIT, LEGACY))
    found = np.zeros(UNIT, np.uint8)
    ok(api.cuMemcpyDtoH(found.ctypes.data, places[1], UNIT))
    assert (found == 7).all()
    for place in places:
        ok(api.cuMemUnmap(place, UNIT))
    assert code(api.cuMemImportFromShareableHandle(pointer_to(exported), fabric)) == 1
    assert code(api.cuMemImportFromShareableHandle(0, fabric)) == 1
