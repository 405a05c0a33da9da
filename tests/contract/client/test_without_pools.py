"""A client on a device whose driver has no memory pools."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv
from cudadrv import CudaClient, emulator
from cudadrv.errors import CudaError, IllegalAddressError, NotSupportedError, OutOfMemoryError

FUNCTIONS = ("cuDeviceGetDefaultMemPool", "cuMemPoolSetAttribute")
CODES = (801, 1, 101)  # and any other that leaves the device usable


def test_a_client_needs_no_memory_pool() -> None:
    wrong = []
    for function in FUNCTIONS:
        for code in CODES:
            with emulator.session(2) as machine:
                machine.fail(function, times=None, with_=code)
                try:
                    client = CudaClient(1)
                    pointer = client.allocator.allocate(64)
                    client.allocator.deallocate(pointer, 64)
                    client.synchronize()
                    client.allocator.reset()
                    assert CudaClient(1) is client
                except CudaError as error:
                    wrong.append(f"{function} returns {code}: {error!r}")
    assert not wrong, "\n".join(wrong)


def test_a_failure_of_earlier_work_is_raised() -> None:
    with emulator.session() as machine:
        machine.fail("cuMemPoolSetAttribute", times=1, with_=700)
        with pytest.raises(IllegalAddressError):
            CudaClient(0)


def test_arrays_of_other_libraries_are_found_on_devices_without_pools() -> None:
    with emulator.session(2) as machine:
        machine.fail("cuDeviceGetDefaultMemPool", times=None, with_=801)
        stream = cudadrv.cuda_context_for(1).default_stream
        array = stream.to_device(np.arange(3))
        assert stream.to_host(stream.import_array(array)).tolist() == [0, 1, 2]
        with pytest.raises(NotSupportedError):
            cudadrv.memory.pool_info(stream.context.device)


def test_a_request_that_does_not_fit_is_out_of_memory_without_a_pool_too() -> None:
    with emulator.session() as machine:
        machine.fail("cuDeviceGetDefaultMemPool", times=None, with_=801)
        client = CudaClient(0)
        with pytest.raises(OutOfMemoryError, match=f"allocating {1 << 50} bytes"):
            client.allocator.allocate(1 << 50)
