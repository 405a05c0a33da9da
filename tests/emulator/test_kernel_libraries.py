from __future__ import annotations

from ctypes import c_uint32, c_uint64
from typing import Final

import pytest

from cudadrv.driver._api import (
    CUdeviceptr,
    CUfunction,
    CUfunction_attribute,
    CUjit_option,
    CUmodule,
    CUresult,
    CUstream,
)
from cudadrv.emulator import Emulator
from cudadrv.emulator.calls.call import state_of

from .calls import Parameters, code, download, launch, ok, text
from .kernels import FILL, INCREMENT, STATIC_SHARED

_DYNAMIC: Final = CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_VARIABLE: Final = ".visible .global .align 4 .u32 counter = 7;\n"


def library_of(api: Emulator, *kernels: str) -> int:
    return ok(api.cuLibraryLoadData(text(*kernels), (), (), 0, (), (), 0))


def contexts(api: Emulator) -> list[int]:
    """The primary contexts of both devices; none is current."""
    return [int(ok(api.cuDevicePrimaryCtxRetain(ok(api.cuDeviceGet(n))))) for n in range(2)]


def test_a_kernel_of_a_library_runs_in_the_context_of_the_stream(emulator: Emulator) -> None:
    library = library_of(emulator, FILL)
    kernel = ok(emulator.cuLibraryGetKernel(library, b"fill"))
    found = []
    for ordinal in range(2):
        context = ok(emulator.cuDevicePrimaryCtxRetain(ok(emulator.cuDeviceGet(ordinal))))
        ok(emulator.cuCtxSetCurrent(context))
        stream = ok(emulator.cuStreamCreate(1))
        memory = ok(emulator.cuMemAlloc(4))
        given = Parameters(c_uint64(int(memory)), c_uint32(ordinal + 5), c_uint32(0))
        ok(launch(emulator, CUfunction(kernel), given, stream=stream))
        ok(emulator.cuStreamSynchronize(stream))
        found += download(emulator, memory, 1).tolist()
    assert found == [5, 6]


def test_each_context_has_variables_of_its_own(emulator: Emulator) -> None:
    library = library_of(emulator, _VARIABLE)
    places = []
    for ordinal in range(2):
        context = ok(emulator.cuDevicePrimaryCtxRetain(ok(emulator.cuDeviceGet(ordinal))))
        ok(emulator.cuCtxSetCurrent(context))
        address, nbytes = ok(emulator.cuLibraryGetGlobal(library, b"counter"))
        assert (nbytes, download(emulator, address, 1).tolist()) == (4, [7])
        places.append(int(address))
    assert places[0] != places[1]
    assert code(emulator.cuLibraryGetGlobal(library, b"absent")) == CUresult.CUDA_ERROR_NOT_FOUND


def test_what_a_library_has_can_be_queried(emulator: Emulator) -> None:
    library = library_of(emulator, FILL, INCREMENT)
    *kernels, beyond = ok(emulator.cuLibraryEnumerateKernels(3, library))
    assert beyond == 0
    assert ok(emulator.cuLibraryGetKernelCount(library)) == 2
    assert [ok(emulator.cuKernelGetName(each)) for each in kernels] == [b"fill", b"increment"]
    assert {ok(emulator.cuKernelGetLibrary(each)) for each in kernels} == {library}
    assert code(emulator.cuKernelGetName(0)) == CUresult.CUDA_ERROR_INVALID_VALUE
    absent = emulator.cuLibraryGetKernel(library, b"absent")
    assert code(absent) == CUresult.CUDA_ERROR_NOT_FOUND


def test_an_attribute_of_a_kernel_holds_on_its_device_alone(emulator: Emulator) -> None:
    contexts(emulator)
    kernel = ok(emulator.cuLibraryGetKernel(library_of(emulator, STATIC_SHARED), b"statics"))
    before = ok(emulator.cuKernelGetAttribute(_DYNAMIC, kernel, 1))
    ok(emulator.cuKernelSetAttribute(_DYNAMIC, 60_000, kernel, 0))
    assert ok(emulator.cuKernelGetAttribute(_DYNAMIC, kernel, 0)) == 60_000
    assert ok(emulator.cuKernelGetAttribute(_DYNAMIC, kernel, 1)) == before


def test_attributes_of_a_kernel_need_no_context(emulator: Emulator) -> None:
    kernel = ok(emulator.cuLibraryGetKernel(library_of(emulator, STATIC_SHARED), b"statics"))
    before = state_of(emulator).devices.visible[1].memory.used_bytes
    shared = CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
    assert ok(emulator.cuKernelGetAttribute(shared, kernel, 1)) > 0
    ok(emulator.cuKernelSetAttribute(_DYNAMIC, 50_000, kernel, 1))
    assert ok(emulator.cuKernelGetAttribute(_DYNAMIC, kernel, 1)) == 50_000
    assert ok(emulator.cuKernelGetAttribute(_DYNAMIC, kernel, 0)) < 50_000
    assert state_of(emulator).devices.visible[1].memory.used_bytes == before
    contexts(emulator)
    assert ok(emulator.cuKernelGetAttribute(_DYNAMIC, kernel, 1)) == 50_000


