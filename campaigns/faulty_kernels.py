"""Pairs of kernels in CUDA C++: one that is wrong in some orders only, and its corrected twin."""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import ptx
from ptx.emulate import EmulationFault, LaunchOrder
from tests.emulator.engine.kernel_runner import KernelRunner

from .report import Report

Ints = NDArray[np.int32]
THREADS = 128
BLOCKS = 6
LATE = LaunchOrder("late")


def _by_block(x: Ints) -> Ints:
    return x.reshape(BLOCKS, THREADS)


def _tile(x: Ints) -> Ints:
    return _by_block(x)[:, ::-1]


def _buffers(x: Ints) -> Ints:
    moved = np.roll(_by_block(x), -37, axis=1)
    return sum((k + 1) * (moved + k) for k in range(6)) + np.zeros_like(moved)


def _warp(x: Ints) -> Ints:
    found = np.zeros((BLOCKS, THREADS), np.int32)
    found[:, 0] = _by_block(x).sum(axis=1)
    return found


def _order(x: Ints) -> Ints:
    return np.cumsum(_by_block(x), axis=0, dtype=np.int32)


def _group(x: Ints) -> Ints:
    return np.roll(_by_block(x) + 1000 * _by_block(x)[:, ::-1], -1, axis=1)


def _phase(x: Ints) -> Ints:
    tiles = _by_block(x)[:, ::-1]
    return 9 * tiles + 3 * np.roll(tiles, -1, axis=0) + np.roll(tiles, -2, axis=0)


def _last(x: Ints) -> Ints:
    return np.vstack([2 * _by_block(x), 2 * _by_block(x).sum(axis=0, dtype=np.int32)])


WANTED: dict[str, Callable[[Ints], Ints]] = {
    "tile": _tile, "buffers": _buffers, "warp": _warp, "order": _order, "group": _group,
    "phase": _phase, "source": _by_block, "last": _last, "flag": _order,
}  # fmt: skip


@functools.cache
def text() -> str:
    """The PTX of all kernels."""
    source = Path(__file__).with_suffix(".cu").read_text()
    options = ptx.CompileOptions(target=ptx.Target.ptx("compute_90"))
    found = ptx.compile(source, options, name="faulty.cu").ptx
    assert found is not None
    return found


@functools.cache
def _runner() -> KernelRunner:
    return KernelRunner(text(), 1 << 24)


def run(kernel: str, order: LaunchOrder | None) -> tuple[Ints, int]:
    """What a launch leaves in `out`, and how its order was decided.

    Raises:
        EmulationFault: what the kernel did wrong.
    """
    runner = _runner()
    x = inputs()
    places = [runner.put(x), runner.put(np.zeros(len(x) + THREADS, np.int32))]
    places.append(runner.put(np.zeros(BLOCKS, np.uint32)))
    try:
        trace = runner.launch(kernel, BLOCKS, THREADS, *places, order=order)
        return runner.get(places[1], len(x) + THREADS, np.int32), trace
    finally:
        for place in places:
            runner.memory.free(place)


def inputs() -> Ints:
    """What each thread reads."""
    return np.random.default_rng(7).integers(1, 1000, BLOCKS * THREADS).astype(np.int32)


def is_right(kernel: str, order: LaunchOrder | None) -> bool:
    """Whether a launch gives what it should, and no fault."""
    try:
        found, _ = run(kernel, order)
    except EmulationFault:
        return False
    wanted = WANTED[kernel.rpartition("_")[0]](inputs())
    return np.array_equal(found[: wanted.size], wanted.reshape(-1))


def seeds_that_find(kernel: str, seeds: int) -> list[int]:
    """The seeds under which a kernel goes wrong."""
    return [seed for seed in range(seeds) if not is_right(kernel, LaunchOrder("random", seed))]


def run_campaign(seconds: float, seed: int) -> Report:
    """Run every pair in every order; then the right kernels with one seed after another."""
    report, end = Report(), time.monotonic() + seconds
    chosen = list(WANTED)
    random.Random(seed).shuffle(chosen)
    for name in chosen:
        late = not is_right(f"{name}_faulty", LATE)
        seeds = (s for s in range(50) if not is_right(f"{name}_faulty", LaunchOrder("random", s)))
        first = next(seeds, None)
        report.count("faulty kernels")
        report.notes.append(f"{name:12} {'wrong' if late else 'right'} late, first seed {first}")
        if not late and first is None:
            report.failures.append(f"{name}: nothing finds it")
        for order in (None, LATE):
            if not is_right(f"{name}_right", order):
                report.failures.append(f"{name}: the right kernel is wrong under {order}")
        if time.monotonic() > end:
            return report
    while time.monotonic() < end:
        for name in chosen:
            report.count("right kernels")
            if not is_right(f"{name}_right", LaunchOrder("random", seed)):
                report.failures.append(f"{name}: the right kernel is wrong with seed {seed}")
        seed += 1
    return report
