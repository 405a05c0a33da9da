from __future__ import annotations

import pytest

from cudadrv.driver._api import (
    CUcontext,
    CUdevice_attribute,
    CUfunction,
    CUfunction_attribute,
    CUmodule,
)
from cudadrv.emulator import H100, T4, Emulator
from cudadrv.emulator.occupancy import blocks_per_sm
from cudadrv.emulator.profiles import device_attributes
from tests.rows import all_rows

from .calls import OpenApi, code, functions, load, ok
from .kernels import EMPTY, STATIC_SHARED

F = CUfunction_attribute
MAX_DYNAMIC = F.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


def test_attributes_of_a_kernel(api: OpenApi, module: CUmodule) -> None:
    (statics,) = functions(api, module, "statics")

    def attribute(which: F) -> int:
        return ok(api.cuFuncGetAttribute(which, statics))

    assert attribute(F.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 1024
    assert attribute(F.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 1000
    assert attribute(F.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) == 0
    assert 0 < attribute(F.CU_FUNC_ATTRIBUTE_NUM_REGS) <= 64
    assert attribute(F.CU_FUNC_ATTRIBUTE_PTX_VERSION) == 70
    assert attribute(F.CU_FUNC_ATTRIBUTE_CACHE_MODE_CA) == 0
    assert attribute(MAX_DYNAMIC) == 49152 - 1000
    assert attribute(F.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) == -1


def test_the_binary_version_is_the_device_s(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    (empty,) = functions(emulator, load(emulator, EMPTY), "empty")
    assert ok(emulator.cuFuncGetAttribute(F.CU_FUNC_ATTRIBUTE_BINARY_VERSION, empty)) == 90


def test_launch_bounds_limit_the_threads(api: OpenApi, module: CUmodule) -> None:
    (bounded,) = functions(api, module, "bounded")
    most = F.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
    assert ok(api.cuFuncGetAttribute(most, bounded)) == 128


def test_dynamic_shared_memory_is_bounded_by_the_device(api: OpenApi, module: CUmodule) -> None:
    empty, statics = functions(api, module, "empty", "statics")
    device = ok(api.cuCtxGetDevice())
    optin = ok(
        api.cuDeviceGetAttribute(
            CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device
        )
    )
    for function, most in ((empty, optin), (statics, optin - 1000)):
        assert code(api.cuFuncSetAttribute(function, MAX_DYNAMIC, -1)) == 1
        assert code(api.cuFuncSetAttribute(function, MAX_DYNAMIC, most + 1)) == 1
        for value in (0, 100, 49152 - 1000, most):
            assert code(api.cuFuncSetAttribute(function, MAX_DYNAMIC, value)) == 0
            assert ok(api.cuFuncGetAttribute(MAX_DYNAMIC, function)) == value


def test_what_can_be_set_is_checked(api: OpenApi, module: CUmodule) -> None:
    (empty,) = functions(api, module, "empty")
    carveout = F.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
    for value, expected in ((101, 1), (50, 0), (-1, 0), (-2, 1)):
        assert code(api.cuFuncSetAttribute(empty, carveout, value)) == expected
    static = F.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
    assert code(api.cuFuncSetAttribute(empty, static, 5)) == 1
    portable = F.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
    assert code(api.cuFuncSetAttribute(empty, portable, 1)) == 0


def test_parameters_are_reported_by_offset_and_size(api: OpenApi, module: CUmodule) -> None:
    (fill,) = functions(api, module, "fill")
    assert [ok(api.cuFuncGetParamInfo(fill, i)) for i in range(3)] == [(0, 8), (8, 4), (12, 1)]
    assert code(api.cuFuncGetParamInfo(fill, 3)) == 1


def test_null_functions(api: OpenApi, context: CUcontext) -> None:
    null = CUfunction(0)
    assert code(api.cuFuncGetAttribute(MAX_DYNAMIC, null)) == 400
    assert code(api.cuFuncSetAttribute(null, MAX_DYNAMIC, 1)) == 400
    assert code(api.cuOccupancyMaxActiveBlocksPerMultiprocessor(null, 32, 0)) == 400
    assert code(api.cuFuncGetName(null)) == 1
    assert code(api.cuFuncGetParamInfo(null, 0)) == 1


# Read on an H200 (the same multiprocessors as the H100's) for a kernel of few registers:
# threads, dynamic shared memory, blocks.
HOPPER = [
    (1, 0, 32), (32, 0, 32), (64, 0, 32), (96, 0, 21), (128, 0, 16), (160, 0, 12), (256, 0, 8),
    (512, 0, 4), (768, 0, 2), (1024, 0, 2), (1025, 0, 0), (256, 1, 8), (256, 1024, 8),
    (256, 16384, 8), (256, 49152, 4), (256, 100000, 2), (256, 232448, 1), (128, 3000, 16),
]  # fmt: skip


@all_rows
@pytest.mark.parametrize(("threads", "shared", "blocks"), HOPPER)
def test_occupancy_is_that_of_hopper(threads: int, shared: int, blocks: int) -> None:
    emulator = Emulator([H100])
    ok(emulator.cuInit(0))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    (empty,) = functions(emulator, load(emulator, EMPTY), "empty")
    ok(emulator.cuFuncSetAttribute(empty, MAX_DYNAMIC, 232448))
    found = emulator.cuOccupancyMaxActiveBlocksPerMultiprocessor(empty, threads, shared)
    assert ok(found) == blocks


def test_occupancy_is_0_above_what_may_be_requested(api: OpenApi, module: CUmodule) -> None:
    (statics,) = functions(api, module, "statics")
    assert ok(api.cuOccupancyMaxActiveBlocksPerMultiprocessor(statics, 256, 100000)) == 0
    assert code(api.cuOccupancyMaxActiveBlocksPerMultiprocessor(statics, 0, 0)) == 1
    assert code(api.cuOccupancyMaxActiveBlocksPerMultiprocessor(statics, -1, 0)) == 1


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "blocks"),
    [(256, 32, 0, 4), (1024, 64, 0, 1), (128, 128, 0, 4), (256, 32, 30000, 2), (64, 255, 0, 4)],
)
def test_occupancy_is_that_of_turing(
    threads: int, registers: int, shared: int, blocks: int
) -> None:
    """By hand, from 64 Ki registers, 1024 threads and 64 KiB of shared memory."""
    assert blocks_per_sm(device_attributes(T4, 0), threads, registers, shared) == blocks


def test_static_shared_memory_counts(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    (statics,) = functions(emulator, load(emulator, STATIC_SHARED), "statics")
    ok(emulator.cuFuncSetAttribute(statics, MAX_DYNAMIC, 115000))
    # 228 KiB hold two of 1000 + 114,000 + 1024 bytes, but only one more byte a block.
    found = emulator.cuOccupancyMaxActiveBlocksPerMultiprocessor
    assert ok(found(statics, 32, 114000)) == 2
    assert ok(found(statics, 32, 115000)) == 1
