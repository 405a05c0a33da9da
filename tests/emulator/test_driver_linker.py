from __future__ import annotations

import ctypes

import pytest

from cudadrv.driver._api import CUjitInputType, CUlinkState, CUresult
from cudadrv.emulator import Emulator

from .calls import Parameters, code, download, functions, launch, ok, text

PTX, CUBIN = CUjitInputType.CU_JIT_INPUT_PTX, CUjitInputType.CU_JIT_INPUT_CUBIN
CALLER = """
.extern .func (.param .b32 r) twice (.param .b32 x);
.visible .entry doubles(.param .u64 p) {
  .reg .b64 %rd<2>; .reg .b32 %r<3>;
  ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1];
  { .param .b32 x; st.param.b32 [x], %r1; .param .b32 r;
    call.uni (r), twice, (x); ld.param.b32 %r2, [r]; }
  st.global.u32 [%rd1], %r2; ret;
}"""
CALLED = """
.visible .func (.param .b32 r) twice (.param .b32 x) {
  .reg .b32 %r<3>; ld.param.b32 %r1, [x]; add.s32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret;
}"""


@pytest.fixture
def api(emulator: Emulator) -> Emulator:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    return emulator


def link_of(api: Emulator, *inputs: str) -> CUlinkState:
    link = ok(api.cuLinkCreate(0, (), ()))
    for at, each in enumerate(inputs):
        image = text(each)
        ok(api.cuLinkAddData(link, PTX, image, len(image), f"input {at}".encode(), 0, (), ()))
    return link


def test_the_drivers_linker_joins_texts_of_ptx(api: Emulator) -> None:
    link = link_of(api, CALLER, CALLED)
    _, address, nbytes = api.cuLinkComplete(link)
    module = ok(api.cuModuleLoadData(ctypes.string_at(address, nbytes)))
    ok(api.cuLinkDestroy(link))
    (function,) = functions(api, module, "doubles")
    memory = ok(api.cuMemAlloc(4))
    ok(api.cuMemsetD32(memory, 21, 1))
    ok(launch(api, function, Parameters(ctypes.c_uint64(int(memory)))))
    assert download(api, memory, 1).tolist() == [42]


def test_what_does_not_link_is_reported(api: Emulator) -> None:
    twice = api.cuLinkComplete(link_of(api, CALLED, CALLED))
    assert code(twice) == CUresult.CUDA_ERROR_INVALID_PTX
    assert "twice is defined in input 0 and in input 1" in str(api.last_fault)
    link = link_of(api)
    refused = api.cuLinkAddData(link, CUBIN, b"\x7fELF", 4, b"mine", 0, (), ())
    assert code(refused) == CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU
    ok(api.cuLinkDestroy(link))
    assert code(api.cuLinkDestroy(link)) == CUresult.CUDA_ERROR_INVALID_HANDLE
