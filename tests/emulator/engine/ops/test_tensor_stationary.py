"""Products in tensor memory that keep B, whose D lies in other lanes."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.emulate.model.errors import TensorMemoryFault
from tests.emulator.engine.ops.tensor_layout import descriptor, instruction_word, k_major
from tests.emulator.engine.ops.tensor_products import (
    DTYPES,
    GOOD,
    PLAIN,
    POOL,
    SECOND,
    cells,
    exact,
    factors,
    mma,
    product_body,
)
from tests.rows import all_rows

WIDE = (4096, 128, 16)  # of up to 256 columns of B


def stationary(line: str) -> str:
    return line.replace("tcgen05.mma.", "tcgen05.mma.ws.")


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("use", ["", ".collector::b2::fill"])
@pytest.mark.parametrize(
    ("kind", "d", "a", "b"),
    [("f16", "f32", "f16", "f16"), ("i8", "s32", "s8", "u8"), ("f8f6f4", "f32", "e4m3", "e5m2")],
)
@pytest.mark.parametrize(("m", "n"), [(32, 64), (32, 256), (64, 128), (128, 64)])
def test_columns_go_on_in_the_next_lanes(
    kind: str, d: str, a: str, b: str, m: int, n: int, use: str
) -> None:
    left, right = factors(a, b, m, n)
    pool = np.zeros(POOL, np.uint8)
    k_major(pool, left, 0, *PLAIN)
    k_major(pool, right, SECOND, *WIDE)
    word = instruction_word(d, a, b, m, n)
    line = stationary(mma(kind + use, descriptor(0, *PLAIN), descriptor(SECOND, *WIDE), word))
    width = n * m // 128
    found = cells(product_body(line, width), pool, width).view(DTYPES[d])
    # Rows of D by parts of its columns, one below the other.
    wanted = exact(left, right).reshape(m, 128 // m, width).swapaxes(0, 1).reshape(128, width)
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize(
    ("word", "target", "said"),
    [
        (
            instruction_word("f32", "f16", "f16", 64, 32),
            "%r5",
            "64 rows of A and 32 columns of B, wh",
        ),
        (
            instruction_word("f32", "f16", "f16", 64, 64, more=1 << 30),
            "%r5",
            "shifts B, which the em",
        ),
        (
            instruction_word("f32", "f16", "f16", 64, 64),
            "%r5 + 1048576",
            "begin at lane 16 .* at 0",
        ),
    ],
)
def test_what_it_does_not_take_is_a_fault(word: int, target: str, said: str) -> None:
    line = stationary(mma("f16", *GOOD, word, target=target))
    with pytest.raises(TensorMemoryFault, match=said):
        cells(product_body(line, 8), np.zeros(POOL, np.uint8), 8)


def test_a_of_few_rows_in_tensor_memory_is_a_fault() -> None:
    word = instruction_word("f32", "f16", "f16", 64, 64)
    line = stationary(mma("f16", "[%r5 + 256]", GOOD[1], word))
    with pytest.raises(TensorMemoryFault, match="where 64 rows of A lie in tensor memory with"):
        cells(product_body(line, 8), np.zeros(POOL, np.uint8), 8)
