"""What the emulator finds wrong in kernels, and the words it has for it."""

from __future__ import annotations

import inspect
import pathlib

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv.emulator import Limits, session
from cudadrv.errors import IllegalAddressError
from ptx.emulate.model.errors import (
    AssertionFailed,
    BarrierDivergence,
    Deadlock,
    OutOfBounds,
    UninitialisedRead,
)
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.emulator.engine.ops.corpus import runner_of

CHECK = Limits(checks={"undefined"})


@pytest.fixture(params=["compute_75", "compute_90", "compute_100-G"])
def runner(request: pytest.FixtureRequest) -> KernelRunner:
    target, _, debug = request.param.partition("-")
    return runner_of("checker.cu", target, debug=bool(debug), lineinfo=not debug)


def line_of(words: str) -> int:
    """The line of the source that has these words."""
    text = pathlib.Path(__file__).with_name("checker.cu").read_text()
    return next(n for n, line in enumerate(text.splitlines(), 1) if words in line)


def test_unwritten_shared_memory(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(64, np.int32))
    runner.launch("shared_hole", 2, 64, out, 64, limits=CHECK)
    assert runner.get(out, 64, np.int32).tolist() == list(range(0, 128, 2))
    runner.launch("shared_hole", 2, 64, out, 60)
    with pytest.raises(UninitialisedRead, match="4 bytes at shared address") as caught:
        runner.launch("shared_hole", 2, 64, out, 60, limits=CHECK)
    where = caught.value.where
    assert (where.block, where.thread) == ((0, 0, 0), (60, 0, 0))
    assert where.source_line == line_of("out[threadIdx.x] = s[threadIdx.x];")


def test_local_memory_that_the_thread_did_not_write(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(16, np.int32))
    runner.launch("local_hole", 1, 16, out, 16, 0, limits=CHECK)
    assert runner.get(out, 16, np.int32).tolist() == [k * 11 % 16 for k in range(16)]
    with pytest.raises(UninitialisedRead, match="local address") as caught:
        runner.launch("local_hole", 1, 16, out, 15, 0, limits=CHECK)
    assert caught.value.where.thread == (45 % 16, 0, 0)


def test_an_atomic_reads_what_must_have_been_written(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(32, np.int32))
    runner.launch("atomic_hole", 1, 32, out)
    with pytest.raises(UninitialisedRead) as caught:
        runner.launch("atomic_hole", 1, 32, out, limits=CHECK)
    assert caught.value.where.thread == (1, 0, 0)


def test_padding_in_shared_memory_is_copied_but_not_used(runner: KernelRunner) -> None:
    out, total = runner.put(np.zeros(64, np.float64)), runner.put(np.zeros(32, np.int32))
    runner.launch("padding", 1, 32, out, total, 0, limits=CHECK)
    assert runner.get(out, 64, np.float64)[1::2].tolist() == [t ^ 1 for t in range(32)]
    with pytest.raises(UninitialisedRead, match="1 byte at shared address 0x1,"):
        runner.launch("padding", 1, 32, out, total, 1, limits=CHECK)


def test_padding_of_what_a_function_gives_is_no_use_of_it(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(96, np.int32))
    runner.launch("tail", 1, 16, out, limits=CHECK)
    assert runner.get(out, 96, np.int32)[::6].tolist() == list(range(16))


def test_kernels_that_write_first_pass_the_check(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(32, np.int32))
    runner.launch("clean", 3, 32, out, shared=32, limits=CHECK)
    assert runner.get(out, 32, np.int32).tolist() == [(t ^ 1) + 3 for t in range(32)]


def test_a_deadlock_reports_which_thread_waits_where(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(64, np.int32))
    with pytest.raises(BarrierDivergence) as caught:
        runner.launch("half_way", 2, 64, out)
    text = str(caught.value)
    here, there = line_of("// not by all"), line_of("barrier.sync 3")
    assert "40 at barrier 0 (PTX line" in text
    assert "88 at barrier 3 (PTX line" in text
    assert "(44 in block (0, 0, 0))" in text
    assert f"checker.cu:{there})" in text
    assert caught.value.where.source_line == here


def test_lanes_that_never_come_are_named(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(32, np.int32))
    with pytest.raises(Deadlock, match="24 threads wait at barrier 0.*8 at warp instructions"):
        runner.launch("missing_lanes", 1, 32, out)


def launch_in_session(kernel: str, *arguments: int) -> tuple[Exception, object, int]:
    """A wrong launch through the driver: its error, the typed fault, the line that allocated."""
    source = runner_source()
    with session() as emulator:
        context = cudadrv.cuda_context_for(0)
        stream = context.new_stream()
        options = ptx.CompileOptions(target=context.target, lineinfo=True)
        module = context.load_module(ptx.compile(source, options, name="kernel.cu", cache=False))
        array = stream.zeros(16, "i4")
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]  # CPython has frames
        with pytest.raises(cudadrv.CudaError) as caught:
            module.kernel(kernel).launch(stream, cudadrv.LaunchConfig(1, 32), array, *arguments)
            stream.synchronize()
        return caught.value, emulator.last_fault, line


def runner_source() -> str:
    return """extern "C" __global__ void wrong(int* p, int n) { p[n + threadIdx.x] = 1; }
    extern "C" __global__ void claims(int* p, int n) { assert(n > 100); p[0] = 1; }"""


def test_the_nearest_allocation_reports_where_the_host_made_it() -> None:
    error, fault, line = launch_in_session("wrong", 80)
    assert isinstance(fault, OutOfBounds)
    assert "cuMemAllocAsync" in fault.nearest
    assert f"test_checker.py:{line})" in fault.nearest
    assert isinstance(error, IllegalAddressError)


def test_the_device_heap_ends_with_the_last_context() -> None:
    source = """extern "C" __global__ void leak() { malloc(100000); }"""
    with session():
        device = cudadrv.Device.get(0)
        with cudadrv.Context.create(device) as context:
            free = context.memory_info().free
        with cudadrv.Context.create(device) as context:
            options = ptx.CompileOptions(target=context.target)
            module = context.load_module(ptx.compile(source, options, cache=False))
            with context.new_stream() as stream:
                module.kernel("leak").launch(stream, cudadrv.LaunchConfig(1, 1))
                stream.synchronize()
            module.close()
            assert context.memory_info().free <= free - 100000
        with cudadrv.Context.create(device) as context:
            assert context.memory_info().free == free


def test_a_failed_assertion_has_the_drivers_code(capsys: pytest.CaptureFixture[str]) -> None:
    error, fault, _ = launch_in_session("claims", 3)
    assert isinstance(fault, AssertionFailed)
    assert "CUDA_ERROR_ASSERT (710)" in str(error)
    assert "thread: [31,0,0] Assertion `n > 100` failed." in capsys.readouterr().err
