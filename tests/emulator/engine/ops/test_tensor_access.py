"""Tensor memory to registers and back: what each shape moves, and who may reach what."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate.model.errors import (
    OutOfBounds,
    SynchronisationFault,
    TensorMemoryFault,
    UninitialisedRead,
    UnsupportedInstruction,
)
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.ops.tensor_text import launched, runner_of, with_columns

NOTHING = np.zeros(1, np.uint32)
WAIT = "tcgen05.wait::st.sync.aligned;"


def registers(count: int, first: int = 40) -> str:
    return "{" + ", ".join(f"%r{first + k}" for k in range(count)) + "}"


# Cell (lane, column) of 16 columns gets lane * 256 + column, which a shape of 32 lanes tells.
NUMBERED = (
    "shl.b32 %r20, %r1, 8; "
    + " ".join(f"add.u32 %r{21 + k}, %r20, {k};" for k in range(16))
    + f"tcgen05.st.sync.aligned.32x32b.x16.b32 [%r6], {registers(16, 21)};"
    + WAIT
)


def saved(count: int, first: int = 40) -> str:
    return f"mul.wide.u32 %rd3, %r1, {4 * count}; add.u64 %rd3, %rd2, %rd3;" + "".join(
        f"st.global.u32 [%rd3+{4 * k}], %r{first + k};" for k in range(count)
    )


def loaded(shape: str, count: int, *, more: str = "", address: str = "%r6") -> NDArray[np.uint32]:
    """(4 warps, 32 lanes, registers) what a load gives of cells that are numbered."""
    line = f"tcgen05.ld.sync.aligned.{shape}.b32 {registers(count)}, [{address}]{more};"
    body = f"{NUMBERED} {line} tcgen05.wait::ld.sync.aligned; {saved(count)}"
    return launched(with_columns(body, 32), NOTHING, 128 * count).reshape(4, 32, count)


# For each thread t and register r: the lane from the warp's first one on, and the column.
t, r = np.arange(32)[:, None], np.arange(16)
SHAPES = {
    "32x32b.x8": (t, r[:8]),
    "16x64b.x4": (t // 4 + t % 2 * 8, 2 * r[:4] + t // 2 % 2),
    "16x128b.x2": (t // 4 + r[:4] % 2 * 8, 4 * (r[:4] // 2) + t % 4),
    "16x256b.x2": (t // 4 + r[:8] // 2 % 2 * 8, 8 * (r[:8] // 4) + 2 * (t % 4) + r[:8] % 2),
    "16x32bx2.x2": (t % 16, r[:2] + t // 16 * 5),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_moves_its_own_cells(shape: str) -> None:
    lane, column = SHAPES[shape]
    first = 32 * np.arange(4)[:, None, None]
    wanted = 256 * (first + lane) + column
    more = ", 5" if "x2." in shape and "b.x2" not in shape else ""
    assert np.array_equal(loaded(shape, column.shape[-1], more=more), wanted)


def test_sixteen_lanes_may_be_the_upper_ones() -> None:
    lane, column = SHAPES["16x256b.x2"]
    first = 32 * np.arange(4)[:, None, None] + 16
    assert np.array_equal(
        loaded("16x256b.x2", 8, address="%r6 + 1048576"), 256 * (first + lane) + column
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_a_load_packs_16_bits_of_two_columns(shape: str) -> None:
    # As without packing, but of twice as many columns.
    lane, column = SHAPES[shape]
    lane, column = np.broadcast_arrays(lane, column)
    if shape == "16x32bx2.x2":
        column = 2 * (column - t // 16 * 5) + t // 16 * 5
    else:
        lane, column = lane[:, :4], 2 * column[:, :4]
    count = column.shape[1]
    name, repeats = shape.rsplit(".x", 1)
    less = {"32x32b": 4, "16x64b": 4, "16x128b": 2, "16x256b": 1, "16x32bx2": 2}[name]
    first = 32 * np.arange(4)[:, None, None]
    low = 256 * (first + lane) + column & 0xFFFF
    wanted = low | (low + 1) << 16
    more = ", 5" if name == "16x32bx2" else ""
    assert int(repeats) >= less
    assert np.array_equal(loaded(f"{name}.x{less}.pack::16b", count, more=more), wanted)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("packing", ["", "pack::16b"])
def test_what_a_store_writes_a_load_of_the_same_shape_reads(shape: str, packing: str) -> None:
    count = np.broadcast_shapes(*(each.shape for each in SHAPES[shape]))[1]
    more = ", 16" if shape.startswith("16x32bx2") else ""
    words = "".join(f"mad.lo.u32 %r{40 + k}, %r1, 65793, {k * 4369};" for k in range(count))
    dot = "." if packing else ""
    body = f"""{words}
        tcgen05.st.sync.aligned.{shape}{dot}{"un" if packing else ""}{packing}.b32 [%r6]{more},
        {registers(count)}; {WAIT}
        tcgen05.ld.sync.aligned.{shape}{dot}{packing}.b32 {registers(count, 80)}, [%r6]{more};
        tcgen05.wait::ld.sync.aligned; {saved(count, 80)}"""
    found = launched(with_columns(body, 64), NOTHING, 128 * count).reshape(128, count)
    assert np.array_equal(found, np.arange(128)[:, None] * 65793 + np.arange(count) * 4369)


def test_blocks_have_tensor_memory_of_their_own() -> None:
    body = f"""mov.u32 %r10, %ctaid.x; shl.b32 %r10, %r10, 10; add.u32 %r11, %r10, %r1;
        tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6], %r11; {WAIT}
        tcgen05.ld.sync.aligned.32x32b.x1.b32 %r12, [%r6]; tcgen05.wait::ld.sync.aligned;
        mov.u32 %r10, %ctaid.x; mad.lo.u32 %r13, %r10, 128, %r1; mul.wide.u32 %rd3, %r13, 4;
        add.u64 %rd3, %rd2, %rd3; st.global.u32 [%rd3], %r12;"""
    found = launched(with_columns(body, 32), NOTHING, 640, grid=5).reshape(5, 128)
    assert np.array_equal(found, 1024 * np.arange(5)[:, None] + np.arange(128))


@pytest.mark.parametrize(("body", "error", "said"), [
    ("tcgen05.ld.sync.aligned.32x32b.x1.b32 %r9, [%r5];", TensorMemoryFault,
     "of warp 1 begins at lane 0 of tensor memory: a warp reaches the lanes 32 to 63"),
    ("add.u32 %r7, %r6, 1048576; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r7], %r9;",
     TensorMemoryFault, "by 32 from the first on"),
    ("add.u32 %r7, %r6, 524288; tcgen05.st.sync.aligned.16x64b.x1.b32 [%r7], %r9;",
     TensorMemoryFault, "begins at lane 8"),
    ("add.u32 %r7, %r6, %r3; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r7], %r9;",
     TensorMemoryFault, "different values of its address"),
    ("tcgen05.ld.sync.aligned.32x32b.x1.b32 %r9, [%r6 + 32];", OutOfBounds,
     "reaches lane 0, column 32 of tensor memory, which the block has not allocated"),
    ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r9, %r10}, [%r6 + 31];", OutOfBounds, "column 32"),
    ("tcgen05.ld.sync.aligned.32x32b.x1.b32 %r9, [%r6 + 65535];", OutOfBounds, "column 65535"),
    ("setp.eq.u32 %p4, %r3, 3; @%p4 ret; tcgen05.wait::ld.sync.aligned;", SynchronisationFault,
     "must not have exited"),
])  # fmt: skip
def test_what_a_warp_may_not_reach_is_found(body: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        launched(with_columns(body, 32), NOTHING, 1)


def test_a_read_of_what_nothing_has_written_is_found_where_that_is_checked() -> None:
    store = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6], %r1;"
    line = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r9, %r10}, [%r6];"
    limits = Limits(checks={"undefined"})
    launched(
        with_columns(f"{store} {WAIT} {line.replace('x2', 'x1').replace(', %r10', '')}", 32),
        NOTHING,
        1,
        limits=limits,
    )
    with pytest.raises(UninitialisedRead, match="lane 0, column 1 of tensor memory"):
        launched(with_columns(f"{store} {WAIT} {line}", 32), NOTHING, 1, limits=limits)


STORED = f"""tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6], %r1; {WAIT}
    tcgen05.ld.sync.aligned.32x32b.x1.b32 %r40, [%r6]; tcgen05.wait::ld.sync.aligned;
    {saved(1)}"""


@pytest.mark.parametrize("order", [LaunchOrder("late"), LaunchOrder("random", 3)])
def test_a_store_is_there_when_it_was_waited_for(order: LaunchOrder) -> None:
    assert launched(with_columns(STORED), NOTHING, 128, order=order).tolist() == [*range(128)]


def test_a_store_that_no_thread_waits_for_is_not_visible() -> None:
    # It is done when the memory was given back; a read before finds what was there.
    with pytest.raises(OutOfBounds, match="which the block has not allocated, or given back"):
        launched(with_columns(STORED.replace(WAIT, "")), NOTHING, 128, order=LaunchOrder("late"))


@pytest.mark.parametrize(("line", "said"), [
    ("tcgen05.ld.sync.aligned.32x32b.x2.b32 %r9, [%r6];", "1 registers of 2"),
    ("tcgen05.st.sync.aligned.16x128b.x1.b32 [%r6], {%r9};", "1 registers of 2"),
    ("tcgen05.ld.sync.aligned.16x32bx2.x1.b32 %r9, [%r6], %r1;", "a constant"),
    ("tcgen05.ld.sync.aligned.16x256b.x64.b32 %r9, [%r6];", "instructions for tensor memory"),
    ("tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%r9, %r10}, %r11, [%r6];", "tensor memory"),
    ("tcgen05.ld.sync.aligned.32x32b.x1.b32 %r9, %r6;", "it needs an address"),
])  # fmt: skip
def test_what_is_wrong_is_rejected_when_the_kernel_is_loaded(line: str, said: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=said):
        runner_of(line).program.kernel("k")
