from __future__ import annotations

import ctypes
from ctypes import c_uint8, c_uint32, c_uint64

import numpy as np
import pytest

from cudadrv.driver._api import (
    CUcontext,
    CUdevice,
    CUfunction,
    CUfunction_attribute,
    CUlaunchAttribute,
    CUlaunchAttributeID,
    CUlaunchConfig,
    CUmodule,
    CUresult,
    CUstream,
)
from cudadrv.emulator import A100, EmulatedDevice, Emulator

from .calls import LEGACY, OpenApi, Parameters, code, download, functions, launch, load, ok, upload
from .kernels import DYNAMIC_SHARED, EMPTY, FILL, STATIC_SHARED

ONE = (1, 1, 1)
MAX_DYNAMIC = CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


def test_parameters_are_read_from_their_addresses(api: OpenApi, module: CUmodule) -> None:
    (fill,) = functions(api, module, "fill")
    memory = ok(api.cuMemAlloc(400))
    parameters = Parameters(c_uint64(int(memory)), c_uint32(0xABCD1234), c_uint8(3))
    ok(launch(api, fill, parameters, block=(100, 1, 1)))
    assert (download(api, memory, 100) == 0xABCD1234).all()


def test_parameters_may_be_one_packed_buffer(api: OpenApi, module: CUmodule) -> None:
    """CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE in `extra`."""
    (fill,) = functions(api, module, "fill")
    memory = ok(api.cuMemAlloc(40))
    packed = ctypes.create_string_buffer(
        int(memory).to_bytes(8, "little") + (55).to_bytes(4, "little") + b"\1"
    )
    size = ctypes.c_size_t(13)
    extra = (ctypes.c_size_t * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(size), 0)
    ok(api.cuLaunchKernel(fill, 1, 1, 1, 10, 1, 1, 0, LEGACY, 0, ctypes.addressof(extra)))
    assert (download(api, memory, 10) == 55).all()


def launch_packed(api: OpenApi, function: CUfunction, nbytes: int) -> int:
    packed, size = ctypes.create_string_buffer(16), ctypes.c_size_t(nbytes)
    extra = (ctypes.c_size_t * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(size), 0)
    address = ctypes.addressof(extra)
    return code(api.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, LEGACY, 0, address))


def test_parameters_in_both_forms_are_rejected(api: OpenApi, module: CUmodule) -> None:
    """Measured on an H200, driver 580; also for a kernel without parameters."""
    (fill,) = functions(api, module, "fill")
    packed, size = ctypes.create_string_buffer(13), ctypes.c_size_t(13)
    extra = (ctypes.c_size_t * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(size), 0)
    each = (ctypes.c_size_t * 3)(*[ctypes.addressof(packed)] * 3)
    both = ctypes.addressof(each), ctypes.addressof(extra)
    assert code(api.cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, LEGACY, *both)) == 1


def test_a_packed_buffer_that_is_too_large_is_rejected(api: OpenApi, module: CUmodule) -> None:
    (fill,) = functions(api, module, "fill")
    assert launch_packed(api, fill, 16) == 701


def test_a_packed_buffer_that_is_too_small_is_rejected(emulator: Emulator) -> None:
    """The driver takes it, and the kernel reads what happens to follow."""
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    (fill,) = functions(emulator, load(emulator, FILL), "fill")
    assert launch_packed(emulator, fill, 12) == 701


@pytest.mark.parametrize(
    ("grid", "block"),
    [
        ((0, 1, 1), ONE),
        (ONE, (1, 0, 1)),
        (ONE, (1025, 1, 1)),
        (ONE, (32, 33, 1)),
        (ONE, (1, 1, 65)),
        ((1, 65536, 1), ONE),
        ((1, 1, 65536), ONE),
        ((1 << 31, 1, 1), ONE),
    ],
)
def test_extents_outside_the_limits_are_invalid_values(
    api: OpenApi, module: CUmodule, grid: tuple[int, int, int], block: tuple[int, int, int]
) -> None:
    (empty,) = functions(api, module, "empty")
    assert code(launch(api, empty, grid=grid, block=block)) == 1


