"""Addresses that are an index times a power of two, beside the products themselves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.addresses import Varying, scaled
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text


def indices() -> list[NDArray[np.int32] | NDArray[np.uint32]]:
    """Lines, lines with a gap, values that fall, random ones and extremes; short and long."""
    rng = np.random.default_rng(3)
    found: list[NDArray[np.int32] | NDArray[np.uint32]] = []
    for count in (2, 63, 64, 300):
        line = np.arange(count, dtype=np.int32)
        gap = line.copy()
        gap[count // 2 :] += 1
        found += [line, line * 3 - 50, gap, line[::-1].copy(), np.full(count, 7, np.int32)]
        found.append(rng.integers(-(2**31), 2**31, count, np.int32))
        found.append(rng.integers(0, 2**32, count, np.uint32))
        found.append(line.view(np.uint32) + np.uint32(2**32 - 20))  # wraps to 0
    return found


def test_scaled_addresses_have_the_bounds_and_indices_of_their_products() -> None:
    for values in indices():
        for shift in (0, 2, 3, 31):
            parts = [Varying(values.astype(np.int64) << shift)]
            for _ in range(2):
                varying = scaled(values, shift).varying
                assert varying is not None
                parts.append(varying)
            plain, first, second = parts
            assert second.array.dtype == np.int64
            assert np.array_equal(plain.array, second.array)  # before anything else is computed
            for part in (first, second):
                assert part.line() == plain.line()
                least, greatest, bits = part.bounds()
                assert (least, greatest) == plain.bounds()[:2]
                assert bits & -bits == plain.bounds()[2] & -plain.bounds()[2]
                for by in {shift, max(0, shift - 1)}:
                    assert np.array_equal(part.index(by), plain.index(by))
                    assert np.array_equal(part.distances(by), plain.distances(by))
                start = np.arange(len(values), dtype=np.intp)
                where = part.placed("local", shift, start), plain.placed("local", shift, start)
                assert np.array_equal(*where)
            assert np.array_equal(plain.array, first.array)


def test_a_scaled_scalar_is_one_address() -> None:
    assert scaled(np.int32(-3), 2).base == -12
    assert scaled(np.uint32(2**32 - 1), 3).base == (2**32 - 1) * 8


def test_a_wide_product_is_an_address_and_a_value() -> None:
    """Also where its factor changes between, and where only one of two paths changes it."""
    text = ptx_text(
        """.reg .pred %p; .reg .b32 %r<9>; .reg .b64 %rd<9>;
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
        mad.lo.u32 %r1, %r2, 96, %r1; sub.s32 %r3, %r1, 100;
        mul.wide.s32 %rd2, %r3, 16; mul.wide.u32 %rd3, %r3, 8; mul.wide.u32 %rd6, %r1, 16;
        add.s64 %rd4, %rd1, %rd2; add.s32 %r3, %r3, 1;
        st.global.u64 [%rd4+1600], %rd2;
        setp.lt.u32 %p, %r1, 150; @%p bra SKIP;
        mul.wide.s32 %rd3, %r3, 4; add.s32 %r3, %r3, 5;
        SKIP: add.s64 %rd5, %rd1, %rd6; st.global.u64 [%rd5+8], %rd3; ret;""",
        ".param .u64 out",
    )
    runner = KernelRunner(text)
    out = runner.put(np.zeros(2 * 288, np.int64))
    runner.launch("k", 3, 96, out)
    found = runner.get(out, 2 * 288, np.int64).reshape(-1, 2)
    numbers = np.arange(288)
    assert np.array_equal(found[:, 0], (numbers - 100) * 16)
    unsigned = (numbers - 100).astype(np.uint32).astype(np.int64) * 8
    assert np.array_equal(found[:, 1], np.where(numbers < 150, unsigned, (numbers - 99) * 4))
