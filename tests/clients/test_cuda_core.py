"""cuda.core compiles by NVRTC to a cubin, and launches in a graph."""

from __future__ import annotations

from pathlib import Path

from .emulated import emulated

PROGRAM = """
import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = '''
extern "C" __global__ void add(int* x, int n) { if (threadIdx.x < n) x[threadIdx.x] += 1; }
'''
device = Device()
device.set_current()
stream = device.create_stream()
options = ProgramOptions(arch=f"sm_{device.arch}")
kernel = Program(SOURCE, "c++", options).compile("cubin").get_kernel("add")
memory = device.allocate(64 * 4, stream=stream)
memory.fill(0, stream=stream)
builder = stream.create_graph_builder().begin_building()
for _ in range(3):
    launch(builder, LaunchConfig(grid=1, block=64), kernel, memory, np.int32(60))
graph = builder.end_building().complete()
graph.launch(stream)
graph.launch(stream)
found = np.zeros(64, np.int32)
driver.cuMemcpyDtoHAsync(found.ctypes.data, int(memory.handle), found.nbytes, stream.handle)
stream.sync()
print(sorted(set(found[:60].tolist())), sorted(set(found[60:].tolist())))
try:
    device.create_graph_builder().begin_building(mode="none")
except ValueError:
    print("ValueError")
"""


def test_a_graph_of_cuda_core_has_right_values(tmp_path: Path) -> None:
    ended = emulated("cuda-core", PROGRAM, tmp_path)
    assert (ended.status, ended.out) == (0, "[6] [0]\nValueError\n"), ended.err
