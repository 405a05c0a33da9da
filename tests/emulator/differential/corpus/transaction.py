"""Barriers in shared memory, pipelines, and the copies that signal them."""

from __future__ import annotations

from pathlib import Path

from tests.emulator.differential.case import Argument, Case, Held, In, Out, Source
from tests.emulator.differential.inputs import Below

_N = 256
_X = In("u32", _N)
_OUT = Out("u4", _N)


def _case(name: str, *arguments: Argument, grid: int = 2, cluster: int | None = None) -> Case:
    return Case(name, "transaction", arguments, grid, 128, cluster=cluster)


def source() -> Source:
    alike = ("tokens", "drops", "weights", "makers", "parities", "timed", "block_copies", "stages",
             "specialised", "own_pipeline", "group_copies", "primitives", "completions", "latches",
             "sleepers", "counts", "bulk_in", "bulk_out", "bulk_ring", "dependents")  # fmt: skip
    joined = ("neighbours", "multicast", "signals", "far_arrivals")
    cases = (
        *(_case(name, _X, _OUT) for name in alike),
        *(_case(name, _X, _OUT, cluster=2) for name in joined),
        _case("bulk_sums", _X, Held("u32", _N), Held("u32", _N), Held("u64", 128)),
        _case("bulk_floats", In("f32", _N), In("f64", _N), Held("f32", _N), Held("f64", _N)),
        _case("bulk_halves", In(Below(0x7800), _N), Held(Below(0x7800), _N)),
    )
    text = Path(__file__).with_name("transaction.cu").read_text()
    return Source("transaction", text, cases)
