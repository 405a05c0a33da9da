"""Products in tensor memory with factors for blocks, which are copied there as kernels do."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate.model.errors import TensorMemoryFault
from ptx.emulate.model.order import LaunchOrder
from tests.contract.triton_tensor_memory import E2M1
from tests.emulator.engine.ops.tensor_layout import descriptor, k_major
from tests.emulator.engine.ops.tensor_products import (
    PLAIN,
    POOL,
    SECOND,
    cells,
    exact,
    mma,
    product_body,
)
from tests.rows import all_rows
from tests.short_cases import few

FACTORS = (8192, SECOND + 8192)  # where those of A and of B lie in shared memory
AT = (300, 320)  # and their columns
Bits = NDArray[np.uint8]


def elements(kind: str, rows: int, seed: int) -> tuple[Bits, NDArray[np.float64]]:
    """(rows, 32) bytes of elements, and what they are."""
    rng = np.random.default_rng(seed)
    if kind == "mxf8f6f4":
        values = rng.integers(-4, 5, (rows, 32)).astype(ml_dtypes.float8_e4m3fn)
        return values.view(np.uint8), values.astype(np.float64)
    nibbles = rng.integers(0, 16, (rows, 64)).astype(np.uint8)
    return nibbles[:, ::2] | nibbles[:, 1::2] << np.uint8(4), E2M1[nibbles]


def scales(factor: str, rows: int, chunks: int, seed: int) -> tuple[Bits, NDArray[np.float64]]:
    """(rows, chunks) factors of which all products and sums are exact: bits, and what they are."""
    powers = np.random.default_rng(seed).integers(-2, 3, (rows, chunks))
    bits = powers + 127 if factor == "ue8m0" else powers + 7 << 3
    return bits.astype(np.uint8), (2.0**powers).astype(np.float64)


def place_factors(pool: Bits, start: int, factors: Bits, first: int) -> None:
    """Of 128 rows four bytes each in 512 bytes, as cuBLAS and CUTLASS have them."""
    for row, some in enumerate(factors):
        at = start + row // 128 * 512 + row % 32 * 16 + row // 32 % 4 * 4
        pool[at + first : at + first + len(some)] = some


def copies() -> str:
    lines = ""
    for start, column in zip(FACTORS, AT, strict=True):
        for part in range(2):
            lines += f"""mov.u64 %rd6, {descriptor(start + 512 * part, 0, 128)};
                tcgen05.cp.cta_group::1.32x128b.warpx4 [%r5 + {column + 4 * part}], %rd6;"""
    return lines


def word_of(kind: str, factor: str, n: int, places: tuple[int, int] = (0, 0), more: int = 0) -> int:
    types = 0 if kind == "mxf8f6f4" else 1 << 7 | 1 << 10
    return (
        places[1] << 4
        | types
        | n >> 3 << 17
        | (factor == "ue8m0") << 23
        | 1 << 27
        | places[0] << 29
        | more
    )


def line_of(kind: str, word: int, size: str) -> str:
    return mma(
        f"{kind}.block_scale{size}",
        descriptor(0, *PLAIN),
        descriptor(SECOND, 4096, 128),
        word,
        mask=f"[%r5 + {AT[0]}], [%r5 + {AT[1]}], ",
    )


FORMS = [
    ("mxf8f6f4", "ue8m0", 1, "", (0, 0)), ("mxf8f6f4", "ue8m0", 1, ".block32", (1, 3)),
    ("mxf8f6f4", "ue8m0", 1, ".scale_vec::1X", (2, 0)), ("mxf4", "ue8m0", 2, "", (0, 2)),
    ("mxf4", "ue8m0", 2, ".scale_vec::2X", (2, 0)), ("mxf4nvf4", "ue8m0", 2, ".block32", (0, 0)),
    ("mxf4nvf4", "ue4m3", 4, ".block16", (0, 0)),
    ("mxf4nvf4", "ue8m0", 4, ".scale_vec::4X.collector::a::fill", (0, 0)),
]  # fmt: skip


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize(("kind", "factor", "chunks", "size", "places"), FORMS)
@pytest.mark.parametrize("n", few([8, 64, 136, 256], 1))
@pytest.mark.parametrize("order", few([None, LaunchOrder("late")], 1))
def test_blocks_of_rows_are_scaled(
    kind: str,
    factor: str,
    chunks: int,
    size: str,
    places: tuple[int, int],
    n: int,
    order: LaunchOrder | None,
) -> None:
    pool = np.full(POOL, 0x38, np.uint8)
    left, a = elements(kind, 128, 1)
    right, b = elements(kind, n, 2)
    (bits_a, of_a), (bits_b, of_b) = (scales(factor, r, chunks, r) for r in (128, n))
    k_major(pool, left, 0, *PLAIN)
    k_major(pool, right, SECOND, 4096, 128, 16)
    place_factors(pool, FACTORS[0], bits_a, places[0])
    place_factors(pool, FACTORS[1], bits_b, places[1])
    line = line_of(kind, word_of(kind, factor, n, places), size)
    found = cells(product_body(copies() + line, n), pool, n, order=order).view(np.float32)
    each = a.shape[1] // chunks
    wide_a, wide_b = (np.repeat(x, each, axis=1) for x in (of_a, of_b))
    assert np.array_equal(found, exact(a * wide_a, b * wide_b))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "word", "said"), [
    ("mxf8f6f4", word_of("mxf8f6f4", "ue4m3", 64), "names factors of ue4m3, of which"),
    ("mxf8f6f4", word_of("mxf8f6f4", "ue8m0", 64, more=5 << 7), "names the type e2m1"),
    ("mxf8f6f4", word_of("mxf8f6f4", "ue8m0", 64, more=1 << 31), "bits set that must be zero"),
    ("mxf8f6f4", word_of("mxf8f6f4", "ue8m0", 64, more=1 << 24), "bits set that must be zero"),
    ("mxf8f6f4", word_of("mxf8f6f4", "ue8m0", 64, more=4), "is of a sparse product"),
    ("mxf8f6f4", word_of("mxf8f6f4", "ue8m0", 64, more=2 << 27), "has 384 rows of A, not 128"),
    ("mxf4", word_of("mxf4", "ue8m0", 64, (1, 0)), "lets 2 factors begin at bytes 1 and 0"),
    ("mxf4", word_of("mxf4", "ue8m0", 64, more=1 << 31), "takes 96 elements along k"),
    ("mxf4", word_of("mxf4", "ue8m0", 64, more=1 << 15), "transposes elements of 4 bits"),
    ("mxf4", word_of("mxf4", "ue8m0", 64, more=1 << 8), "names types that .kind::mxf4 does not"),
])  # fmt: skip
def test_what_a_descriptor_cannot_request_is_a_fault(kind: str, word: int, said: str) -> None:
    with pytest.raises(TensorMemoryFault, match=said):
        cells(product_body(copies() + line_of(kind, word, ""), 8), np.zeros(POOL, np.uint8), 8)


def test_factors_must_be_the_same_for_all_four_warps() -> None:
    # The third warp has others.
    before = f"""setp.eq.u32 %p4, %r2, 2; selp.u32 %r50, 127, 128, %p4;
        tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6 + {AT[0]}], %r50;
        tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0;"""
    line = line_of("mxf8f6f4", word_of("mxf8f6f4", "ue8m0", 64), "")
    with pytest.raises(TensorMemoryFault, match="factors of row 0 differ among the lanes of the"):
        cells(product_body(line, 8, before=before), np.zeros(POOL, np.uint8), 8)
