"""What a copy says that the driver refuses; faults are the emulator's, on demand."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.errors import CudaError, InvalidValueError
from tests.current_context import current_context
from tests.noted_calls import calls_of

_REFUSED = 1  # CUDA_ERROR_INVALID_VALUE
_SMALL, _MIDDLE, _STAGED = 16, 20_000, 1 << 20  # float32: handed over at once, not, by staging


@pytest.mark.parametrize("count", [_SMALL, _MIDDLE, _STAGED])
def test_no_copy_is_rejected_while_another_devices_context_is_current(count: int) -> None:
    host = np.arange(count, dtype=np.float32)
    copies = ("cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync")
    with emulator.session(devices=2), calls_of(*copies) as calls:
        contexts = [cudadrv.cuda_context_for(ordinal) for ordinal in (0, 1)]
        for own, other in (contexts, contexts[::-1]):
            stream = own.new_stream()
            other.bind()
            array = stream.to_device(host)
            twin = stream.empty(count, np.float32)
            stream.copy(twin, array)
            assert np.array_equal(stream.to_host(twin), host)
            assert current_context() == int(other.handle)
    assert len(calls) >= 6
    assert not any(code for _, code in calls)


@pytest.mark.parametrize("count", [_SMALL, _MIDDLE])
@pytest.mark.parametrize("code", [_REFUSED, 700])
def test_a_failure_names_the_call_the_bytes_and_the_device(count: int, code: int) -> None:
    host = np.arange(count, dtype=np.float32)
    with emulator.session() as machine:
        stream = cudadrv.cuda_context_for(0).default_stream
        device = stream.to_device(host)
        kind = InvalidValueError if code == _REFUSED else CudaError
        up = rf"copying {host.nbytes} bytes from the host to device 0:\s+cuMemcpyHtoDAsync returned"
        fault = machine.fail("cuMemcpyHtoDAsync", times=None, with_=code)
        with fault, pytest.raises(kind, match=up):
            stream.copy(device, host)
        down = (
            rf"copying {host.nbytes} bytes from device 0 to the host:\s+cuMemcpyDtoHAsync returned"
        )
        with machine.fail("cuMemcpyDtoHAsync", times=None, with_=code):
            for out in (host, np.empty(2 * count, np.float32)[::2]):
                with pytest.raises(kind, match=down):
                    stream.to_host(device, out)


def test_a_failed_wait_is_reported() -> None:
    with emulator.session() as machine:
        stream = cudadrv.cuda_context_for(0).default_stream
        device = stream.zeros(4, "f4")
        fault = machine.fail("cuStreamSynchronize", with_=719)
        with fault, pytest.raises(CudaError, match="(?s)waiting for <Stream .*cuStreamSync"):
            stream.to_host(device)
