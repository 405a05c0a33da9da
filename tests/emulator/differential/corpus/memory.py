"""Memory of every space, vectors, structs by value, module variables."""

from __future__ import annotations

import struct
from pathlib import Path

from tests.emulator.differential.case import Argument, Case, Held, In, Out, Source
from tests.emulator.differential.inputs import Below

_SMALL = struct.pack("<ibxhd", -5, -3, 1000, 0.75)
_LARGE = struct.pack("<12f5B3xq", *(k * 0.5 - 2 for k in range(12)), 1, 2, 250, 4, 5, -(1 << 40))
_WIDE = struct.pack("<4f2i4H", 1.0, -2.0, 3.5, 1e-40, 7, -7, 1, 2, 3, 0xFFFF)
_WIDE += bytes(-len(_WIDE) % 16)


def _case(
    name: str,
    *arguments: Argument,
    grid: int | tuple[int, ...] = 2,
    block: int | tuple[int, ...] = 128,
    shared_bytes: int = 0,
) -> Case:
    return Case(name, "memory", arguments, grid, block, shared_bytes)


def source() -> Source:
    n = 256
    x = In("u32", n)
    small = In(Below(1000), n)
    cases = (
        _case("load_widths", In("u8", 8 * n), Out("u8", n)),
        _case("store_widths", In("u64", n), Out("u1", 15 * n)),
        _case("vectors", In("f32", 4 * n), In("u8", 4 * n), In("u16", 2 * n), In("f64", 2 * n),
              Out("f4", 8 * n)),
        _case("vector_stores", x, Out("u4", 4 * n), Out("u2", 4 * n), Out("u1", 4 * n),
              Out("u8", 2 * n), Out("u4", 2 * n)),
        _case("suffixes", x, Out("u4", n), Out("u4", n)),
        _case("shared_static", x, Out("u4", n)),
        _case("shared_dynamic", In("f64", n), Out("f8", n), 128, shared_bytes=128 * 14),
        _case("transpose", In("f32", 48 * 48), Out("f4", 48 * 48), 48, grid=(3, 3), block=(16, 16)),
        _case("local_arrays", x, small, Out("u4", n)),
        _case("local_bytes", In("u8", n), Out("u1", n)),
        _case("struct_small", _SMALL, x, Out("f8", n)),
        _case("struct_large", -3, _LARGE, 9, small, Out("f8", n)),
        _case("struct_wide", _WIDE, Out("u1", n * len(_WIDE))),
        _case("struct_pointer", Held("u8", n * 64), small),
        _case("constants", small, Out("f8", n)),
        _case("variables", small, Out("u4", n)),
        _case("variable_stores", small, Out("u4", n), grid=1, block=256),
        _case("generic", x, Out("u4", n)),
        _case("address_spaces", x, Out("u4", n)),
        _case("unaligned_bytes", In("u8", 4 * n), Out("u4", n)),
        _case("block_copy", In("u8", 24 * n), Out("u1", 24 * n)),
        _case("strided", In("f32", 1000), Out("f4", 1000), 1000, 7),
        _case("gather", In("f32", 1000), In(Below(1000), 250), Out("f4", 250), 250),
        _case("scatter", x, small, Out("u4", n)),
        _case("stencil", In("f32", n), Out("f4", n), n),
        _case("heap", x, Out("u4", n)),
        _case("wide_words", In("u64", 2 * n), Out("u8", 4 * n)),
    )  # fmt: skip
    return Source("memory", Path(__file__).with_name("memory.cu").read_text(), cases)
