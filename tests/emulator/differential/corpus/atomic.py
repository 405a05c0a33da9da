"""Atomics and reductions of every kind whose result no order can change."""

from __future__ import annotations

from pathlib import Path

from tests.emulator.differential.case import Argument, Case, Held, In, Out, Source


def _case(name: str, *arguments: Argument, grid: int = 2, block: int = 128) -> Case:
    return Case(name, "atomic", arguments, grid, block)


def source() -> Source:
    n, m = 256, 1024
    x, y, wide = In("u32", n), In("u32", n), In("u64", n)
    cases = (
        _case("atomic_global_32", In("u32", 1024), Held("u32", 88), grid=8),
        _case("atomic_global_64", In("u64", 1024), Held("u64", 64), grid=8),
        _case("atomic_old_32", x, y, Held("u32", n), Out("u4", 17 * n), n),
        _case("atomic_old_64", wide, wide, Held("u64", n), Out("u8", 12 * n), n),
        _case("atomic_old_shared", x, y, Out("u4", 12 * n), n),
        _case("atomic_add_floats", In("f32", m), In("f64", m), Held("f32", m), Held("f64", m),
              Out("f4", m), Out("f8", m), grid=8),
        _case("atomic_red_floats", In("f32", m), In("f64", m), Held("f32", m), Held("f64", m),
              grid=8),
        _case("atomic_shared_floats", In("f32", m), In("f64", m), In("f32", m), Out("f4", m),
              Out("f8", m), grid=8),
        _case("atomic_generic_floats", In("f32", n), Held("f32", n), Out("f4", 2 * n)),
        _case("atomic_sums", In("whole32", 2048), Out("f4", 4), Out("f8", 4), grid=16),
        _case("atomic_halves", In("f16x2", n), Held("f16x2", n), Held("bf16x2", n),
              Out("u4", 2 * n), n),
        _case("atomic_single_halves", In("f16", n), Held("f16", n), Held("bf16", n),
              Out("u2", 2 * n), n),
        _case("atomic_vectors", In("f32", n), Held("f32", 3 * n), Held("f32", 4 * n)),
        _case("atomic_vector_halves", In("f16x2", n), Held("f16x2", 2 * n), Held("bf16x2", 4 * n)),
        _case("atomic_scopes", x, Held("u32", n), Out("u4", n)),
        _case("atomic_short_swap", In("u16", n), Held("u16", n), Out("u2", 2 * n), n),
        _case("atomic_wide", In("u64", 2 * n), Held("u64", 2 * n), Out("u8", 4 * n)),
        _case("atomic_histogram", In("u8", 5000), Out("u4", 64), 5000, grid=8),
        _case("atomic_tickets", Out("u4", 1), Out("u4", 1024), grid=8),
        _case("atomic_append", In("u32", 1024), Out("u4", 1), Out("u4", 1), grid=8),
        _case("atomic_swap_loop", In("whole32", 256), Out("f4", 4)),
        _case("atomic_swap_add", In("whole32", 64), Out("f8", 1), grid=1, block=64),
        _case("atomic_lock", Out("u4", 1), Out("u4", 2), In("u32", 20), grid=20, block=32),
        _case("atomic_last_block", In("u32", 1280), Out("u4", 20), Out("u4", 1), Out("u4", 1),
              grid=20, block=64),
    )  # fmt: skip
    return Source("atomic", Path(__file__).with_name("atomic.cu").read_text(), cases)
