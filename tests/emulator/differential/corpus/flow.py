"""Warps, barriers, control, special registers, cooperative grids and clusters."""

from __future__ import annotations

from pathlib import Path

import ptx
from tests.emulator.differential.case import Argument, Case, In, Out, Source
from tests.emulator.differential.inputs import Below, Kind, Uniform

_N = 256
_X = In("u32", _N)
_SMALL = In(Below(1000), _N)
_OUT = Out("u4", _N)


def _text(name: str) -> str:
    return Path(__file__).with_name(f"{name}.cu").read_text()


def _case(
    group: str,
    name: str,
    *arguments: Argument,
    grid: int | tuple[int, ...] = 2,
    block: int | tuple[int, ...] = 128,
    shared_bytes: int = 0,
    cluster: int | None = None,
    cooperative: bool = False,
) -> Case:
    return Case(name, group, arguments, grid, block, shared_bytes, cluster, cooperative)


def _floats(kind: Kind = "whole32") -> In:
    return In(kind, _N)


def warp_source() -> Source:
    shuffled = [
        _case("warp", "shuffle_modes", _X, _X, Out("u4", 28 * _N), _N),
        _case("warp", "shuffle_widths", _X, In("f64", _N), In("u64", _N), Out("f8", 5 * _N), _N),
        _case("warp", "votes", _X, Out("u4", 5 * _N), _N),
        _case("warp", "matches", In(Below(4), _N), In("u64", _N), Out("u4", 5 * _N), _N),
        _case("warp", "reductions", _X, Out("u4", 9 * _N), _N),
        _case("warp", "elections", _OUT),
        _case("warp", "active_masks", _X, _OUT),
        _case("warp", "warp_sum", In("f32", _N), Out("f4", _N)),
        _case("warp", "warp_argmax", In("f32", _N), _OUT),
        _case("warp", "warp_aggregated", _X, Out("u4", 1), Out("u4", 1)),
        _case("warp", "last_short_warp", In("u32", 120), Out("u4", 120), grid=3, block=40),
    ]
    alike = ("shuffle_parted", "shuffle_met", "warp_scan", "warp_sort", "warp_shared")
    cases = [*shuffled, *(_case("warp", name, _X, _OUT) for name in alike)]
    return Source("warp", _text("warp"), tuple(cases))


def barrier_source() -> Source:
    cases = [
        _case("barrier", "barrier_reduce", In("f32", _N), Out("f4", _N)),
        _case("barrier", "barrier_counts", _SMALL, Out("u4", 5 * _N), _N),
        _case("barrier", "barrier_in_branch", _X, _OUT, 5),
        _case(
            "barrier",
            "matrix_product",
            In("f32", 1024),
            In("whole32", 1024),
            Out("f4", 1024),
            32,
            grid=(4, 4),
            block=(8, 8),
        ),
    ]
    alike = ("barrier_scan", "barrier_named", "barrier_arrive", "barrier_ping_pong",
             "barrier_by_register", "barrier_after_exit", "block_sort", "warp_chain")  # fmt: skip
    cases += [_case("barrier", name, _X, _OUT) for name in alike]
    return Source("barrier", _text("barrier"), tuple(cases))


def _control() -> list[Case]:
    alike = ("branches", "jump_table", "jump_sparse", "jump_index", "nested_loops", "collatz",
             "predicated", "early_return", "exits", "recursion_local", "pointers",
             "pointer_chosen", "generator", "checked")  # fmt: skip
    return [
        *(_case("control", name, _X, _OUT) for name in alike),
        _case("control", "greatest_divisor", _X, _SMALL, _OUT),
        _case("control", "short_circuit", _X, _X, _OUT),
        _case("control", "calls", _X, Out("f8", _N)),
        _case("control", "recursion", _X, Out("u4", 4 * _N), _N),
        _case("control", "virtual_calls", _X, Out("f4", _N)),
        _case("control", "templates", _floats(), Out("f4", _N)),
        _case("control", "mandelbrot", Out("u4", 64 * 48), 64, 48, grid=(4, 6), block=(16, 8)),
        _case("control", "binary_search", _X, _OUT, _N),
        _case("control", "newton_root", In(Uniform("f8", 0.0, 1e6, 0), _N), Out("f8", _N)),
    ]


def control_source() -> Source:
    return Source("control", _text("control"), tuple(_control()))


def debug_source() -> Source:
    """The same compiled with -G: every variable in local memory, nothing inlined."""
    return Source(
        "control_debug", _text("control"), tuple(_control()), ptx.CompileOptions(debug=True)
    )


def special_source() -> Source:
    block, grid = (6, 3, 4), (3, 2, 2)
    n = 72 * 12
    cases = (
        _case("special", "special_places", Out("u4", 18 * n), n, grid=grid, block=block),
        _case("special", "special_warps", Out("u4", 2 * n), n, grid=grid, block=block),
        _case("special", "special_clusters", Out("u4", 9 * _N), _N, grid=8, block=32, cluster=4),
        _case("special", "special_unclustered", Out("u4", 7 * _N), _N, grid=8, block=32),
        _case("special", "special_shared", Out("u4", 64), grid=1, block=64, shared_bytes=80),
        _case("special", "special_shared_total", Out("u4", 64), grid=1, block=64, shared_bytes=80),
        _case("special", "special_processors", _OUT),
        _case("special", "special_times", _OUT),
    )
    return Source("special", _text("special"), cases)


def cooperative_source() -> Source:
    cases = (
        _case("cooperative", "grid_sync", _X, Out("u4", _N), Out("u4", _N), 4, grid=4, block=64,
              cooperative=True),
        _case("cooperative", "grid_sum", In("f32", 1000), Out("f4", 6), Out("f4", 1), 1000,
              grid=6, block=64, cooperative=True),
        _case("cooperative", "groups", _X, Out("u4", 5 * _N), _N),
        _case("cooperative", "cluster_memory", _X, _OUT, grid=4, block=64),
        _case("cooperative", "cluster_assembly", _X, _OUT, grid=4, block=64, cluster=4),
    )  # fmt: skip
    return Source("cooperative", _text("cooperative"), cases)


def sources() -> tuple[Source, ...]:
    return (
        warp_source(),
        barrier_source(),
        control_source(),
        debug_source(),
        special_source(),
        cooperative_source(),
    )
