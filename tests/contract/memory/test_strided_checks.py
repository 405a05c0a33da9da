"""What the emulator's checks say of copies of views, which a kernel makes."""

from __future__ import annotations

import pytest

import cudadrv
from cudadrv import LaunchConfig, emulator
from cudadrv.errors import CheckError
from tests.contract.conftest import compile_module


def test_checks_take_a_copy_of_a_view_for_a_copy() -> None:
    """What nothing has written may be copied; the kernels of copies are kept by the context."""
    with emulator.session(check=("init", "race", "leak")) as machine:
        stream = cudadrv.cuda_context_for(0).default_stream
        with stream.empty((6, 5), "f4") as array, stream.zeros((5, 6, 3), "f4") as target:
            array[:3] = 1
            target[..., 1] = array.T
            assert (stream.to_host(target[:, :3, 1]) == 1).all()
    assert machine.findings == ()


def test_what_a_copy_of_a_view_left_unwritten_is_found_where_it_is_used() -> None:
    source = """
    extern "C" __global__ void read(const float* x, float* out) { out[0] = x[threadIdx.x] + 1; }
    """
    with pytest.raises(CheckError, match="kernel read"), emulator.session(check=("init",)):
        context = cudadrv.cuda_context_for(0)
        stream = context.new_stream()
        array, out = stream.empty((6, 5), "f4"), stream.zeros(1, "f4")
        dense = stream.contiguous(array.T)
        kernel = compile_module(context, source).kernel("read")
        kernel.launch(stream, LaunchConfig(1, 1), dense, out)
        stream.synchronize()
