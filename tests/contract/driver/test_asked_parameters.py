"""What the driver is asked of a kernel whose image tells nothing."""

from __future__ import annotations

from typing import Any

import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.driver._api import CUfunction, driver as bindings
from cudadrv.driver.driver_api import DriverApi
from cudadrv.driver.loading import load_cuda
from cudadrv.errors import CudaError, DriverSymbolMissingError
from cudadrv.launch.signatures import WrittenSignatures, signature_by_driver
from tests.noted_calls import failed_calls, used_functions

TEXT = """
.version 7.8
.target sm_75
.address_size 64
.visible .entry three(.param .u8 a, .param .u64 b, .param .align 4 .b8 c[12]) { ret; }
.visible .entry none() { ret; }
"""
THREE = [("b8", 0, 1, 1), ("b64", 8, 8, 1), ("b8", 16, 12, 12)]


class Older:
    """The functions of a driver before CUDA 13.2, which does not tell how many parameters."""

    def __init__(self, inner: DriverApi) -> None:
        self._inner = inner

    # The functions have no signature in common.
    def __getattr__(self, name: str) -> Any:
        if name == "cuFuncGetParamCount":
            raise DriverSymbolMissingError(name)
        return getattr(self._inner, name)


def asked(module: cudadrv.Module, name: str) -> list[tuple[str, int, int, int]]:
    signature = signature_by_driver(module._handle, name, module.kernel(name).handle)
    return [(each.ptx_type, each.offset, each.nbytes, each.count) for each in signature.params]


def test_no_call_fails_where_the_driver_returns_the_count() -> None:
    with emulator.session():
        module = cudadrv.cuda_context_for(0).load_module(TEXT)
        with failed_calls() as failed:
            assert (asked(module, "three"), asked(module, "none")) == (THREE, [])
        assert failed == []


def test_an_older_driver_is_queried_until_it_has_no_more() -> None:
    with emulator.session() as machine, used_functions(Older(machine)):
        module = cudadrv.cuda_context_for(0).load_module(TEXT)
        assert (asked(module, "three"), asked(module, "none")) == (THREE, [])


@pytest.mark.parametrize("function", ["cuFuncGetParamCount", "cuFuncGetParamInfo"])
def test_a_rejection_is_reported_where_the_number_is_known(function: str) -> None:
    with emulator.session() as machine:
        module = cudadrv.cuda_context_for(0).load_module(TEXT)
        with machine.fail(function, with_=1), pytest.raises(CudaError, match="of kernel 'three'"):
            asked(module, "three")


def test_what_an_older_binding_lacks_is_reported_when_it_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(bindings, "cuFuncGetParamCount", raising=False)
    with pytest.raises(DriverSymbolMissingError, match="ParamCount is not in cuda-bindings of"):
        load_cuda().cuFuncGetParamCount(CUfunction(0))


def test_ptx_that_our_reader_does_not_support_reports_nothing() -> None:
    written = WrittenSignatures(TEXT.encode() + b".frobnicate 3;\n")
    assert (written.get("three"), written.get("none")) == (None, None)
    known = WrittenSignatures(TEXT.encode() + b"\0.frobnicate 3;\n").get("three")
    assert known is not None
    assert known.nbytes == 28
