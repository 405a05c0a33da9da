"""What copies between devices ask of the driver."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.driver._api import (
    CUdevice,
    CUmemAccess_flags,
    CUmemLocation,
    CUmemLocationType,
    CUresult,
)
from cudadrv.emulator import Emulator
from cudadrv.emulator.profiles import H100, T4
from cudadrv.errors import OutOfMemoryError, PeerAccessUnsupportedError

READ_WRITE = CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE


def opened(machine: Emulator) -> list[set[int]]:
    """To which devices each device's pool was opened."""
    ordinals = range(len(machine.devices))

    def is_open(ordinal: int, peer: int) -> bool:
        location = CUmemLocation()
        location.type, location.id = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, peer
        _, pool = machine.cuDeviceGetDefaultMemPool(CUdevice(ordinal))
        return machine.cuMemPoolGetAccess(pool, location)[1] == READ_WRITE

    return [{peer for peer in ordinals if peer != own and is_open(own, peer)} for own in ordinals]


def copied() -> list[int]:
    """The values of an array that went to the second device and back, twice."""
    here, there = (cudadrv.cuda_context_for(n).default_stream for n in range(2))
    source = here.to_device(np.arange(4))
    target, back = there.zeros(4, np.int64), here.zeros(4, np.int64)
    for _ in range(2):
        there.copy(target, source)
        here.copy(back, target)
    return [int(value) for value in here.to_host(back)]


def test_the_first_copy_between_devices_opens_each_pool_to_the_other_once() -> None:
    with emulator.session([H100, H100]) as machine:
        machine.fail("cuMemPoolSetAccess", nth=3)
        assert copied() == [0, 1, 2, 3]
        assert opened(machine) == [{1}, {0}]


def test_a_copy_on_one_device_opens_nothing() -> None:
    with emulator.session([H100, H100]) as machine:
        stream = cudadrv.cuda_context_for(0).default_stream
        stream.copy(stream.zeros(4, np.int64), stream.zeros(4, np.int64))
        assert opened(machine) == [set(), set()]


def test_devices_that_do_not_reach_each_other_copy_all_the_same() -> None:
    with emulator.session([T4, T4]) as machine:
        assert copied() == [0, 1, 2, 3]
        assert opened(machine) == [set(), set()]
        here, there = (cudadrv.cuda_context_for(n) for n in range(2))
        with pytest.raises(PeerAccessUnsupportedError, match="enabling peer access of <Context pr"):
            here.enable_peer_access(there)


def test_a_pool_that_cannot_be_opened_is_reported_and_tried_again() -> None:
    with emulator.session([H100, H100]) as machine:
        machine.fail("cuMemPoolSetAccess", with_=CUresult.CUDA_ERROR_OUT_OF_MEMORY)
        with pytest.raises(OutOfMemoryError, match="letting device . access the pool of"):
            copied()
        assert copied() == [0, 1, 2, 3]
