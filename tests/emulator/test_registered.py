from __future__ import annotations

import numpy as np

from cudadrv.driver._api import CUcontext, CUdeviceptr, CUpointer_attribute, CUstream

from .calls import OpenApi, code, ok

HOST_POINTER = CUpointer_attribute.CU_POINTER_ATTRIBUTE_HOST_POINTER
INVALID_VALUE, ALREADY, NOT_REGISTERED = 1, 712, 713


def test_registered_memory_is_known_until_it_is_the_hosts_again(
    api: OpenApi, context: CUcontext, stream: CUstream
) -> None:
    host = np.zeros(3 * 4096, np.uint8)
    at = host.ctypes.data
    # A device that reaches all memory of the host knows this as well.
    before = ok(api.cuPointerGetAttributes(1, (HOST_POINTER,), at + 5))
    assert before in ([0], [at + 5])
    ok(api.cuMemHostRegister(at, host.nbytes, 1))
    assert ok(api.cuPointerGetAttributes(1, (HOST_POINTER,), at + 5)) == [at + 5]
    ok(api.cuMemsetD8Async(CUdeviceptr(at + 1), 7, 3, stream))
    ok(api.cuStreamSynchronize(stream))
    assert host[:5].tolist() == [0, 7, 7, 7, 0]
    ok(api.cuMemHostUnregister(at))
    assert ok(api.cuPointerGetAttributes(1, (HOST_POINTER,), at + 5)) == before


def test_memory_is_registered_once(api: OpenApi, context: CUcontext) -> None:
    host = np.zeros(3 * 4096, np.uint8)
    at = host.ctypes.data
    ok(api.cuMemHostRegister(at, host.nbytes, 0))
    assert code(api.cuMemHostRegister(at, host.nbytes, 0)) == ALREADY
    assert code(api.cuMemHostUnregister(at + 4096)) == INVALID_VALUE
    ok(api.cuMemHostUnregister(at))
    assert code(api.cuMemHostUnregister(at)) == NOT_REGISTERED


def test_what_cannot_be_registered_is_rejected(api: OpenApi, context: CUcontext) -> None:
    host = np.zeros(16, np.uint8)
    assert code(api.cuMemHostRegister(0, 8, 0)) == 1
    assert code(api.cuMemHostRegister(host.ctypes.data, 0, 0)) == 1
    assert code(api.cuMemHostRegister(host.ctypes.data, 16, 1 << 10)) == 1
