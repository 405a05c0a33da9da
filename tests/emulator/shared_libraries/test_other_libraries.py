"""Other libraries themselves, on the emulator: cuda.core, and Numba where it is installed."""

from __future__ import annotations

import importlib.util

import pytest

from .process import run, run_program


def has(name: str) -> bool:
    """Whether a module is installed; asked without importing it."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.skipif(not has("cuda.core"), reason="needs cuda-core")
def test_cuda_core_compiles_launches_captures_and_replays() -> None:
    out = run_program("""
        stand_in()
        from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
        device = Device(0)
        device.set_current()
        stream = device.create_stream()
        source = 'extern "C" __global__ void raise_by(int *p, int by) { p[threadIdx.x] += by; }'
        options = ProgramOptions(arch=f"sm_{device.arch}")
        module = Program(source, "c++", options=options).compile("ptx")
        kernel = module.get_kernel("raise_by")
        memory = device.allocate(16, stream=stream)
        memory.fill(0, stream=stream)
        config = LaunchConfig(grid=1, block=4)
        launch(stream, config, kernel, memory, np.int32(5))
        builder = device.create_graph_builder()
        builder.begin_building()
        launch(builder, config, kernel, memory, np.int32(100))
        graph = builder.end_building().complete()
        for _ in range(2):
            graph.launch(stream)
        stream.sync()
        print(read(driver.CUdeviceptr(int(memory.handle)), 4), kernel.attributes.num_regs > 0)
    """)
    assert out == "[205, 205, 205, 205] True\n"


@pytest.mark.skipif(not has("numba_cuda"), reason="needs numba-cuda")
def test_numba_compiles_and_launches() -> None:
    program = """
import numpy as np
from numba import cuda

@cuda.jit
def add(x, y, out):
    at = cuda.grid(1)
    if at < out.size:
        out[at] = x[at] + y[at]

x = np.arange(1000, dtype=np.float32)
out = np.zeros_like(x)
add[8, 128](x, x, out)
print((out == 2 * x).all(), len(cuda.gpus))
"""
    ended = run(
        "-m", "cudadrv", "emulate", "--devices", "2", "python", "-W", "ignore", "-c", program
    )
    assert (ended.status, ended.out) == (0, "True 2\n"), ended.err