def test_an_attribute_holds_in_contexts_that_load_the_library_later(emulator: Emulator) -> None:
    contexts(emulator)
    kernel = ok(emulator.cuLibraryGetKernel(library_of(emulator, STATIC_SHARED), b"statics"))
    ok(emulator.cuKernelSetAttribute(_DYNAMIC, 60_000, kernel, 0))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    function = ok(emulator.cuKernelGetFunction(kernel))
    assert ok(emulator.cuFuncGetAttribute(_DYNAMIC, function)) == 60_000


def test_an_unloaded_library_leaves_nothing(emulator: Emulator) -> None:
    context = ok(emulator.cuDevicePrimaryCtxRetain(ok(emulator.cuDeviceGet(0))))
    ok(emulator.cuCtxSetCurrent(context))
    library = library_of(emulator, _VARIABLE, INCREMENT)
    module = ok(emulator.cuLibraryGetModule(library))
    kernel = ok(emulator.cuLibraryGetKernel(library, b"increment"))
    ok(emulator.cuLibraryUnload(library))
    dead = CUresult.CUDA_ERROR_INVALID_HANDLE
    assert code(emulator.cuLibraryGetModule(library)) == dead
    assert code(emulator.cuLibraryUnload(library)) == dead
    assert code(emulator.cuKernelGetName(kernel)) == dead
    assert code(emulator.cuModuleUnload(CUmodule(int(module)))) == dead


def test_a_reset_device_loads_its_libraries_anew(emulator: Emulator) -> None:
    device = ok(emulator.cuDeviceGet(0))
    library = library_of(emulator, _VARIABLE)
    for value in (8, 7):
        ok(emulator.cuCtxSetCurrent(ok(emulator.cuDevicePrimaryCtxRetain(device))))
        address, _ = ok(emulator.cuLibraryGetGlobal(library, b"counter"))
        assert download(emulator, address, 1).tolist() == [7]
        ok(emulator.cuMemsetD32(CUdeviceptr(int(address)), value, 1))
        ok(emulator.cuDevicePrimaryCtxReset(device))


def test_what_is_wrong_with_an_image_shows_at_its_loading(emulator: Emulator) -> None:
    loaded = emulator.cuLibraryLoadData(b"\x7fELF", (), (), 0, (), (), 0)
    assert code(loaded) == CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU


def test_a_cooperative_launch_runs_all_blocks_at_once(emulator: Emulator) -> None:
    context = ok(emulator.cuDevicePrimaryCtxRetain(ok(emulator.cuDeviceGet(0))))
    ok(emulator.cuCtxSetCurrent(context))
    kernel = ok(emulator.cuLibraryGetKernel(library_of(emulator, INCREMENT), b"increment"))
    given = Parameters(c_uint64(int(ok(emulator.cuMemAlloc(4)))))
    too_many = emulator.cuLaunchCooperativeKernel(
        CUfunction(kernel), 1 << 20, 1, 1, 32, 1, 1, 0, CUstream(0), given.address
    )
    assert code(too_many) == CUresult.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE


_WRONG: Final = {
    "syntax": (text(".visible .entry k() { this is no ptx; ret; }"), 218),
    "opcode": (text(".visible .entry k() { .reg .b32 %r<2>; frob.b32 %r1, 1; ret; }"), 218),
    "register": (text(".visible .entry k() { mov.b32 %r1, 1; ret; }"), 218),
    "function": (text(".extern .func f();", ".visible .entry k() { call f; ret; }"), 218),
    "version": (
        b".version 99.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }",
        222,
    ),
    "image": (b"no PTX at all", 200),
}


@pytest.mark.parametrize("what", _WRONG)
def test_a_wrong_image_is_reported_by_the_functions_of_its_library(
    emulator: Emulator, what: str
) -> None:
    """Measured on driver 580."""
    ok(emulator.cuCtxSetCurrent(ok(emulator.cuDevicePrimaryCtxRetain(ok(emulator.cuDeviceGet(0))))))
    image, expected = _WRONG[what]
    log = bytearray(300)
    options = CUjit_option.CU_JIT_ERROR_LOG_BUFFER, CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
    library = ok(emulator.cuLibraryLoadData(image, options, (log, 300), 2, (), (), 0))
    assert log[0]
    assert ok(emulator.cuLibraryGetKernelCount(library)) == 0
    assert ok(emulator.cuLibraryEnumerateKernels(2, library)) == [0, 0]
    assert code(emulator.cuLibraryGetKernel(library, b"k")) == expected
    assert code(emulator.cuLibraryGetModule(library)) == expected
    assert code(emulator.cuLibraryGetGlobal(library, b"x")) == expected
    ok(emulator.cuLibraryUnload(library))
