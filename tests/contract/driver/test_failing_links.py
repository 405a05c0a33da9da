"""Links that the driver's linker refuses, whatever it answers and says."""

from __future__ import annotations

import pytest

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.driver.driver_selection import current
from cudadrv.errors import CudaError, OutOfMemoryError, UnknownError
from tests.contract.test_linking import CALLED, CALLER

UNKNOWN = 999
# Invalid value, illegal address, not supported, unknown.
CODES = (1, 700, 801, UNKNOWN)


def link() -> cudadrv.Module:
    named = ptx.LinkInput(ptx.LinkKind.PTX, CALLED.encode(), "twice.ptx")
    return cudadrv.cuda_context_for(0).link([CALLER, named], cache=False, linker="driver")


@pytest.mark.parametrize("code", CODES)
def test_a_link_that_fails_without_a_word_names_its_inputs(code: int) -> None:
    with emulator.session() as machine:
        with machine.fail("cuLinkComplete", with_=code), pytest.raises(ptx.LinkError) as caught:
            link()
        said = str(caught.value)
        assert "linking input 1 as PTX, twice.ptx as PTX on device 0" in said
        assert f"cuLinkComplete returned {CudaError.for_code(code)('').name} ({code})" in said
        assert "the linker's log is empty" in said
        assert "nvJitLink" in said
        assert "restart" not in said
        assert caught.value.log == ""
        cause = caught.value.__cause__
        assert isinstance(cause, CudaError)
        assert (cause.call, cause.code) == ("cuLinkComplete", code)
        assert not current().has_failed
        assert link().kernel_names == ("doubles",)


@pytest.mark.parametrize("code", CODES)
def test_an_input_that_is_rejected_without_a_word_is_named(code: int) -> None:
    with emulator.session() as machine:
        with (
            machine.fail("cuLinkAddData", nth=2, with_=code),
            pytest.raises(ptx.LinkError, match=r"linking twice\.ptx as PTX on device 0: cuLinkAdd"),
        ):
            link()
        assert not current().has_failed


def test_a_context_that_no_longer_responds_is_no_fault_of_the_inputs() -> None:
    with emulator.session() as machine:
        with (
            machine.fail("cuMemGetInfo", with_=UNKNOWN),
            machine.fail("cuLinkComplete", with_=UNKNOWN),
            pytest.raises(UnknownError, match=r"twice\.ptx as PTX on device 0") as caught,
        ):
            link()
        assert caught.value.sticky
        assert current().has_failed


def test_a_full_device_is_no_fault_of_the_inputs() -> None:
    with (
        emulator.session() as machine,
        machine.fail("cuLinkComplete", with_=2),
        pytest.raises(OutOfMemoryError, match=r"twice\.ptx as PTX on device 0"),
    ):
        link()


def test_of_many_inputs_some_are_named() -> None:
    with emulator.session() as machine:
        context = cudadrv.cuda_context_for(0)
        parts = [CALLER, CALLED, *(CALLED.replace("twice", f"f{n}") for n in range(30))]
        with (
            machine.fail("cuLinkComplete"),
            pytest.raises(ptx.LinkError, match="input 8 as PTX and 24 more on device 0"),
        ):
            context.link(parts, cache=False, linker="driver")


def test_what_the_log_says_is_reported_without_advice_of_a_broken_process() -> None:
    with emulator.session():
        with pytest.raises(ptx.LinkError, match="twice") as caught:
            cudadrv.cuda_context_for(0).link([CALLER], cache=False, linker="driver")
        assert "the linker's log is empty" not in str(caught.value)
        assert "restart" not in str(caught.value)


@pytest.mark.parametrize("code", CODES)
def test_a_link_that_cannot_be_destroyed_is_reported(code: int) -> None:
    with emulator.session() as machine:
        with machine.fail("cuLinkDestroy", with_=code), pytest.raises(CudaError) as caught:
            link()
        assert (caught.value.call, caught.value.code) == ("cuLinkDestroy", code)
        # The link's own error comes first.
        with machine.fail("cuLinkDestroy", with_=code), pytest.raises(ptx.LinkError):
            cudadrv.cuda_context_for(0).link([CALLER], cache=False, linker="driver")
