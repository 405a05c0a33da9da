"""Products in tensor memory: types, layouts, masks, what was there; and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate.model.errors import (
    OutOfBounds,
    TensorMemoryFault,
    UninitialisedRead,
    UnsupportedInstruction,
)
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.ops.tensor_layout import descriptor, instruction_word, k_major, mn_major
from tests.emulator.engine.ops.tensor_products import (
    COMMIT,
    DTYPES,
    GOOD,
    PLAIN,
    POOL,
    SECOND,
    WAIT,
    WORD,
    cells,
    exact,
    factors,
    mma,
    product_body,
    rows_of,
    values,
)
from tests.emulator.engine.ops.tensor_text import runner_of
from tests.rows import all_rows

KINDS = [
    ("f16", "f32", "f16", "f16"), ("f16", "f32", "bf16", "bf16"), ("f16", "f16", "f16", "f16"),
    ("tf32", "f32", "tf32", "tf32"), ("f8f6f4", "f32", "e4m3", "e5m2"),
    ("f8f6f4", "f16", "e5m2", "e4m3"), ("i8", "s32", "s8", "u8"), ("i8", "s32", "u8", "s8"),
]  # fmt: skip


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize(("kind", "d", "a", "b"), KINDS)
@pytest.mark.parametrize(("m", "n"), [(128, 16), (64, 8), (64, 32), (128, 64), (128, 24)])
def test_a_product_of_each_kind(kind: str, d: str, a: str, b: str, m: int, n: int) -> None:
    left, right = factors(a, b, m, n)
    pool = np.zeros(POOL, np.uint8)
    k_major(pool, left, 0, *PLAIN)
    k_major(pool, right, SECOND, *PLAIN)
    line = mma(
        kind, descriptor(0, *PLAIN), descriptor(SECOND, *PLAIN), instruction_word(d, a, b, m, n)
    )
    found = cells(product_body(line, n), pool, n)[rows_of(m)]
    wanted = exact(left, right)
    if d == "f16":
        assert np.array_equal(found, wanted.astype(np.float16).view(np.uint16))
    else:
        assert np.array_equal(found.view(DTYPES[d]), wanted.astype(DTYPES[d]))


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("width", [16, 32, 64, 128])
@pytest.mark.parametrize("which", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", [("f16", "f16"), ("f8f6f4", "e4m3"), ("i8", "s8")])
def test_factors_lie_swizzled_and_along_either_direction(
    kind: tuple[str, str], which: int, width: int
) -> None:
    name, element = kind
    left, right = factors(element, element, 128, 64)
    pool = np.zeros(POOL, np.uint8)
    descriptors: list[int] = []
    for transposed, factor, start in ((which & 1, left, 0), (which & 2, right, SECOND)):
        if transposed:
            # Patterns of 8 k follow each other along k, then those of further rows.
            patterns = len(factor.T) // 8
            offsets = (8 * width * patterns, 8 * width)
            offsets = (128, 128 * patterns) if width == 16 else offsets
            mn_major(pool, factor, start, *offsets, width)
        else:
            offsets = (2048, 8 * width)
            k_major(pool, factor, start, *offsets, width)
        descriptors.append(descriptor(start, *offsets, width))
    d = "s32" if name == "i8" else "f32"
    word = instruction_word(d, element, element, 128, 64, transposed=which)
    found = cells(product_body(mma(name, descriptors[0], descriptors[1], word), 64), pool, 64)
    assert np.array_equal(found.view(DTYPES[d]), exact(left, right))


def two_steps(more: str = "") -> tuple[str, NDArray[np.uint8], NDArray[Any], NDArray[Any]]:
    """Two products along k, of rows that are swizzled by 64 bytes."""
    left, right = values("f16", (128, 32), 3), values("f16", (32, 32), 4)
    pool = np.zeros(POOL, np.uint8)
    k_major(pool, left, 0, 0, 512, 64)
    k_major(pool, right, SECOND, 0, 512, 64)
    word = instruction_word("f32", "f16", "f16", 128, 32)
    lines = [
        mma(
            "f16",
            descriptor(32 * k, 0, 512, 64),
            descriptor(SECOND + 32 * k, 0, 512, 64),
            word,
            adds="%p3" if k else "%p7",
            more=more if k else "",
        )
        for k in range(2)
    ]
    return "".join(lines), pool, left, right


def test_products_add_to_what_is_there_and_go_on_within_a_pattern() -> None:
    lines, pool, left, right = two_steps()
    found = cells(product_body(lines, 32), pool, 32).view(np.float32)
    assert np.array_equal(found, exact(left, right))


def test_what_is_there_may_be_scaled() -> None:
    lines, pool, left, right = two_steps(more=", 3")
    found = cells(product_body(lines, 32), pool, 32).view(np.float32)
    first, second = (exact(left[:, k : k + 16], right[:, k : k + 16]) for k in (0, 16))
    assert np.array_equal(found, second + first / 8)


@pytest.mark.parametrize(
    "order", [LaunchOrder("late"), *(LaunchOrder("random", k) for k in range(4))]
)
def test_work_of_a_thread_is_done_in_its_order_when_it_is_waited_for(order: LaunchOrder) -> None:
    lines, pool, left, right = two_steps()
    found = cells(product_body(lines, 32), pool, 32, order=order).view(np.float32)
    assert np.array_equal(found, exact(left, right))


def test_what_is_read_without_waiting_is_what_was_there() -> None:
    lines, pool, *_ = two_steps()
    zeros = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6], 0; tcgen05.wait::st.sync.aligned;"
    early = "tcgen05.ld.sync.aligned.32x32b.x1.b32 %r40, [%r6]; tcgen05.wait::ld.sync.aligned;"
    body = product_body(lines, 8, before=zeros).replace(WAIT, f"{early} {WAIT}")
    body = body.replace("st.global.v4.u32 [%rd3], {%r20,", "st.global.v4.u32 [%rd3], {%r40,")
    late = cells(body, pool, 8, order=LaunchOrder("late"))
    assert not late[:, 0].any()
    assert late[:, 1].any()


def test_a_product_that_is_not_recorded_is_done_after_the_memory_was_freed() -> None:
    lines, pool, *_ = two_steps()
    body = product_body(lines, 8).replace(COMMIT, "").replace(WAIT, "")
    with pytest.raises(OutOfBounds, match=r"tcgen05\.mma.* not allocated, or given back"):
        cells(body, pool, 8, order=LaunchOrder("late"))


@pytest.mark.parametrize("negated", [1, 2, 3])
def test_factors_may_be_negated(negated: int) -> None:
    left, right = factors("bf16", "bf16", 128, 16)
    pool = np.zeros(POOL, np.uint8)
    k_major(pool, left, 0, *PLAIN)
    k_major(pool, right, SECOND, *PLAIN)
    word = instruction_word("f32", "bf16", "bf16", 128, 16, negated=negated)
    line = mma("f16", descriptor(0, *PLAIN), descriptor(SECOND, *PLAIN), word)
    found = cells(product_body(line, 16), pool, 16).view(np.float32)
    assert np.array_equal(found, exact(left, right) * (1 if negated == 3 else -1))


@pytest.mark.parametrize("saturates", [False, True])
def test_integers_saturate_where_requested(saturates: bool) -> None:
    # 2**31 - 1 is there; every product is 4 * 32.
    pool = np.full(POOL, 2, np.uint8)
    full = "mov.u32 %r19, 0x7fffffff; " + "".join(
        f"tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6 + {k}], %r19;" for k in range(16)
    )
    word = instruction_word("s32", "s8", "s8", 128, 16, more=8 * saturates)
    line = mma("i8", descriptor(0, *PLAIN), descriptor(SECOND, *PLAIN), word, adds="%p3")
    before = full + "tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0;"
    found = cells(product_body(line, 16, before=before), pool, 16).view(np.int32)
    wanted = 2**31 - 1 if saturates else 2**31 - 1 + 128 - 2**32
    assert set(found.reshape(-1).tolist()) == {wanted}


def test_lanes_that_are_disabled_stay_as_they_are() -> None:
    left, right = factors("f16", "f16", 128, 16)
    pool = np.zeros(POOL, np.uint8)
    k_major(pool, left, 0, *PLAIN)
    k_major(pool, right, SECOND, *PLAIN)
    before = (
        "".join(f"tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6 + {k}], %r1;" for k in range(16))
        + "tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0;"
    )
    masks = (0x1, 0x80000000, 0, 0xFFFF0000)
    given = "".join(f"mov.u32 %r{60 + k}, {mask};" for k, mask in enumerate(masks))
    line = mma(
        "f16",
        descriptor(0, *PLAIN),
        descriptor(SECOND, *PLAIN),
        instruction_word("f32", "f16", "f16", 128, 16),
        mask="{%r60, %r61, %r62, %r63}, ",
    )
    found = cells(product_body(given + line, 16, before=before), pool, 16)
    off = [0, 63, *range(112, 128)]
    on = [lane for lane in range(128) if lane not in off]
    assert np.array_equal(found[off], np.repeat(np.array(off)[:, None], 16, axis=1))
    assert np.array_equal(found[on].view(np.float32), exact(left, right)[on])


@all_rows
@pytest.mark.parametrize(("kind", "d", "a", "b"), KINDS)
@pytest.mark.parametrize("m", [64, 128])
def test_a_may_be_in_tensor_memory(kind: str, d: str, a: str, b: str, m: int) -> None:
    # Each lane's 32 bytes of A are stored from the pool, where they lie row by row.
    left, right = factors(a, b, m, 16)
    pool = np.zeros(POOL, np.uint8)
    by_lane = np.zeros((128, 32), np.uint8)
    by_lane[rows_of(m)] = left.view(np.uint8).reshape(m, 32)
    pool[:4096] = by_lane.reshape(-1)
    k_major(pool, right, SECOND, *PLAIN)
    words = [f"%r{70 + k}" for k in range(8)]
    loads = "".join(f"ld.shared.u32 {word}, [%r50+{4 * k}];" for k, word in enumerate(words))
    before = f"""shl.b32 %r50, %r1, 5; mov.u32 %r51, pool; add.u32 %r50, %r50, %r51; {loads}
        tcgen05.st.sync.aligned.32x32b.x8.b32 [%r6 + 256], {{{", ".join(words)}}};
        tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0;"""
    line = mma(kind, "[%r5 + 256]", descriptor(SECOND, *PLAIN), instruction_word(d, a, b, m, 16))
    found = cells(product_body(line, 16, before=before), pool, 16)[rows_of(m)]
    wanted = exact(left, right)
    if d == "f16":
        assert np.array_equal(found, wanted.astype(np.float16).view(np.uint16))
    else:
        assert np.array_equal(found.view(DTYPES[d]), wanted.astype(DTYPES[d]))


def test_64_rows_may_begin_at_the_seventeenth_lane() -> None:
    left, right = factors("f16", "f16", 64, 16)
    pool = np.zeros(POOL, np.uint8)
    k_major(pool, left, 0, *PLAIN)
    k_major(pool, right, SECOND, *PLAIN)
    line = mma(
        "f16",
        descriptor(0, *PLAIN),
        descriptor(SECOND, *PLAIN),
        instruction_word("f32", "f16", "f16", 64, 16),
        target="%r5 + 1048576",
    )
    found = cells(product_body(line, 16), pool, 16).view(np.float32)
    assert np.array_equal(found[rows_of(64) + 16], exact(left, right))
    assert not found[rows_of(64)].any()


@all_rows
@pytest.mark.parametrize(("line", "said"), [
    (mma("f16", *GOOD, WORD | 4), "is of a sparse product"),
    (mma("f16", *GOOD, WORD | 1 << 6), "has bits set that must be zero"),
    (mma("f16", *GOOD, WORD | 1 << 30), "has bits set that must be zero"),
    (mma("f16", *GOOD, WORD | 2 << 7), "names types that .kind::f16 does not have"),
    (mma("tf32", *GOOD, WORD), "names types that .kind::tf32 does not have"),
    (mma("f16", *GOOD, instruction_word("f16", "bf16", "bf16", 128, 16)), "makes f16 of bf16"),
    (mma("f8f6f4", *GOOD, WORD | 5 << 7), "names the type e2m1"),
    (mma("tf32", *GOOD, instruction_word("f32", "tf32", "tf32", 128, 16, transposed=1)),
     "transposes 32-bit elements"),
    (mma("i8", *GOOD, instruction_word("s32", "s8", "s8", 128, 16, negated=1)), "negates integers"),
    (mma("f16", *GOOD, WORD | 8), "saturates what is no integer"),
    (mma("f16", *GOOD, instruction_word("f32", "f16", "f16", 32, 16)), "has 32 rows of A"),
    (mma("f16", *GOOD, instruction_word("f32", "f16", "f16", 128, 0)), "has 0 columns of B"),
    (mma("f16", *GOOD, instruction_word("f32", "f16", "f16", 128, 264)), "has 264 columns of B"),
    (mma("i8", *GOOD, instruction_word("s32", "s8", "s8", 128, 40)), "has 40 columns of B"),
    (mma("f8f6f4", *GOOD, instruction_word("f32", "e4m3", "e4m3", 64, 8, transposed=2)),
     "transposes 8 columns of 8-bit elements"),
    (mma("f16", GOOD[0] & ~(1 << 46), GOOD[1], WORD), "is none: from bit 46 on stand 1, 0, 0"),
    (mma("f16", GOOD[0] | 1 << 61, GOOD[1], WORD), "swizzles 128 bytes in pieces of 32"),
    (mma("f16", GOOD[0] | 3 << 61, GOOD[1], WORD), "has the swizzling 3, which there is not"),
    (mma("f16", *GOOD, WORD, target="%r5 + 1048576"), "128 rows begin at lane 16"),
    (mma("f16", "[%r5 + 1048576]", GOOD[1], WORD), "A and D begin at different lanes"),
    (mma("f16", "[%r5 + 64]", GOOD[1], WORD | 1 << 15), "A is transposed, which it cannot be"),
])  # fmt: skip
def test_what_the_isa_does_not_have_or_the_emulator_not_know_is_a_fault(
    line: str, said: str
) -> None:
    with pytest.raises(TensorMemoryFault, match=said):
        cells(product_body(line, 8), np.zeros(POOL, np.uint8), 8)


def test_columns_beyond_what_is_held_are_a_fault() -> None:
    body = product_body(mma("f16", *GOOD, WORD, target="%r5 + 504"), 8)
    with pytest.raises(OutOfBounds, match="column 512 of tensor memory"):
        cells(body, np.zeros(POOL, np.uint8), 8)


def test_what_nothing_has_written_is_not_added_to_where_that_is_checked() -> None:
    limits = Limits(checks={"undefined"})
    pool = np.zeros(POOL, np.uint8)
    cells(product_body(mma("f16", *GOOD, WORD), 8), pool, 8, limits=limits)
    with pytest.raises(UninitialisedRead, match="lane 0, column 0 of tensor memory"):
        cells(product_body(mma("f16", *GOOD, WORD, adds="%p3"), 8), pool, 8, limits=limits)


@pytest.mark.parametrize(("line", "said"), [
    (mma("f16", *GOOD, WORD, more=", 16"), "a scale of 0 to 15"),
    (mma("f8f6f4", *GOOD, WORD, more=", 1"), "only D of .kind::f16 and .kind::tf32 is scaled"),
    (mma("f16", *GOOD, WORD, mask="{%r1, %r2}, "), "its mask has 2 words, not 4"),
    (mma("f16", *GOOD, WORD).replace("kind::f16", "kind::f16.ashift"), "no .cta_group::2"),
    (mma("f16", *GOOD, WORD).replace("cta_group::1", "cta_group::2"), "no .cta_group::2"),
    (mma("mxf8f6f4", *GOOD, WORD), "instructions for tensor memory there are"),
    (mma("mxf4nvf4.block_scale", *GOOD, WORD, mask="[%r5], [%r5], "), "it needs one of .scale_vec"),
    (COMMIT.replace("shared::cluster", "shared::cluster.multicast::cluster"), "a mask of blocks"),
])  # fmt: skip
def test_what_is_not_known_is_rejected_when_the_kernel_is_loaded(line: str, said: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=said):
        runner_of(line).program.kernel("k")
