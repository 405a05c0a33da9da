"""Cooperative groups, grids and clusters, through NVRTC, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.emulate.model.errors import LaunchError, OutOfBounds, SynchronisationFault, Trap
from ptx.emulate.model.geometry import GridCall
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
from tests.emulator.engine.ops.corpus import runner_of
from tests.short_cases import few

VARIANTS = [
    ("compute_75", False),
    ("compute_90", False),
    ("compute_90", True),
    ("compute_120", False),
]


@pytest.fixture(params=VARIANTS, ids=lambda v: v[0] + ("-G" if v[1] else ""))
def runner(request: pytest.FixtureRequest) -> KernelRunner:
    target, debug = request.param
    return runner_of("groups.cu", target, debug=debug)


@pytest.fixture
def newest() -> KernelRunner:
    return runner_of("groups.cu", "compute_120")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(11)


@pytest.mark.slow
@pytest.mark.parametrize("grid", few([7, 1, 40], 1))
def test_a_stencil_that_synchronises_the_grid(
    runner: KernelRunner, rng: np.random.Generator, grid: int
) -> None:
    x = rng.integers(0, 10, 1000).astype(np.int32)
    a, b = runner.put(x), runner.put(np.zeros(1000, np.int32))
    used = runner.memory.used_bytes
    # A cooperative grid is executed whole, whatever the size of other launches' chunks.
    runner.launch(
        "stencil", grid, 64, a, b, 1000, 5, cooperative=True, limits=Limits(chunk_threads=128)
    )
    expected = x.astype(np.int64)
    for _ in range(5):
        expected = np.roll(expected, 1) + 2 * expected + np.roll(expected, -1)
    assert runner.get(b, 1000, np.int32).tolist() == expected.tolist()
    assert runner.memory.used_bytes == used


@pytest.mark.slow
def test_blocks_that_arrive_late_at_the_grid_are_waited_for(runner: KernelRunner) -> None:
    count, seen = runner.put(np.zeros(1, np.uint32)), runner.put(np.zeros((3, 12), np.uint32))
    runner.launch("grid_phases", 12, 48, count, seen, cooperative=True)
    once = sum(3 * block + (t & 7) for block in range(12) for t in range(48))
    expected = [[once * (phase + 1)] * 12 for phase in range(3)]
    assert runner.get(seen, 36, np.uint32).reshape(3, 12).tolist() == expected


@pytest.mark.slow
def test_a_grid_that_was_not_launched_cooperatively_traps(newest: KernelRunner) -> None:
    a = newest.put(np.zeros(64, np.int32))
    with pytest.raises(Trap):
        newest.launch("stencil", 1, 64, a, a, 64, 1)


@pytest.mark.slow
def test_tiles_reduce_scan_and_vote_by_themselves(
    runner: KernelRunner, rng: np.random.Generator
) -> None:
    x = rng.integers(0, 100, (2, 96)).astype(np.int32)
    out = runner.put(np.zeros(192, np.int32))
    runner.launch("tiles", 2, 96, runner.put(x), out)
    t8, t32 = x.reshape(-1, 8).astype(np.int64), x.reshape(-1, 32)
    value = np.repeat(t8.sum(axis=1), 8) + 1000 * np.repeat(t32.max(axis=1), 32)
    value += 100000 * np.repeat(t8[:, 3] & 7, 8) + np.repeat((t8 > 90).any(axis=1), 8) * (1 << 24)
    value += (np.cumsum(t8, axis=1) - t8).reshape(-1) << 25
    assert runner.get(out, 192, np.int32).tolist() == value.astype(np.int32).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["compute_90", "compute_120"])
def test_tiles_of_two_warps(rng: np.random.Generator, target: str) -> None:
    runner = runner_of("groups.cu", target)
    x = rng.integers(0, 97, (2, 128)).astype(np.int32)
    out = runner.put(np.zeros(256, np.int32))
    runner.launch("wide_tiles", 2, 128, runner.put(x), out)
    tiles = x.reshape(-1, 64)
    value = tiles.sum(axis=1) + 100000 * tiles[:, 33] + ((tiles > 95).any(axis=1) << 24)
    assert runner.get(out, 256, np.int32).tolist() == np.repeat(value, 64).tolist()


@pytest.mark.slow
def test_coalesced_threads_are_those_of_the_branch(
    runner: KernelRunner, rng: np.random.Generator
) -> None:
    x = rng.integers(1, 100, (4, 32)).astype(np.int32)
    out = runner.put(np.zeros(128, np.int32))
    runner.launch("coalesced", 2, 64, runner.put(x), out)
    expected = []
    for row in x.tolist():
        inside = [v for v in row if v % 3]
        odd = sum(v & 1 for v in inside)
        rank = 0
        for v in row:
            if v % 3 == 0:
                expected.append(-1)
                continue
            value = 1000 * len(inside) + rank + 100000 * min(inside)
            expected.append(value + 10000000 * odd if v & 1 else value)
            rank += 1
    found = runner.get(out, 128, np.int32)
    assert found.tolist() == np.array(expected).astype(np.int32).tolist()


@pytest.mark.slow
def test_labelled_and_binary_partitions(runner: KernelRunner, rng: np.random.Generator) -> None:
    x = rng.integers(0, 100, (4, 32)).astype(np.int32)
    out = runner.put(np.zeros(128, np.int32))
    runner.launch("labelled", 2, 64, runner.put(x), out)
    expected = []
    for row in x.tolist():
        for v in row:
            same = [w for w in row if w % 4 == v % 4]
            two = sum((w > 50) == (v > 50) for w in row)
            expected.append(len(same) + 100 * sum(same) + 1000000 * two)
    assert runner.get(out, 128, np.int32).tolist() == expected


CLUSTER_TARGETS = ["compute_90", "compute_100", "compute_120"]


def launch_clusters(
    runner: KernelRunner,
    name: str,
    grid: tuple[int, int, int],
    block: int,
    cluster: tuple[int, int, int] | None,
    *addresses: int,
    limits: Limits | None = None,
) -> None:
    params = b"".join(address.to_bytes(8, "little") for address in addresses)
    kernel = runner.program.kernel(name)
    call = GridCall(grid, (block, 1, 1), params, cluster=cluster)
    kernel.launch(call, limits=limits or Limits())


@pytest.mark.slow
@pytest.mark.parametrize("target", CLUSTER_TARGETS)
@pytest.mark.parametrize("chunk", [1, 32768])
def test_blocks_of_a_cluster_add_into_each_others_shared_memory(
    rng: np.random.Generator, target: str, chunk: int
) -> None:
    runner = runner_of("groups.cu", target)
    x = rng.integers(0, 1000, (3, 4, 64)).astype(np.int32)
    out = runner.put(np.zeros(x.size, np.int32))
    limits = Limits(chunk_threads=chunk)
    launch_clusters(
        runner, "cluster_sum", (12, 1, 1), 64, (4, 1, 1), runner.put(x), out, limits=limits
    )
    sums = (x.sum(axis=2) * np.arange(1, 5)).sum(axis=1)
    assert runner.get(out, x.size, np.int32).tolist() == np.repeat(sums, 256).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [(2, 2, 1), (1, 4, 1), (4, 2, 1)])
def test_a_ring_through_clusters_of_two_dimensions(
    newest: KernelRunner, cluster: tuple[int, int, int]
) -> None:
    out = newest.put(np.zeros(8 * 4 * 32, np.int32))
    launch_clusters(newest, "cluster_ring", (8, 4, 1), 32, cluster, out)
    found = newest.get(out, 8 * 4 * 32, np.int32).reshape(4, 8, 32)
    width, height, _ = cluster
    for y in range(4):
        for x in range(8):
            rank = (x % width) + width * (y % height)
            left = (rank - 1) % (width * height)
            assert found[y, x].tolist() == [100 * left + t + 10000 for t in range(32)]


@pytest.mark.slow
def test_special_registers_describe_the_cluster_a_kernel_requires(newest: KernelRunner) -> None:
    out = newest.put(np.zeros(6 * 4 * 12, np.uint32))
    launch_clusters(newest, "cluster_places", (6, 4, 1), 1, None, out)
    found = newest.get(out, 6 * 4 * 12, np.uint32).reshape(4, 6, 12)
    for y in range(4):
        for x in range(6):
            rank = x % 2 + 2 * (y % 2)
            expected = [x % 2, y % 2, x // 2, y // 2, 3, 2, 2, 2, rank, 4, 1, 0]
            assert found[y, x].tolist() == expected


@pytest.mark.slow
def test_a_grid_that_clusters_do_not_divide_is_rejected(newest: KernelRunner) -> None:
    with pytest.raises(LaunchError, match="no multiple of the cluster"):
        launch_clusters(newest, "cluster_ring", (7, 1, 1), 32, (2, 1, 1), 0)


HEAD = """.reg .b32 %r<9>; .reg .b64 %rd<9>; .shared .align 4 .b8 s[64]; ld.param.u64 %rd1, [out];
    mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, s;"""


@pytest.mark.slow
def test_shared_memory_of_a_block_outside_of_the_cluster_is_a_fault() -> None:
    body = HEAD + "mapa.shared::cluster.u32 %r3, %r2, 2; ld.shared::cluster.u32 %r4, [%r3]; ret;"
    runner = KernelRunner(ptx_text(body, ".param .u64 out"), 1 << 20)
    with pytest.raises(OutOfBounds):
        launch_clusters(runner, "k", (2, 1, 1), 32, (2, 1, 1), 0)


@pytest.mark.slow
def test_accesses_beyond_another_blocks_shared_memory_are_faults() -> None:
    body = HEAD + "mapa.shared::cluster.u32 %r3, %r2, 1; st.shared::cluster.u32 [%r3+64], 1; ret;"
    runner = KernelRunner(ptx_text(body, ".param .u64 out"), 1 << 20)
    with pytest.raises(OutOfBounds, match="shared address 0x40"):
        launch_clusters(runner, "k", (2, 1, 1), 32, (2, 1, 1), 0)


@pytest.mark.slow
def test_waiting_at_the_clusters_barrier_without_arriving_is_a_fault() -> None:
    runner = KernelRunner(ptx_text(HEAD + "barrier.cluster.wait; ret;", ".param .u64 out"), 1 << 20)
    with pytest.raises(SynchronisationFault, match="without having arrived"):
        launch_clusters(runner, "k", (2, 1, 1), 32, (2, 1, 1), 0)