@pytest.mark.parametrize(
    ("grid", "block"), [(ONE, (1, 1, 64)), (ONE, (1024, 1, 1)), ((70000, 1, 1), ONE)]
)
def test_extents_at_the_limits_run(
    api: OpenApi, module: CUmodule, grid: tuple[int, int, int], block: tuple[int, int, int]
) -> None:
    (empty,) = functions(api, module, "empty")
    assert code(launch(api, empty, grid=grid, block=block)) == 0
    assert code(api.cuCtxSynchronize()) == 0


def test_bounds_of_a_kernel_hold(api: OpenApi, module: CUmodule) -> None:
    bounded, required = functions(api, module, "bounded", "required")
    one = Parameters(c_uint32(1))
    assert code(launch(api, bounded, one, block=(129, 1, 1))) == 1
    assert code(launch(api, bounded, one, block=(64, 2, 1))) == 0
    assert code(launch(api, required, one, block=(32, 1, 1))) == 1
    assert code(launch(api, required, one, block=(64, 1, 1))) == 0


def test_missing_parameters_are_rejected(api: OpenApi, module: CUmodule) -> None:
    (fill,) = functions(api, module, "fill")
    assert code(launch(api, fill)) == 1


def test_dynamic_shared_memory_is_what_was_allowed(api: OpenApi, module: CUmodule) -> None:
    statics, empty = functions(api, module, "statics", "empty")
    into = Parameters(c_uint64(int(ok(api.cuMemAlloc(64)))))
    assert code(launch(api, empty, shared_bytes=49152)) == 0
    assert code(launch(api, empty, shared_bytes=49153)) == 1
    assert code(launch(api, statics, into, shared_bytes=48152)) == 0
    assert code(launch(api, statics, into, shared_bytes=48153)) == 1
    ok(api.cuFuncSetAttribute(empty, MAX_DYNAMIC, 60000))
    assert code(launch(api, empty, shared_bytes=60000)) == 0
    assert code(launch(api, empty, shared_bytes=60001)) == 1
    ok(api.cuFuncSetAttribute(empty, MAX_DYNAMIC, 100))
    assert code(launch(api, empty, shared_bytes=101)) == 1
    assert code(api.cuCtxSynchronize()) == 0


def test_shared_memory_above_48_kib_can_be_used(api: OpenApi, context: CUcontext) -> None:
    (dynamics,) = functions(api, load(api, DYNAMIC_SHARED), "dynamics")
    memory = ok(api.cuMemAlloc(4))
    ok(api.cuFuncSetAttribute(dynamics, MAX_DYNAMIC, 65536))
    at_the_end = Parameters(c_uint64(int(memory)), c_uint32(65536 - 4))
    ok(launch(api, dynamics, at_the_end, shared_bytes=65536))
    assert download(api, memory, 1).tolist() == [77]


def test_a_rejected_launch_leaves_nothing(api: OpenApi, module: CUmodule) -> None:
    (fill,) = functions(api, module, "fill")
    memory = ok(api.cuMemAlloc(4))
    upload(api, memory, np.array([9], np.uint32))
    parameters = Parameters(c_uint64(int(memory)), c_uint32(1), c_uint8(1))
    assert code(launch(api, fill, parameters, block=(2000, 1, 1))) == 1
    assert code(api.cuCtxSynchronize()) == 0
    assert download(api, memory, 1).tolist() == [9]


def test_a_kernel_and_its_stream_are_of_one_context(
    api: OpenApi, device: CUdevice, context: CUcontext, stream: CUstream, module: CUmodule
) -> None:
    (empty,) = functions(api, module, "empty")
    other = ok(api.cuCtxCreate(None, 0, device))
    foreign = ok(api.cuStreamCreateWithPriority(1, 0))
    assert code(launch(api, empty, stream=foreign)) == 400
    assert code(launch(api, empty)) == 400
    assert code(launch(api, empty, stream=stream)) == 0
    ok(api.cuCtxDestroy(other))
    ok(api.cuCtxPopCurrent())
    assert code(launch(api, empty, stream=stream)) == 0
    assert code(launch(api, empty)) == 201


