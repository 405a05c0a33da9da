"""Asynchronous copies from global to shared memory: `cp.async`, and what C++ makes of it."""

from __future__ import annotations

from pathlib import Path

from tests.emulator.differential.case import Argument, Case, In, Out, Source
from tests.emulator.differential.inputs import Uniform


def _case(name: str, *arguments: Argument, block: int = 128, rows: tuple[str, ...] = ()) -> Case:
    return Case(name, "async_copy", arguments, 2, block, rows=rows)


def _names(*rows: str) -> tuple[str, ...]:
    return tuple(f"cp.async {row}" for row in rows)


def source() -> Source:
    """One source of all."""
    n = 256
    words, flags = In("u32", 4 * n), In("u32", n)
    cases = (
        _case("copy_sizes", words, Out("u4", 36 * n), n,
              rows=_names("4", "8", "16", "cg 16", "4 from behind", "8 to the end", "L2::128B",
                          "L2::256B", "L2::cache_hint")),
        _case("copy_parts", words, flags, Out("u4", 24 * n), n,
              rows=_names("4", "8", "16", "cg 16", "L2::cache_hint", "5 bytes")),
        _case("copy_ignored", words, flags, Out("u4", 16 * n), n,
              rows=_names("4", "8", "16", "cg 16")),
        _case("copy_guarded", words, flags, Out("u4", 8 * n), n, rows=_names("8", "cg 16")),
        _case("copy_groups", words, Out("u4", n)),
        _case("two_stages", In(Uniform("f4", -4, 4, edges=0), 2 * 128 * 9), Out("f4", n), 9),
        _case("filled_with_zeros", words, Out("u4", 4 * n), 16 * n - 1003),
        _case("copied_by_a_block", In("u8", 4096), Out("u1", 4096)),
        _case("copied_by_warps", In("u32", 4 * 512), Out("u4", 4 * 512)),
        _case("thread_pipeline", In("u64", 1024), Out("u8", 1024), block=64),
        _case("block_barrier", In("u32", 4 * 1536), Out("u4", 4 * 1536)),
    )  # fmt: skip
    return Source("async_copy", Path(__file__).with_name("async_copy.cu").read_text(), cases)
