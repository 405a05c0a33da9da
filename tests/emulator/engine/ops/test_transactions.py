"""CUDA C++ with barriers, pipelines and bulk copies, for several targets, against NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate.model.geometry import GridCall
from ptx.emulate.threads.limits import Limits
from tests.emulator.differential import corpus
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.emulator.engine.ops.corpus import compiled
from tests.rows import all_rows
from tests.short_cases import few

Words = NDArray[np.uint32]
BLOCKS, THREADS = 4, 128
N = BLOCKS * THREADS
LANES = np.arange(THREADS)


@functools.lru_cache(maxsize=4)
def text_of(target: str) -> str:
    source = Path(corpus.__file__).with_name("transaction.cu").read_text()
    return compiled(source, target, "transaction.cu")


def mix(a: Words, b: Words | int) -> Words:
    with np.errstate(over="ignore"):
        found: Words = a * np.uint32(2654435761) + (np.asarray(b, np.uint32) ^ a >> np.uint32(7))
    return found


def values(n: int = N) -> Words:
    return np.random.default_rng(5).integers(0, 2**32, n, dtype=np.uint32)


def by_block(each: Callable[[Words, int], Words]) -> Callable[[Words], Words]:
    """What one block gives, for all of them."""

    @functools.wraps(each)
    def whole(x: Words) -> Words:
        return np.concatenate([each(x[at : at + THREADS], at) for at in range(0, N, THREADS)])

    return whole


@by_block
def tokens(v: Words, _: int) -> Words:
    for k in range(1, 6):
        v = mix(v, k) + np.roll(v, -k)
    return v


@by_block
def drops(x: Words, _: int) -> Words:
    v, last = x.copy(), LANES % 7
    for k in range(7):
        stay, leave = last > k, last == k
        total = (v[stay].astype(np.uint64) + k).sum() + v[leave].astype(np.uint64).sum()
        v[stay] = mix(v[stay], int(total) & 0xFFFFFFFF)
    return v


@by_block
def weights(x: Words, _: int) -> Words:
    return x.take(LANES ^ 33)


@by_block
def makers(x: Words, _: int) -> Words:
    made, taken, lane = x[:64], x[64:], LANES[:64]
    for k in range(9):
        made = mix(made, k)
        taken = mix(taken, made[(lane + k) % 64])
    return np.concatenate([made, taken])


@by_block
def parities(v: Words, _: int) -> Words:
    for k in range(4):
        v = mix(v, v[32 * k : 32 * k + 32][(LANES + k) % 32])
    return v


def timed(x: Words) -> Words:
    return x * np.uint32(8) + np.uint32(2)  # the first phase is over late, the second never


@by_block
def block_copies(x: Words, at: int) -> Words:
    shifted = values()[at + 1 : at + 121]
    return mix(x[::-1], mix(shifted[LANES % 120], x[LANES ^ 1]))


def stages(x: Words) -> Words:
    total = np.zeros(THREADS, np.uint32)
    for k in range(8):
        start = (k * 128 + 37 * k) % 128
        total = mix(total, x[start + (LANES + k) % 128])
    return np.tile(mix(total, total), BLOCKS)


def specialised(x: Words) -> Words:
    total = np.zeros(64, np.uint32)
    for k in range(7):
        total = mix(total, x[(63 - LANES[:64] + 17 * k) % 256])
    return np.tile(np.concatenate([np.zeros(64, np.uint32), total]), BLOCKS)


def own_pipeline(x: Words) -> Words:
    total = np.zeros(THREADS, np.uint32)
    for k in range(8):
        total = mix(total, x[(LANES + 19 * k) % 256])
    return np.tile(total, BLOCKS)


def group_copies(x: Words) -> Words:
    return np.tile(mix(x[LANES ^ 5], x[64 + (LANES ^ 9)]), BLOCKS)


def primitives(x: Words) -> Words:
    found = mix(x[:128][::-1], np.zeros(128, np.uint32))
    return np.tile(mix(found, x[255 - LANES]), BLOCKS)


def completions(x: Words) -> Words:
    count, v = 5, x
    for _ in range(4):
        count = count * 3 + 1
        v = mix(v, count)
        count = count * 3 + 1
    return v


@by_block
def latches(x: Words, _: int) -> Words:
    return np.full(THREADS, np.tile(x[64::32], 2).sum(dtype=np.uint32))


@by_block
def sleepers(x: Words, at: int) -> Words:
    value = np.array([at // THREADS], np.uint32)
    for warp in (3, 2, 1, 0):
        value = mix(value, x[32 * warp])
    return np.repeat(value, THREADS)


def counts(x: Words) -> Words:
    n = x % np.uint32(5) + np.uint32(4)
    v = np.zeros(N, np.uint32)
    # Pending before 2 arrive, before the rest; not over for want of bytes, over; before one
    # arrives, before the others drop out; over; before the one that is left arrives; of the
    # parities the even one is over, in the fourth phase.
    for each in (n, n - 2, 0, 1, n, n - 1, 1, 1, 1):
        v = mix(v, each)
    return v


def bulk_in(x: Words) -> Words:
    s = np.concatenate([x[64:128], x[:192]])
    return np.tile(mix(s[255 - LANES], s[LANES]), BLOCKS)


@by_block
def bulk_out(x: Words, _: int) -> Words:
    mixed = mix(x, LANES.astype(np.uint32))[::-1]
    return mixed.reshape(4, 32)[::-1].reshape(-1)


def bulk_ring(x: Words) -> Words:
    total = np.zeros(THREADS, np.uint32)
    for k in range(8):
        total = mix(total, x[24 * k + (LANES + k) % 64])
    total[:32] = 0
    return np.tile(total, BLOCKS)


def neighbours(x: Words) -> Words:
    rows = mix(x, np.tile(LANES, BLOCKS).astype(np.uint32)).reshape(-1, 2, 128)
    found = np.concatenate([rows[:, ::-1, :96], rows[:, ::-1, 8:40]], axis=2)
    found[:, :, :64] = 0
    return found.reshape(-1)


def multicast(x: Words) -> Words:
    found = np.zeros((BLOCKS, 128), np.uint32)
    for block in range(BLOCKS):
        found[block, :64] = x[64 * (block - block % 2) :][:64]
    return found.reshape(-1)


def signals(x: Words) -> Words:
    rows, found = x.reshape(-1, 128), []
    for block in range(BLOCKS):
        v = rows[block ^ 1]
        wide = v.astype(np.uint64) << np.uint64(20) | LANES.astype(np.uint64)
        low, high = wide.astype(np.uint32), (wide >> np.uint64(32)).astype(np.uint32)
        both = v.reshape(16, 8).sum(axis=0, dtype=np.uint32)
        np.add.at(both, LANES % 3, np.uint32(1))
        r = mix(mix(v[::-1], mix(v, 2)), mix(low, high))
        found.append(mix(r, both[LANES % 8]))
    return np.concatenate(found)


def far_arrivals(x: Words) -> Words:
    rows = x.reshape(-1, 256)
    sums = rows.sum(axis=1, dtype=np.uint32) * np.uint32(3) + np.uint32(256 * 3)
    return np.repeat(sums, 256)


def dependents(x: Words) -> Words:
    return x + np.uint32(1)


TARGETS = ("compute_75", "compute_80", "compute_90", "compute_120")
EVERYWHERE = (
    tokens, drops, weights, makers, parities, timed, block_copies, stages, specialised,
    own_pipeline, group_copies, primitives, completions, latches, sleepers,
)  # fmt: skip
ALONE = (counts, bulk_in, bulk_out, bulk_ring, dependents)
JOINED = (neighbours, multicast, signals, far_arrivals)  # in clusters of two blocks
Expected = Callable[[Words], Words]
RUNS: list[tuple[Expected, str]] = [
    *((each, target) for each in EVERYWHERE for target in TARGETS),
    *((each, target) for each in (*ALONE, *JOINED) for target in TARGETS[2:]),
]


def launch(
    runner: KernelRunner, name: str, *arguments: int, cluster: int = 1, threads: int = 65536
) -> None:
    """Launch with addresses for arguments."""
    kernel = runner.program.kernel(name)
    assert [param.nbytes for param in kernel.signature.params] == [8] * len(arguments)
    params = np.array(arguments, np.uint64).tobytes()
    limits = Limits(chunk_threads=threads)
    call = GridCall((BLOCKS, 1, 1), (THREADS, 1, 1), params, cluster=(cluster, 1, 1))
    kernel.launch(call, limits=limits)


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize(
    ("expected", "target"),
    few(RUNS, 1),
    ids=[f"{each.__name__}-{target}" for each, target in RUNS],
)
def test_the_kernel_gives_what_numpy_gives(expected: Expected, target: str) -> None:
    runner = KernelRunner(text_of(target), 1 << 24)
    x = values()
    cluster = 2 if expected in JOINED else 1
    for threads in (65536, 100):
        out = runner.put(np.zeros(N, np.uint32))
        source = runner.put(x)
        launch(runner, expected.__name__, source, out, cluster=cluster, threads=threads)
        assert runner.get(out, N, np.uint32).tolist() == expected(x).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS[2:])
def test_bulk_reductions_combine_words_of_every_type(target: str) -> None:
    runner = KernelRunner(text_of(target), 1 << 24)
    x, before = values(), values(1024)[512:]
    rows = x.reshape(BLOCKS, 128)
    wide = before[:256].view(np.uint64)
    sums, least, totals = (runner.put(each) for each in (before[:256], before[256:], wide))
    launch(runner, "bulk_sums", runner.put(x), sums, least, totals)
    found = runner.get(sums, 256, np.uint32)
    assert found[:128].tolist() == (before[:128] + rows.sum(axis=0, dtype=np.uint32)).tolist()
    assert (
        found[128:].tolist() == (before[128:256] ^ rows[0] ^ rows[1] ^ rows[2] ^ rows[3]).tolist()
    )
    found = runner.get(least, 256, np.uint32)
    smallest = np.minimum(before[256:384].view(np.int32), rows.view(np.int32).min(axis=0))
    assert found[:128].view(np.int32).tolist() == smallest.tolist()
    assert found[128:].tolist() == np.maximum(before[384:], rows.max(axis=0)).tolist()
    added = wide + rows.astype(np.uint64).sum(axis=0) * np.uint64(0x1_0000_0001)
    assert runner.get(totals, 128, np.uint64).tolist() == added.tolist()


@pytest.mark.slow
def test_bulk_sums_of_halves_are_rounded_once_each() -> None:
    runner = KernelRunner(text_of("compute_90"), 1 << 24)
    rng = np.random.default_rng(8)
    x, before = (rng.normal(0, 300, 2 * N).astype(np.float16) for _ in range(2))
    out = runner.put(before)
    launch(runner, "bulk_halves", runner.put(x), out)
    pairs = x.reshape(BLOCKS, 128, 2)
    added = np.concatenate([pairs[:, :, 0], pairs[:, :, 1]], axis=1).reshape(-1)
    assert runner.get(out, 2 * N, np.float16).tolist() == (before + added).tolist()