def configured(
    grid: tuple[int, int, int],
    block: tuple[int, int, int] = (32, 1, 1),
    *,
    cooperative: bool | None = None,
    cluster: tuple[int, int, int] | None = None,
    priority: int | None = None,
) -> CUlaunchConfig:
    config = CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = block
    attributes = []
    if cooperative is not None:
        attribute = CUlaunchAttribute()
        attribute.id = CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attribute.value.cooperative = int(cooperative)
        attributes.append(attribute)
    if cluster is not None:
        attribute = CUlaunchAttribute()
        attribute.id = CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        extents = attribute.value.clusterDim
        extents.x, extents.y, extents.z = cluster
        attributes.append(attribute)
    if priority is not None:
        attribute = CUlaunchAttribute()
        attribute.id = CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PRIORITY
        attribute.value.priority = priority
        attributes.append(attribute)
    config.attrs = attributes
    config.numAttrs = len(attributes)
    return config


def test_a_configured_launch_runs(api: OpenApi, module: CUmodule) -> None:
    (fill,) = functions(api, module, "fill")
    memory = ok(api.cuMemAlloc(128))
    parameters = Parameters(c_uint64(int(memory)), c_uint32(6), c_uint8(0))
    config = configured(ONE, cooperative=False, priority=-3)
    ok(api.cuLaunchKernelEx(config, fill, parameters.address, 0))
    assert (download(api, memory, 32) == 6).all()
    assert code(api.cuLaunchKernelEx(configured((0, 1, 1)), fill, parameters.address, 0)) == 1


def test_a_cooperative_grid_must_be_resident() -> None:
    """Two multiprocessors of 2048 threads: 4 blocks of 1024, 64 of 64."""
    emulator = Emulator([EmulatedDevice(sm_count=2)])
    ok(emulator.cuInit(0))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    (empty,) = functions(emulator, load(emulator, EMPTY), "empty")
    for blocks, threads, expected in ((4, 1024, 0), (5, 1024, 720), (64, 64, 0), (65, 64, 720)):
        config = configured((blocks, 1, 1), (threads, 1, 1), cooperative=True)
        assert code(emulator.cuLaunchKernelEx(config, empty, 0, 0)) == expected
    config = configured((5, 1, 1), (1024, 1, 1), cooperative=False)
    assert code(emulator.cuLaunchKernelEx(config, empty, 0, 0)) == 0


@pytest.mark.parametrize(
    ("grid", "cluster"),
    [
        ((3, 1, 1), (2, 1, 1)),
        ((16, 1, 1), (16, 1, 1)),
        ((9, 1, 1), (9, 1, 1)),
        ((4, 1, 1), (0, 1, 1)),
        ((4, 4, 1), (4, 4, 1)),
        ((1, 1, 1), (2, 1, 1)),
    ],
)
def test_a_wrong_cluster_is_rejected(
    emulator: Emulator, grid: tuple[int, int, int], cluster: tuple[int, int, int]
) -> None:
    """As on an H200 with driver 580."""
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    (empty,) = functions(emulator, load(emulator, EMPTY), "empty")
    config = configured(grid, cluster=cluster)
    assert code(emulator.cuLaunchKernelEx(config, empty, 0, 0)) == 912


def test_a_device_without_clusters_reports_it() -> None:
    emulator = Emulator([A100])
    ok(emulator.cuInit(0))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    (empty,) = functions(emulator, load(emulator, EMPTY), "empty")
    config = configured((4, 1, 1), cluster=(2, 1, 1))
    assert code(emulator.cuLaunchKernelEx(config, empty, 0, 0)) == 801


def test_a_rejection_reports_its_numbers(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    module = load(emulator, FILL, STATIC_SHARED, DYNAMIC_SHARED)

    def said(function: CUfunction, **how: object) -> str:
        (result,) = launch(emulator, function, **how)  # type: ignore[arg-type]  # any of its options
        found = ok(emulator.cuGetErrorString(result))
        assert found is not None
        return found.decode()

    fill, statics = functions(emulator, module, "fill", "statics")
    assert "block of 1056 threads is above the limit of 1024" in said(fill, block=(32, 33, 1))
    assert "takes 3 parameters" in said(fill)
    assert "50000 bytes of dynamic shared memory are above the limit of 48152" in said(
        statics, shared_bytes=50000
    )


def test_a_text_is_of_the_last_failed_call(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    code(emulator.cuMemAlloc(1 << 45))
    code(emulator.cuEventCreate(64))
    out_of_memory = CUresult.CUDA_ERROR_OUT_OF_MEMORY
    assert ok(emulator.cuGetErrorString(out_of_memory)) == b"out of memory"
