"""Rows of shared memory to lanes of tensor memory, and how others are told."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.emulate.model.errors import OutOfBounds, TensorMemoryFault, UnsupportedInstruction
from ptx.emulate.model.order import LaunchOrder
from tests.emulator.engine.ops.tensor_layout import descriptor, k_major
from tests.emulator.engine.ops.tensor_products import (
    COMMIT,
    GOOD,
    POOL,
    WAIT,
    WORD,
    cells,
    exact,
    factors,
    mma,
    product_body,
)
from tests.emulator.engine.ops.tensor_text import runner_of
from tests.rows import all_rows

SHAPES = {"128x256b": (128, 32), "128x128b": (128, 16), "32x128b.warpx4": (32, 16)}


def copied(shape: str, words: int, address: str = "%r5") -> str:
    return f"mov.u64 %rd4, {words}; tcgen05.cp.cta_group::1.{shape} [{address}], %rd4;"


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("width", [16, 32, 64, 128])
@pytest.mark.parametrize("order", [None, LaunchOrder("late")])
def test_each_row_goes_to_its_lanes(shape: str, width: int, order: LaunchOrder | None) -> None:
    rows, nbytes = SHAPES[shape]
    matrix = np.random.default_rng(5).integers(0, 256, (rows, nbytes), dtype=np.uint8)
    pool = np.zeros(POOL, np.uint8)
    k_major(pool, matrix, 1024, 4096, 8 * width, width)
    line = copied(shape, descriptor(1024, 4096, 8 * width, width))
    found = cells(product_body(line, 8), pool, 8, order=order)
    wanted = np.tile(matrix, (128 // rows, 1)).view(np.uint32)
    assert np.array_equal(found[:, : nbytes // 4], wanted)
    assert not found[:, nbytes // 4 :].any()


@pytest.mark.slow
@pytest.mark.parametrize("order", [None, LaunchOrder("late"), LaunchOrder("random", 2)])
def test_a_product_reads_what_the_same_thread_has_copied_before(order: LaunchOrder | None) -> None:
    left, right = factors("f16", "f16", 128, 16)
    pool = np.zeros(POOL, np.uint8)
    k_major(pool, left, 0, 2048, 128, 16)
    k_major(pool, right, 16384, 2048, 128, 16)
    line = copied("128x256b", GOOD[0], "%r5 + 32") + mma("f16", "[%r5 + 32]", GOOD[1], WORD)
    found = cells(product_body(line, 16), pool, 16, order=order).view(np.float32)
    assert np.array_equal(found, exact(left, right))


def test_a_copy_that_is_not_recorded_is_done_after_the_memory_was_freed() -> None:
    body = product_body(copied("128x128b", GOOD[0]), 8)
    body = body.replace(COMMIT, "").replace(WAIT, "")
    with pytest.raises(OutOfBounds, match=r"tcgen05\.cp.* not allocated, or given back"):
        cells(body, np.zeros(POOL, np.uint8), 8, order=LaunchOrder("late"))


@pytest.mark.parametrize(
    ("line", "error", "said"),
    [
        (
            copied("128x256b", GOOD[0], "%r5 + 65536"),
            TensorMemoryFault,
            "begins at lane 1 of tensor",
        ),
        (copied("128x256b", 0), TensorMemoryFault, "is none: from bit 46 on"),
        (copied("128x256b", GOOD[0], "%r5 + 508"), OutOfBounds, "column 512 of tensor memory"),
        (copied("128x256b", descriptor(0x3FF0 * 16, 2048, 128)), OutOfBounds, "shared address"),
    ],
)
def test_what_is_wrong_with_a_copy_is_found(line: str, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        cells(product_body(line, 8), np.zeros(POOL, np.uint8), 8)


@pytest.mark.parametrize(
    "shape", ["64x128b.warpx2::02_13", "4x256b", "128x256b.b8x16.b6x16_p32", "32x128b"]
)
def test_shapes_whose_rows_are_not_known_are_rejected(shape: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=r"no copies of the shapes \.4x256b and"):
        runner_of(copied(shape, 0)).program.kernel("k")


MULTICAST = COMMIT.replace("b64", "multicast::cluster.b64").replace("[bar];", "[bar], %rs1;")
TOLD = f"""
.reg .b16 %rs<4>; .reg .b32 %c; mov.u32 %c, %cluster_ctarank;
@%p1 mbarrier.init.shared.b64 [bar], 2; fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
mov.u16 %rs1, 5; @%p1 {MULTICAST}
and.b32 %r10, %c, 1; setp.eq.u32 %p4, %r10, 0; @!%p4 bra END;
W: mbarrier.try_wait.parity.shared.b64 %p5, [bar], 0; @!%p5 bra W;
END: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
mbarrier.test_wait.parity.shared.b64 %p6, [bar], 0; selp.u32 %r11, 1, 0, %p6;
mul.wide.u32 %rd3, %c, 4; add.u64 %rd3, %rd2, %rd3; @%p1 st.global.u32 [%rd3], %r11;
"""


@pytest.mark.parametrize("order", [None, LaunchOrder("late"), LaunchOrder("random", 1)])
def test_several_blocks_may_be_reported(order: LaunchOrder | None) -> None:
    # Of four blocks the first two tell those of even rank, whose objects expect two arrivals.
    body = TOLD.replace(f"@%p1 {MULTICAST}", f"setp.lt.and.u32 %p7, %c, 2, %p1; @%p7 {MULTICAST}")
    runner = runner_of(body)
    out = runner.put(np.zeros(4, np.uint32))
    runner.launch("k", 4, 32, 0, out, cluster=(4, 1, 1), order=order)
    assert runner.get(out, 4, np.uint32).tolist() == [1, 0, 1, 0]
