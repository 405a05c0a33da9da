"""What a wrong kernel is told, and that the rest of its module still works."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.emulate.model.errors import (
    BarrierDivergence,
    InvalidBranch,
    LaunchError,
    Misaligned,
    OutOfBounds,
    Runaway,
    StackOverflow,
    Trap,
    UnsupportedInstruction,
    UseAfterFree,
)
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner, compiled, ptx_text
from tests.rows import all_rows


@pytest.fixture(params=["compute_90", "compute_100"])
def runner(request: pytest.FixtureRequest) -> KernelRunner:
    return KernelRunner(compiled(request.param, "lineinfo"))


@pytest.mark.slow
def test_a_write_past_the_end_names_thread_line_and_nearest_allocation(
    runner: KernelRunner,
) -> None:
    out = runner.put(np.zeros(100, np.int32), origin="the result")
    with pytest.raises(OutOfBounds) as caught:
        runner.launch("write_at", 2, 32, out, 100)
    fault = caught.value
    assert fault.address == out + 400
    assert (fault.where.block, fault.where.thread) == ((0, 0, 0), (0, 0, 0))
    assert fault.where.kernel == "write_at"
    assert fault.where.source_file is not None
    assert fault.where.source_file.endswith("kernels.cu")
    assert fault.where.source_line is not None
    line = runner.program.module.text.splitlines()[fault.where.ptx_line - 1]
    assert "st.global" in line
    assert "0 bytes past the end of the nearest allocation of 400 bytes" in str(fault)
    assert "the result" in str(fault)


def test_only_the_wrong_lane_is_blamed() -> None:
    text = ptx_text(
        """.reg .b32 %r<4>; .reg .b64 %rd<4>; ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x;
        mul.lo.u32 %r2, %r1, 36; cvt.u64.u32 %rd2, %r2; add.u64 %rd3, %rd1, %rd2;
        ld.global.u32 %r3, [%rd3]; st.global.u32 [%rd1], %r3; ret;""",
        ".param .u64 a",
    )
    runner = KernelRunner(text)
    address = runner.put(np.zeros(64, np.int32))
    with pytest.raises(OutOfBounds) as caught:
        runner.launch("k", 1, 16, address)
    assert caught.value.where.thread == (8, 0, 0)
    assert caught.value.address == address + 8 * 36


@pytest.mark.parametrize("space", ["global", "shared", "local"])
def test_an_address_at_the_end_of_all_numbers_is_out_of_bounds_too(space: str) -> None:
    last = (1 << 63) - 8
    start = "ld.param.u64 %rd1, [a];" if space == "global" else "mov.u64 %rd1, raw;"
    local = ".local .align 8 .b8 raw[64];" if space == "local" else ""
    text = ptx_text(
        f"""{local} .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<4>; {start} mov.u32 %r1, %tid.x;
        setp.eq.u32 %p, %r1, 5; selp.b64 %rd2, {last}, %rd1, %p;
        ld.{space}.u64 %rd3, [%rd2]; st.{space}.u64 [%rd1], %rd3; ret;""",
        ".param .u64 a",
        ".shared .align 8 .b8 raw[64];" if space == "shared" else "",
    )
    runner = KernelRunner(text)
    with pytest.raises(OutOfBounds) as caught:
        runner.launch("k", 1, 16, runner.put(np.zeros(8, np.int64)))
    assert caught.value.where.thread == (5, 0, 0)
    if space == "global":
        assert caught.value.address == last


def test_an_address_is_shown_without_a_sign(runner: KernelRunner) -> None:
    with pytest.raises(OutOfBounds, match="at 0xfffffffffffffff8") as caught:
        runner.launch("write_at", 1, 1, 0, -2)
    assert caught.value.address == (1 << 64) - 8


def test_a_gap_between_neighbours_is_out_of_bounds(runner: KernelRunner) -> None:
    first = runner.put(np.zeros(64, np.int32))
    runner.put(np.zeros(64, np.int32))
    with pytest.raises(OutOfBounds):
        runner.launch("write_at", 1, 1, first, 64)


def test_null_pointers_and_freed_memory_are_distinguished(runner: KernelRunner) -> None:
    with pytest.raises(OutOfBounds, match="null pointer"):
        runner.launch("write_at", 1, 1, 0, 0)
    freed = runner.put(np.zeros(8, np.int32), origin="the scratch")
    runner.launch("write_at", 1, 1, freed, 0)
    runner.memory.free(freed)
    with pytest.raises(UseAfterFree, match="the scratch"):
        runner.launch("write_at", 1, 1, freed, 3)


def test_misaligned_access_names_the_address(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(8, np.int32))
    with pytest.raises(Misaligned, match="no multiple of 4") as caught:
        runner.launch("write_at", 1, 1, out + 2, 0)
    assert caught.value.address == out + 2


@pytest.mark.parametrize("offset", [-4, 256])
def test_shared_memory_ends_where_the_launch_specifies(offset: int) -> None:
    text = ptx_text(
        f""".reg .b32 %r<4>; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, raw;
        add.u32 %r3, %r3, %r2; st.shared.u32 [%r3+{offset}], %r1; ret;""",
        before=".extern .shared .align 4 .b8 raw[];",
    )
    with pytest.raises(OutOfBounds, match="256 bytes of shared memory"):
        KernelRunner(text).launch("k", 2, 64, shared=256)


@all_rows
@pytest.mark.parametrize(
    "opcode", ["st.u32 [%rd1], %r2", "ld.u32 %r2, [%rd1]", "red.add.u32 [%rd1], 1"]
)
@pytest.mark.parametrize("space", ["shared", "local"])
@pytest.mark.parametrize("index", [64, -1, 1 << 16, (1 << 16) + 3, 1 << 20, 1 << 22, -(1 << 20)])
def test_a_generic_index_that_is_far_out_is_reported_as_it_is_in_its_space(
    opcode: str, space: str, index: int
) -> None:
    text = ptx_text(
        f""".reg .b32 %r<3>; .reg .b64 %rd<4>; .local .align 4 .b8 own[256];
        ld.param.s32 %r1, [at]; mov.u64 %rd1, {"raw" if space == "shared" else "own"};
        cvta.{space}.u64 %rd1, %rd1; mul.wide.s32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
        mov.u32 %r2, 7; {opcode}; ret;""",
        params=".param .u32 at",
        before=".shared .align 4 .b8 raw[256];",
    )
    with pytest.raises(OutOfBounds, match=f"at {space} address") as caught:
        KernelRunner(text).launch("k", 2, 64, index % (1 << 32))
    assert caught.value.address == 4 * index


@pytest.mark.parametrize("index", [1 << 24, 1 << 26, 1 << 28, 1 << 29, -(1 << 24), -(1 << 28)])
def test_a_generic_index_from_shared_memory_reaches_no_other_space(index: int) -> None:
    text = ptx_text(
        """.reg .b32 %r<3>; .reg .b64 %rd<4>; .local .align 4 .b8 own[256];
        ld.param.s32 %r1, [at]; mov.u64 %rd1, raw; mov.u64 %rd3, own; st.local.u32 [%rd3], %r1;
        cvta.shared.u64 %rd1, %rd1; mul.wide.s32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
        st.u32 [%rd1], %r1; ret;""",
        params=".param .u32 at",
        before=".shared .align 4 .b8 raw[256];",
    )
    with pytest.raises(OutOfBounds):
        KernelRunner(text).launch("k", 2, 64, index % (1 << 32))


@pytest.mark.parametrize("index", [64, -1, 1 << 16, (1 << 16) + 3, 1 << 17, 1 << 20])
def test_an_index_that_is_far_out_of_shared_memory_is_reported_as_it_is(index: int) -> None:
    text = ptx_text(
        """.reg .b32 %r<3>; ld.param.u32 %r1, [at]; shl.b32 %r1, %r1, 2; mov.u32 %r2, raw;
        add.u32 %r2, %r2, %r1; st.shared.u32 [%r2], %r1; ret;""",
        params=".param .u32 at",
        before=".shared .align 4 .b8 raw[256];",
    )
    with pytest.raises(OutOfBounds) as caught:
        KernelRunner(text).launch("k", 2, 64, index % (1 << 32))
    assert caught.value.address == 4 * index


def test_an_unknown_opcode_rejects_its_kernel_with_opcode_and_line(runner: KernelRunner) -> None:
    with pytest.raises(UnsupportedInstruction) as caught:
        runner.program.kernel("unknown")
    assert caught.value.opcode == "tcgen05.shift.cta_group::1.down"
    line = runner.program.module.text.splitlines()[caught.value.line - 1]
    assert "tcgen05" in line
    runner.launch("write_at", 1, 1, runner.put(np.zeros(1, np.int32)), 0)


def test_an_unknown_modifier_rejects_the_instruction() -> None:
    runner = KernelRunner(ptx_text(".reg .b32 %r<3>; add.fancy.u32 %r1, %r2, 1; ret;"))
    with pytest.raises(UnsupportedInstruction, match=r"add\.fancy\.u32 at PTX line 7"):
        runner.program.kernel("k")


def test_a_barrier_that_some_threads_never_reach_is_reported(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(64, np.int32))
    with pytest.raises(BarrierDivergence, match=r"16 at barrier 1 .*:\d+\), 48 at barrier 2 \("):
        runner.launch("divergent_barrier", 1, 64, out)


def test_memory_that_was_freed_is_reported_though_more_was_allocated(runner: KernelRunner) -> None:
    freed = runner.put(np.zeros(100, np.int32), origin="the scratch")
    runner.memory.free(freed)
    again = runner.put(np.zeros(100, np.int32))
    assert again != freed
    with pytest.raises(UseAfterFree, match=r"400 bytes at .*the scratch"):
        runner.launch("write_at", 1, 1, freed, 3)
    assert not runner.get(again, 100, np.int32).any()


@pytest.mark.parametrize("place", [100, 120, 130, 190])
def test_a_write_past_a_live_array_is_reported_as_that_wherever_it_ends(
    runner: KernelRunner, place: int
) -> None:
    """Behind the array there is its padding, then memory that was freed."""
    large = runner.put(np.zeros(10_000, np.int32), origin="former")
    runner.memory.quarantine_bytes = 0
    runner.memory.free(large)
    array = runner.put(np.zeros(100, np.int32), origin="the array")
    assert array == large
    with pytest.raises(
        OutOfBounds, match="the nearest allocation of 400 bytes .*the array"
    ) as caught:
        runner.launch("write_at", 1, 1, array, place)
    assert not isinstance(caught.value, UseAfterFree)
    with pytest.raises(UseAfterFree, match="former"):
        runner.launch("write_at", 1, 1, array, 5000)


def test_a_pointer_into_freed_memory_is_reported_as_that_beside_a_live_array(
    runner: KernelRunner,
) -> None:
    array, scratch = (runner.put(np.zeros(128, np.int32), origin=name) for name in "ab")
    runner.memory.free(scratch)
    assert 0 < scratch - array < 2 * 512
    with pytest.raises(UseAfterFree, match=r"\(b\)"):
        runner.launch("write_at", 1, 1, scratch, 0)
    with pytest.raises(OutOfBounds, match=r"nearest allocation of .*\(a\)") as caught:
        runner.launch("write_at", 1, 1, array, (scratch - array) // 4)
    assert not isinstance(caught.value, UseAfterFree)


def test_exited_threads_do_not_hold_a_barrier_up_unless_requested(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(64, np.int32))
    runner.launch("early_exit", 1, 64, out, 40)
    expected = [*range(39, -1, -1), *[0] * 24]
    assert runner.get(out, 64, np.int32).tolist() == expected
    with pytest.raises(BarrierDivergence, match="24 exited"):
        runner.launch("early_exit", 1, 64, out, 40, limits=Limits(strict_barriers=True))


@pytest.mark.slow
def test_an_endless_loop_meets_the_limit(runner: KernelRunner) -> None:
    out = runner.put(np.zeros(1, np.int32))
    with pytest.raises(Runaway, match=r"max_steps"):
        runner.launch("forever", 1, 32, out, limits=Limits(max_steps=5000))


def test_trap_reports_where() -> None:
    runner = KernelRunner(
        ptx_text(
            """.reg .pred %p; .reg .b32 %r; mov.u32 %r, %tid.x; setp.eq.u32 %p, %r, 5;
            @%p trap; ret;"""
        )
    )
    with pytest.raises(Trap) as caught:
        runner.launch("k", 1, 32)
    assert caught.value.where.thread == (5, 0, 0)


@pytest.mark.parametrize(("index", "thread"), [("%r1", 2), ("-1", 0)])
def test_an_indexed_branch_beyond_its_targets_names_the_thread(index: str, thread: int) -> None:
    text = ptx_text(
        f""".reg .b32 %r<3>; mov.u32 %r1, %tid.x; mov.u32 %r2, {index};
        places: .branchtargets A, B; brx.idx %r2, places; A: B: ret;"""
    )
    with pytest.raises(InvalidBranch, match="of 2") as caught:
        KernelRunner(text).launch("k", 1, 3)
    assert caught.value.where.thread == (thread, 0, 0)
    KernelRunner(text.replace(f"%r2, {index}", "%r2, 1")).launch("k", 1, 3)


def test_endless_recursion_is_a_stack_overflow() -> None:
    text = ptx_text(
        "call f; ret;",
        before=".func f() { .local .b8 x[64]; .reg .b64 %r; mov.u64 %r, x;"
        " st.local.u8 [%r], 1; call f; ret; }",
    )
    with pytest.raises(StackOverflow, match="stack_bytes"):
        KernelRunner(text).launch("k", 1, 32, limits=Limits(stack_bytes=4096))


@pytest.mark.parametrize(
    ("grid", "block", "shared", "words"),
    [
        ((0, 1, 1), (1, 1, 1), 0, "grid"),
        ((1, 70000, 1), (1, 1, 1), 0, "grid"),
        ((1, 1, 1), (1, 1, 65), 0, "block"),
        ((1, 1, 1), (1024, 2, 1), 0, "2048 threads"),
        ((1, 1, 1), (1, 1, 1), 1 << 20, "shared memory"),
    ],
)
def test_impossible_launches_are_rejected(
    runner: KernelRunner,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    shared: int,
    words: str,
) -> None:
    out = runner.put(np.zeros(1, np.int32))
    with pytest.raises(LaunchError, match=words):
        runner.launch("write_at", grid, block, out, 0, shared=shared)
