"""Accesses beyond what a kernel was given, in a session that checks bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.errors import CudaError
from cudadrv.memory.array import AnyDeviceArray
from ptx.emulate.model.errors import OutOfBounds, UseAfterFree

SOURCE = """
extern "C" __global__ void add(int* a, const int* b, long shift) {
  a[threadIdx.x + shift] += b[threadIdx.x];
}
"""
Program = Callable[[cudadrv.Stream, cudadrv.Kernel], None]


def run(
    program: Program, *, check: tuple[emulator.CheckName, ...] = ("bounds",)
) -> BaseException | None:
    """The typed fault behind the error of a program, if it has one."""
    with emulator.session(check=check) as machine:
        context = cudadrv.cuda_context_for(0)
        options = ptx.CompileOptions(target=context.target, lineinfo=True)
        kernel = context.load_module(ptx.compile(SOURCE, options)).kernel("add")
        try:
            program(context.new_stream(), kernel)
        except CudaError:
            assert machine.findings or "bounds" not in check
            return machine.last_fault
        return None


def launch(stream: cudadrv.Stream, kernel: cudadrv.Kernel, *arguments: object) -> None:
    kernel.launch(stream, cudadrv.LaunchConfig(1, 32), *arguments)
    stream.synchronize()


def beyond(stream: cudadrv.Stream, kernel: cudadrv.Kernel) -> None:
    a, b = stream.zeros(64, np.int32), stream.zeros(64, np.int32)
    launch(stream, kernel, a, b, (b.ptr - a.ptr) // 4)


def use_of_a_block_that_was_given_back(stream: cudadrv.Stream, kernel: cudadrv.Kernel) -> None:
    allocator = cudadrv.memory.CudaAllocator(stream)
    a, b = allocator.allocate(256), allocator.allocate(256)
    launch(stream, kernel, a, b, 0)
    allocator.deallocate(b, 256)
    launch(stream, kernel, a, b, 0)


def use_of_a_slab_that_was_released(stream: cudadrv.Stream, kernel: cudadrv.Kernel) -> None:
    arena = cudadrv.DeviceArena(np.int32)
    bucket, slab = arena.alloc(stream, 60)
    launch(stream, kernel, slab, slab.ptr, 0)
    arena.release(bucket, slab)
    launch(stream, kernel, slab.ptr, slab.ptr, 0)


def parts_of_a_capture_arena(stream: cudadrv.Stream) -> tuple[AnyDeviceArray, int, int]:
    """The arena, and the addresses of two parts of 256 bytes, one behind the other."""
    allocator = cudadrv.memory.CudaAllocator(stream)
    buffer = stream.zeros(4096, np.int32)
    allocator.freeze()
    allocator.install_arena(buffer.ptr, buffer.nbytes)
    _, a, b = (allocator.allocate(256) for _ in range(3))
    allocator.unfreeze()
    return buffer, a, b


def beyond_a_part_of_a_capture_arena(stream: cudadrv.Stream, kernel: cudadrv.Kernel) -> None:
    _, a, b = parts_of_a_capture_arena(stream)
    launch(stream, kernel, a, b, 0)
    launch(stream, kernel, a, b, (b - a) // 4)


WRONG: dict[str, tuple[Program, type[OutOfBounds], str]] = {
    "beyond": (beyond, OutOfBounds, r"bytes past the end of 256 bytes at .*test_bounds\.py:\d+"),
    "block": (use_of_a_block_that_was_given_back, UseAfterFree, "was given back to its allocator"),
    "slab": (use_of_a_slab_that_was_released, UseAfterFree, "was given back to its allocator"),
    "part": (
        beyond_a_part_of_a_capture_arena,
        OutOfBounds,
        "bytes past the end of 256 bytes at .* in 16384",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_use_of_what_a_kernel_was_not_given_is_a_fault(name: str) -> None:
    program, kind, words = WRONG[name]
    fault = run(program)
    assert type(fault) is kind
    with pytest.raises(kind, match=words):
        raise fault


@pytest.mark.parametrize("name", WRONG)
def test_without_the_check_it_is_not_seen(name: str) -> None:
    assert run(WRONG[name][0], check=()) is None


def test_memory_that_is_handed_out_again_is_used_again() -> None:
    def program(stream: cudadrv.Stream, kernel: cudadrv.Kernel) -> None:
        allocator, arena = cudadrv.memory.CudaAllocator(stream), cudadrv.DeviceArena(np.int32)
        for _ in range(3):
            block = allocator.allocate(256)
            bucket, slab = arena.alloc(stream, 64)
            launch(stream, kernel, block, slab, 0)
            arena.release(bucket, slab)
            allocator.deallocate(block, 256)
        allocator.reset()
        arena.trim()
        again = [stream.zeros(64, np.int32) for _ in range(4)]
        for each in again:
            launch(stream, kernel, each, again[0], 0)

    assert run(program) is None


def test_the_end_of_a_part_is_not_mistaken_for_the_next_one() -> None:
    def program(stream: cudadrv.Stream, kernel: cudadrv.Kernel) -> None:
        buffer, a, b = parts_of_a_capture_arena(stream)
        assert b == a + 256
        launch(stream, kernel, b, a, -32)  # b as the end of a
        launch(stream, kernel, buffer, buffer, 512)

    assert run(program) is None


def test_a_view_is_held_to_the_array_that_it_is_of() -> None:
    def program(stream: cudadrv.Stream, kernel: cudadrv.Kernel) -> None:
        a = stream.zeros(64, np.int32)
        launch(stream, kernel, a[1:], a[:32], -1)  # a halo

    assert run(program) is None
