from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.driver._api import CUfunction_attribute
from cudadrv.driver.device import Device
from cudadrv.errors import (
    ClosedError,
    InvalidDeviceError,
    InvalidValueError,
    KernelNotFoundError,
    LaunchConfigError,
)

from .conftest import compile_module

ADD = 'extern "C" __global__ void add(int* out, int v) { out[threadIdx.x] += v; }'
SCALE = """
template <typename T> __global__ void scale(T* x, T by) { x[threadIdx.x] *= by; }
__global__ void other(int* x) { x[0] = 1; }
"""
WAITING = """
extern "C" __global__ void first(int* out) {
    out[threadIdx.x] = 1 + threadIdx.x;
    asm volatile("griddepcontrol.launch_dependents;");
}
extern "C" __global__ void second(int* out, const int* in) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
    out[threadIdx.x] = 10 * in[threadIdx.x];
}
"""
ONE = LaunchConfig(1, 4)


def test_a_source_of_one_kernel_is_one_call(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    add = context.compile_kernel(ADD)
    out = stream.zeros(4, np.int32)
    add(stream, ONE, out, 3)
    context.compile_kernel(ADD, "add")(stream, ONE, out, 4)
    assert stream.to_host(out).tolist() == [7] * 4
    scale = context.compile_kernel(SCALE, "scale<int>")
    scale(stream, ONE, out, 2)
    assert stream.to_host(out).tolist() == [14] * 4


def test_several_kernels_need_a_name(context: cudadrv.Context) -> None:
    source = ADD + ADD.replace("add", "sub")
    with pytest.raises(KernelNotFoundError, match=r"2 kernels: add, sub\n  name the one"):
        context.compile_kernel(source)


def test_a_source_without_a_kernel_that_is_compiled_requests_a_name(
    context: cudadrv.Context,
) -> None:
    with pytest.raises(KernelNotFoundError, match=r"(?s)no kernel.*instance of a template"):
        context.compile_kernel("template <typename T> __global__ void scale(T* x) { *x *= 2; }")


def test_a_variable_that_is_missing_is_reported_with_its_name_expression(
    context: cudadrv.Context,
) -> None:
    with pytest.raises(KernelNotFoundError, match=r"(?s)no variable 'lost'.*such as '&lost'"):
        context.compile("__constant__ int kept[4];").global_array("lost")


def test_a_module_is_loaded_from_a_file(
    context: cudadrv.Context, stream: cudadrv.Stream, tmp_path: Path
) -> None:
    image = compile_module(context, ADD).image
    assert image is not None
    (tmp_path / "image").write_bytes(image.data)
    assert image.ptx is not None
    (tmp_path / "text.ptx").write_text(image.ptx)
    out = stream.zeros(4, np.int32)
    names = ["image", "text.ptx"] if context.device.is_emulated else ["image"]
    for name in names:
        with context.load_module(tmp_path / name) as module:
            module.kernel("add").launch(stream, ONE, out, 5)
            stream.synchronize()
    assert stream.to_host(out).tolist() == [5 * len(names)] * 4
    with pytest.raises(FileNotFoundError):
        context.load_module(tmp_path / "nothing")


def test_modules_report_when_they_are_loaded_and_closed() -> None:
    with cudadrv.Context.create(0) as context:
        seen: list[tuple[str, int]] = []

        def loaded(module: cudadrv.Module) -> None:
            seen.append(("loaded", int(module.handle)))
            module.when_closed(lambda module: seen.append(("closed", int(module.handle))))

        context.when_module_loaded(loaded)
        first, second = context.compile(ADD), context.compile(ADD)
        handles = int(first.handle), int(second.handle)
        first.close()
        first.close()
    assert seen == [
        ("loaded", handles[0]),
        ("loaded", handles[1]),
        ("closed", handles[0]),
        ("closed", handles[1]),
    ]


def test_a_module_is_closed_whatever_its_functions_raise() -> None:
    def fail(module: cudadrv.Module) -> None:
        seen.append(module)
        raise LookupError(f"function {len(seen)}")

    seen: list[cudadrv.Module] = []
    with cudadrv.Context.create(0) as context:
        module = context.compile(ADD)
        kernel = module.kernel("add")
        module.when_closed(fail)
        with pytest.raises(LookupError, match="function 1"):
            module.close()
        assert module.closed
        with pytest.raises(ClosedError):
            kernel.handle  # noqa: B018  # what is tested
        module.close()
        another, last = context.compile(ADD), context.compile(ADD)
        for each in (another, another, last):
            each.when_closed(fail)
        with pytest.raises(ExceptionGroup) as caught:
            another.close()
        assert [str(each) for each in caught.value.exceptions] == ["function 2", "function 3"]
        with pytest.raises(LookupError, match="function 4"):
            context.close()
        assert last.closed
        with pytest.raises(ClosedError):
            last.when_closed(fail)
        with pytest.raises(ClosedError):
            context.when_module_loaded(fail)
    assert seen == [module, another, another, last]


def test_the_former_methods_for_attributes_warn_and_name_the_new_way(
    context: cudadrv.Context,
) -> None:
    add, threads = context.compile_kernel(ADD), 0
    with pytest.warns(DeprecationWarning, match=r"use Kernel\.attributes\[number\]$") as read:
        assert add.attribute(threads) == add.attributes.max_threads_per_block
    shared = CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    with pytest.warns(
        DeprecationWarning, match=r"use Kernel\.attributes\[number\] = value$"
    ) as set_:
        add.set_attribute(shared, 50 << 10)
    assert add.attributes.max_dynamic_shared_bytes == 50 << 10
    assert [each.filename for each in (*read, *set_)] == [__file__] * 2


def test_attributes_of_a_kernel_are_read_and_set_by_name(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    add = context.compile_kernel(ADD)
    attributes = add.attributes
    assert attributes.registers > 0
    assert attributes.max_threads_per_block >= 256
    attributes.preferred_shared_carveout = 50
    assert attributes.preferred_shared_carveout == 50
    carveout = CUfunction_attribute.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
    assert attributes[carveout] == attributes[int(carveout)] == 50
    attributes[carveout] = 75
    assert attributes.preferred_shared_carveout == 75
    with pytest.raises(TypeError):
        list(attributes)  # type: ignore[call-overload]  # what Python would count up to
    attributes.max_dynamic_shared_bytes = 64 << 10
    assert add.attributes.max_dynamic_shared_bytes == 64 << 10
    add(stream, LaunchConfig(1, 4, shared_bytes=60 << 10), stream.zeros(4, np.int32), 1)
    stream.synchronize()
    with pytest.raises(AttributeError, match="read-only"):
        attributes.registers = 5
    with pytest.raises(InvalidValueError):
        attributes.max_dynamic_shared_bytes = 1 << 30
    assert "preferred_shared_carveout=75" in repr(attributes)


def test_a_device_is_found_by_its_pci_address_and_reports_its_properties() -> None:
    device = Device.get(0)
    assert Device.by_pci(device.pci_bus_id) is device
    assert Device.by_pci(device.pci_bus_id.upper().removeprefix("0000:")).pci_bus_id
    with pytest.raises(InvalidDeviceError, match="there are"):
        Device.by_pci("ffff:ff:1f.0")
    properties = device.properties
    assert properties.warp_size == 32
    assert properties.multiprocessor_count == device.attribute(
        cudadrv.driver.DeviceAttribute.MULTIPROCESSOR_COUNT
    )
    assert "max_threads_per_block" in dir(properties)
    with pytest.raises(AttributeError, match="no property 'colour'"):
        properties.colour  # noqa: B018


def test_a_programmatic_launch_waits_where_its_code_specifies(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    if context.device.compute_capability < (9, 0):
        pytest.skip("needs compute capability 9.0")
    module = compile_module(context, WAITING)
    first, second = module.kernel("first"), module.kernel("second")
    middle, out = stream.zeros(4, np.int32), stream.zeros(4, np.int32)
    config = LaunchConfig(1, 4, programmatic=True)
    assert "programmatic=True" in repr(config)
    for _ in range(3):
        first.launch(stream, config, middle)
        second.launch(stream, config, out, middle)
    assert stream.to_host(out).tolist() == [10, 20, 30, 40]


def test_the_clusters_that_fit_are_counted(context: cudadrv.Context) -> None:
    if context.device.compute_capability < (9, 0):
        pytest.skip("needs compute capability 9.0")
    add = context.compile_kernel(ADD)
    assert add.max_active_clusters(LaunchConfig(8, 128, cluster=4)) >= 1
    assert add.max_potential_cluster_size(LaunchConfig(8, 128)) >= 8
    small = add.max_active_clusters(LaunchConfig(8, 128, cluster=2))
    assert small >= add.max_active_clusters(LaunchConfig(8, 128, cluster=8))
    with pytest.raises(LaunchConfigError, match="no clusters"):
        add.max_active_clusters(LaunchConfig(8, 128))


OLD_PTX = """
.version 7.0
.target sm_52
.address_size 64
.visible .entry set(.param .u64 x) {
    .reg .u64 %p;
    ld.param.u64 %p, [x];
    cvta.to.global.u64 %p, %p;
    st.global.u32 [%p], 7;
    ret;
}
"""


@pytest.mark.parametrize(
    "jit",
    [
        cudadrv.launch.JitOptions(max_registers=32, optimization=1),
        cudadrv.launch.JitOptions(line_info=True),
        cudadrv.launch.JitOptions(debug=True, optimization=0),
    ],
    ids=["registers", "lines", "debug"],
)
def test_options_reach_the_compiler_of_ptx(
    context: cudadrv.Context, stream: cudadrv.Stream, jit: cudadrv.launch.JitOptions
) -> None:
    out = stream.zeros(1, np.uint32)
    with context.load_module(OLD_PTX, jit=jit) as module:
        kernel = module.kernel("set")
        assert kernel.attributes.registers <= 32
        kernel(stream, LaunchConfig(1, 1), out)
        assert stream.to_host(out).tolist() == [7]


def test_options_out_of_range_are_rejected() -> None:
    with pytest.raises(ValueError, match="max_registers is 300"):
        cudadrv.launch.JitOptions(max_registers=300)
    with pytest.raises(ValueError, match="optimization is 5"):
        cudadrv.launch.JitOptions(optimization=5)
