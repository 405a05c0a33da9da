"""Block and warp collectives of CUB, through NVRTC, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.emulator.engine.kernel_runner import KernelRunner
from tests.emulator.engine.ops.corpus import runner_of
from tests.short_cases import few

Rows = NDArray[np.int32]  # (blocks, threads)


@pytest.fixture(params=few(["compute_75", "compute_120"], 1))
def runner(request: pytest.FixtureRequest) -> KernelRunner:
    return runner_of("cub.cu", request.param)


@pytest.fixture
def x() -> Rows:
    return np.random.default_rng(2).integers(-1000, 1000, (3, 128)).astype(np.int32)


@pytest.mark.slow
def test_a_block_scan(runner: KernelRunner, x: Rows) -> None:
    out = runner.put(np.zeros(x.size, np.int32))
    runner.launch("cub_scan", 3, 128, runner.put(x), out)
    expected = np.cumsum(x, axis=1) - x
    assert runner.get(out, x.size, np.int32).tolist() == expected.reshape(-1).tolist()


@pytest.mark.slow
def test_a_block_reduction(runner: KernelRunner, x: Rows) -> None:
    out = runner.put(np.zeros(3, np.float32))
    runner.launch("cub_reduce", 3, 128, runner.put(x.astype(np.float32)), out)
    assert runner.get(out, 3, np.float32).tolist() == x.sum(axis=1).tolist()


@pytest.mark.slow
def test_warp_reductions_and_scans(runner: KernelRunner, x: Rows) -> None:
    out = runner.put(np.zeros(x.size, np.int32))
    runner.launch("cub_warp", 3, 128, runner.put(x), out)
    warps = x.reshape(-1, 32)
    expected = np.cumsum(warps, axis=1)
    expected[:, 0] = warps.sum(axis=1)
    assert runner.get(out, x.size, np.int32).tolist() == expected.reshape(-1).tolist()


@pytest.mark.slow
def test_a_block_radix_sort(runner: KernelRunner) -> None:
    x = np.random.default_rng(3).integers(-(2**31), 2**31, (2, 512)).astype(np.int32)
    address = runner.put(x)
    runner.launch("cub_sort", 2, 128, address)
    assert runner.get(address, 1024, np.int32).tolist() == np.sort(x).reshape(-1).tolist()
