"""Other libraries themselves, on the emulator: cuda.core, and Numba where it is installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.lib import NumpyVersion

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


@pytest.mark.slow
@pytest.mark.skipif(not has("cuda.core"), reason="needs cuda-core")
def test_graph_builders_of_cuda_core_have_conditions_after_other_nodes() -> None:
    out = run_program("""
        stand_in()
        from cuda.core import Device, LaunchConfig, ObjectCode, launch
        device = Device(0)
        device.set_current()
        stream = device.create_stream()
        memory = device.allocate(4, stream=stream)
        memory.fill(0, stream=stream)
        function = ObjectCode.from_ptx(PTX).get_kernel("increment")
        config = LaunchConfig(grid=1, block=1)
        builder = device.create_graph_builder().begin_building()
        launch(builder, config, function, memory)
        # The names of older versions of cuda.core, and of newer ones.
        condition = getattr(builder, "create_condition", None) or builder.create_conditional_handle
        branch = getattr(builder, "if_then", None) or builder.if_cond
        body = branch(condition(default_value=1)).begin_building()
        launch(body, config, function, memory)
        body.end_building()
        graph = builder.end_building().complete()
        for _ in range(2):
            graph.launch(stream)
        stream.sync()
        print(read(driver.CUdeviceptr(int(memory.handle)), 1))
    """)
    assert out == "[4]\n"


@pytest.mark.slow
@pytest.mark.skipif(not has("cuda.core"), reason="needs cuda-core")
def test_cuda_core_grows_reserved_ranges() -> None:
    out = run_program("""
        stand_in()
        from cuda.core import Device, VirtualMemoryResource
        device = Device(0)
        device.set_current()
        stream = device.create_stream()
        resource = VirtualMemoryResource(device)
        buffer = resource.allocate(1 << 21)
        buffer.fill(5, stream=stream)
        stream.sync()
        grown = resource.modify_allocation(buffer, 1 << 22)
        print(grown.size >> 20, read(driver.CUdeviceptr(int(grown.handle)), 1))
    """)
    assert out == "4 [84215045]\n"


SHARED_BY_CUDA_CORE = """
import ctypes
import multiprocessing
from cuda.bindings import driver
from cuda.core import Device, DeviceMemoryResource, DeviceMemoryResourceOptions, EventOptions

def copied(buffer, stream):
    found = ctypes.create_string_buffer(buffer.size)
    driver.cuMemcpyDtoH(ctypes.addressof(found), int(buffer.handle), buffer.size)
    return found.raw

def take_part(device, buffer, event):
    device.set_current()
    stream = device.create_stream()
    stream.wait(event)
    stream.sync()
    print(copied(buffer, stream), flush=True)
    buffer.fill(7, stream=stream)
    stream.sync()
    buffer.close(stream)
    stream.sync()

if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    pool = DeviceMemoryResource(device, options=DeviceMemoryResourceOptions(ipc_enabled=True))
    buffer = pool.allocate(4, stream=stream)
    buffer.fill(5, stream=stream)
    event = stream.record(options=EventOptions(ipc_enabled=True))
    stream.sync()
    child = multiprocessing.Process(target=take_part, args=(device, buffer, event))
    child.start()
    child.join()
    print(child.exitcode, copied(buffer, stream))
    buffer.close(stream)
"""


@pytest.mark.slow
@pytest.mark.skipif(not has("cuda.core"), reason="needs cuda-core")
def test_processes_of_cuda_core_share_memory_and_events(tmp_path: Path) -> None:
    program = tmp_path / "shared.py"
    program.write_text(SHARED_BY_CUDA_CORE)
    ended = run("-m", "cudadrv", "emulate", "--", sys.executable, str(program))
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.splitlines() == [str(bytes([5] * 4)), f"0 {bytes([7] * 4)!r}"]


@pytest.mark.slow
@pytest.mark.skipif(not has("cuda.bindings"), reason="needs cuda-bindings")
def test_handles_of_memory_pass_through_the_functions_of_c() -> None:
    out = run_program("""
        stand_in()
        prepare()
        memory = ok(driver.cuMemAlloc(64))
        handle = ok(driver.cuIpcGetMemHandle(memory))
        print(ctypes.string_at(handle.getPtr(), 8))
        print(int(driver.cuIpcOpenMemHandle(handle, 1)[0]))
        print(int(driver.cuIpcCloseMemHandle(memory)[0]))
        event = ok(driver.cuEventCreate(2 | 4))
        print(int(driver.cuIpcOpenEventHandle(ok(driver.cuIpcGetEventHandle(event)))[0]))
    """)
    assert out == "b'cudadrv1'\n201\n1\n201\n"


@pytest.mark.slow
@pytest.mark.skipif(not has("cuda.core"), reason="needs cuda-core")
def test_kernels_copy_by_the_tensor_maps_of_cuda_core() -> None:
    out = run_program("""
        stand_in()
        import cuda.core
        from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
        from cuda.core.utils import StridedMemoryView
        if not hasattr(cuda.core, "TensorMapDescriptor"):
            print([20, 21, 22, 23])  # this version has none
            sys.exit()
        device = Device(0)
        device.set_current()
        stream = device.create_stream()
        source = r'''
        struct alignas(64) Map { unsigned long long opaque[16]; };
        extern "C" __global__ void bring(const __grid_constant__ Map map, unsigned *out) {
          __shared__ alignas(128) unsigned box[4];
          __shared__ unsigned long long bar;
          unsigned b = __cvta_generic_to_shared(&bar), to = __cvta_generic_to_shared(box);
          asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(b) : "memory");
          asm volatile("{.reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], 16;}"
                       :: "r"(b) : "memory");
          asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                       ".mbarrier::complete_tx::bytes [%0], [%1, {4, 1}], [%2];"
                       :: "r"(to), "l"(&map), "r"(b) : "memory");
          asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;"
                       "@!p bra W;}" :: "r"(b) : "memory");
          for (int k = 0; k < 4; ++k) out[k] = box[k];
        }'''
        options = ProgramOptions(arch=f"sm_{device.arch}")
        kernel = Program(source, "c++", options=options).compile("ptx").get_kernel("bring")
        memory, result = device.allocate(512, stream=stream), device.allocate(16, stream=stream)
        values = np.arange(128, dtype=np.uint32)
        ok(driver.cuMemcpyHtoD(int(memory.handle), values.ctypes.data, values.nbytes))
        view = StridedMemoryView.from_buffer(memory, (8, 16), dtype=np.dtype(np.uint32))
        launch(stream, LaunchConfig(grid=1, block=1), kernel, view.as_tensor_map((1, 4)), result)
        stream.sync()
        print(read(driver.CUdeviceptr(int(result.handle)), 4))
    """)
    assert out == "[20, 21, 22, 23]\n"


@pytest.mark.skipif(
    not has("numba_cuda") or NumpyVersion(np.__version__) >= "2.5.0",
    reason="needs numba-cuda, and NumPy before 2.5, with which it compiles",
)
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
