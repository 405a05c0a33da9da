"""Reads of global memory that nothing has written are found, and no others."""

from __future__ import annotations

import re

import numpy as np
import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.driver import _api as driver
from cudadrv.emulator.calls.call import state_of
from cudadrv.emulator.timeline.schedule import OrderName
from cudadrv.errors import CheckError
from tests.rows import all_rows
from tests.short_cases import few

from .bench import Bench, Body, N, findings_of, image
from .programs import PROGRAMS, whole_array, writer_of_fewer

of_each_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda body: body.__name__)
in_each_order = pytest.mark.parametrize(
    ("order", "seed"), few([("immediate", None), ("late", None), ("random", 3)], 1)
)


@all_rows
@in_each_order
@of_each_program
def test_what_nothing_wrote_is_found(program: Body, order: OrderName, seed: int | None) -> None:
    found = findings_of(program, False, order, seed)
    assert found
    assert {each.check for each in found} == {"init"}


@pytest.mark.slow
@all_rows
@in_each_order
@of_each_program
def test_a_right_program_is_not_reported(program: Body, order: OrderName, seed: int | None) -> None:
    assert [str(each) for each in findings_of(program, True, order, seed)] == []


def test_a_finding_names_the_bytes_the_line_and_the_allocation() -> None:
    (found,) = findings_of(writer_of_fewer, False)
    assert found.first.where.thread == ((N - 3) % 128, 0, 0)
    assert found.first.where.block == ((N - 3) // 128, 0, 0)
    assert (found.kernel, found.nbytes, found.space) == ("twice", 4, "global")
    assert "cuMemAllocAsync at" in found.memory
    assert "bench.py:" in found.memory
    said = str(found).splitlines()
    assert said[0].startswith("init: kernel twice, 4 bytes of global memory at 0x")
    assert re.match(r"  in \d+ bytes at 0x\w+ \(cuMemAllocAsync at ", said[1])
    assert "read by block (1, 0, 0), thread (125, 0, 0), at " in said[2]
    assert "unwritten.cu:7 (PTX line " in said[2]
    assert said[3] == (
        "  nothing has written them all: write 4 of them before, by a kernel, a copy or a fill"
    )


def test_a_session_raises_what_it_found() -> None:
    with pytest.raises(CheckError, match="init: kernel twice"), emulator.session(check=("init",)):
        context = cudadrv.cuda_context_for(0)
        stream = context.new_stream()
        whole_array(Bench(context, stream, context.load_module(image())), False)


def test_nothing_is_recorded_where_nothing_is_checked() -> None:
    assert all(
        each.memory.written is None
        for each in state_of(emulator.Emulator(check=())).devices.visible
    )
    with emulator.session(check=("race",)) as machine:
        assert state_of(machine).devices.visible[0].memory.written is None


def test_rows_that_are_copied_leave_what_is_between_them_open() -> None:
    with emulator.session(check=("init",)) as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.new_stream()
        one, other = stream.zeros(64, np.uint8), stream.empty(64, np.uint8)
        fresh = stream.empty(64, np.uint8)
        stream.fill(fresh[:18], 1)
        for source, target in ((one, other), (fresh, one)):
            given = driver.CUDA_MEMCPY3D()
            given.srcMemoryType = given.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
            given.srcDevice = driver.CUdeviceptr(source.ptr)
            given.dstDevice = driver.CUdeviceptr(target.ptr)
            given.srcPitch = given.dstPitch = 16
            given.WidthInBytes, given.Height, given.Depth = 4, 3, 1
            assert machine.cuMemcpy3DAsync(given, stream.handle) == (0,)
        device = state_of(machine).devices.visible[0]
        flags = [device.flags(each.ptr, 48) for each in (other, one)]
    assert [np.flatnonzero(each).tolist() for each in flags if each is not None] == [
        [0, 1, 2, 3, 16, 17, 18, 19, 32, 33, 34, 35],
        [*range(18), *range(20, 32), *range(36, 48)],
    ]
