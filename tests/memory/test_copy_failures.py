"""What a copy says that the driver refuses; faults are the emulator's, on demand."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.errors import CudaError, InvalidValueError

_REFUSED = 1  # CUDA_ERROR_INVALID_VALUE
_SMALL, _MIDDLE = 16, 20_000  # float32: handed over at once, and not


@pytest.mark.parametrize("count", [_SMALL, _MIDDLE])
def test_a_refusal_is_tried_again_with_the_streams_context(count: int) -> None:
    host = np.arange(count, dtype=np.float32)
    with emulator.session() as machine:
        stream = cudadrv.cuda_context_for(0).default_stream
        for call in ("cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync"):
            with machine.fail(call, with_=_REFUSED):
                assert np.array_equal(stream.to_host(stream.to_device(host)), host)


@pytest.mark.parametrize("count", [_SMALL, _MIDDLE])
@pytest.mark.parametrize("code", [_REFUSED, 700])
def test_a_failure_names_the_call_the_bytes_and_the_device(count: int, code: int) -> None:
    host = np.arange(count, dtype=np.float32)
    with emulator.session() as machine:
        stream = cudadrv.cuda_context_for(0).default_stream
        device = stream.to_device(host)
        kind = InvalidValueError if code == _REFUSED else CudaError
        up = f"copying {host.nbytes} bytes from the host to device 0: cuMemcpyHtoDAsync answered"
        fault = machine.fail("cuMemcpyHtoDAsync", times=None, with_=code)
        with fault, pytest.raises(kind, match=up):
            stream.copy(device, host)
        down = f"copying {host.nbytes} bytes from device 0 to the host: cuMemcpyDtoHAsync answered"
        with machine.fail("cuMemcpyDtoHAsync", times=None, with_=code):
            for out in (host, np.empty(2 * count, np.float32)[::2]):
                with pytest.raises(kind, match=down):
                    stream.to_host(device, out)


def test_a_failed_wait_is_told() -> None:
    with emulator.session() as machine:
        stream = cudadrv.cuda_context_for(0).default_stream
        device = stream.zeros(4, "f4")
        fault = machine.fail("cuStreamSynchronize", with_=719)
        with fault, pytest.raises(CudaError, match="waiting for <Stream .*cuStreamSynchronize"):
            stream.to_host(device)
