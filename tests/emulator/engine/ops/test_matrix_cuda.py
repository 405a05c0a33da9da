"""Tensor cores and asynchronous copies from CUDA C++: mma.h, cuda_pipeline.h and others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import cudadrv
import ptx
from cudadrv.emulator import session
from cudadrv.errors import MisalignedAddressError
from ptx.emulate.model.errors import Misaligned
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.emulator.engine.ops.corpus import runner_of
from tests.emulator.engine.ops.matrix_lanes import packed
from tests.short_cases import few

TARGETS = ["compute_75", "compute_90", "compute_100"]
M, N, K = 48, 80, 64


@pytest.fixture(params=few(TARGETS, 2))
def any_runner(request: pytest.FixtureRequest) -> KernelRunner:
    return runner_of("matrices.cu", request.param)


@pytest.fixture(params=TARGETS[1:])
def runner(request: pytest.FixtureRequest) -> KernelRunner:
    return runner_of("matrices.cu", request.param)


def halves(rng: np.random.Generator, *size: int) -> NDArray[np.float16]:
    return rng.standard_normal(size).astype(np.float16)


def run_tiles(runner: KernelRunner, kernel: str, a: Any, b: Any, c: Any) -> NDArray[Any]:
    out = runner.put(c)
    grid = (-(-N // 64), M // 16, 1)
    runner.launch(kernel, grid, 128, runner.put(a), runner.put(b), out, M, N, K, 2.0, -0.5)
    return runner.get(out, M * N, c.dtype).reshape(M, N)


@pytest.mark.slow
def test_a_product_of_halves(any_runner: KernelRunner) -> None:
    rng = np.random.default_rng(1)
    a, b = halves(rng, M, K), halves(rng, N, K)
    c = rng.standard_normal((M, N)).astype(np.float32)
    found = run_tiles(any_runner, "product_half", a, b, c)
    exact = 2.0 * (a.astype("f8") @ b.T.astype("f8")) - 0.5 * c
    assert np.allclose(found, exact, rtol=0, atol=2e-5)


@pytest.mark.slow
def test_a_product_that_is_summed_in_halves(any_runner: KernelRunner) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(-3, 4, (M, K)), rng.integers(-3, 4, (N, K))
    c = rng.integers(-8, 9, (M, N)) * 2
    left, right, old = (x.astype(np.float16) for x in (a, b, c))
    found = run_tiles(any_runner, "product_half_half", left, right, old)
    assert np.array_equal(found, 2 * (a @ b.T) - c / 2)


@pytest.mark.slow
def test_a_product_of_bytes(any_runner: KernelRunner) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-128, 128, size).astype(np.int8) for size in ((M, K), (N, K)))
    c = rng.integers(-1000, 1000, (M, N)).astype(np.int32) * 2
    found = run_tiles(any_runner, "product_bytes", a, b, c)
    assert np.array_equal(found, 2 * (a.astype("i8") @ b.T.astype("i8")) - c // 2)


@pytest.mark.slow
def test_a_product_of_bfloats(runner: KernelRunner) -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-100, 101, size).astype(np.float32) for size in ((M, K), (N, K)))
    c = np.ones((M, N), np.float32)
    left, right = ((x.view(np.uint32) >> 16).astype(np.uint16) for x in (a, b))
    found = run_tiles(runner, "product_bfloat", left, right, c)
    assert np.array_equal(found, 2 * (a @ b.T) - 0.5)


@pytest.mark.slow
def test_products_of_other_types(runner: KernelRunner) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(-9, 10, (16, 8)), rng.integers(-9, 10, (16, 8))
    out = runner.put(np.zeros(256, np.float32))
    runner.launch(
        "product_tf32", 1, 32, runner.put(a.astype("f4")), runner.put(b.astype("f4")), out
    )
    assert np.array_equal(runner.get(out, 256, "f4").reshape(16, 16).T, a @ b.T)
    c, d = rng.standard_normal((8, 4)), rng.standard_normal((4, 8))
    out = runner.put(np.zeros(64))
    runner.launch("product_double", 1, 32, runner.put(c), runner.put(d), out)
    assert np.allclose(runner.get(out, 64, "f8").reshape(8, 8), c @ d + 1, rtol=1e-15)


@pytest.mark.slow
def test_products_of_parts_of_bytes(any_runner: KernelRunner) -> None:
    rng = np.random.default_rng(6)
    a, b = rng.integers(-8, 8, (8, 32)), rng.integers(-8, 8, (8, 32))
    out = any_runner.put(np.zeros(64, np.int32))
    places = [any_runner.put(packed(x & 15, "s4")) for x in (a, b)]
    any_runner.launch("product_nibbles", 1, 32, *places, out)
    assert np.array_equal(any_runner.get(out, 64, "i4").reshape(8, 8), a @ b.T)
    a, b = rng.integers(0, 2, (8, 128)), rng.integers(0, 2, (8, 128))
    places = [any_runner.put(packed(x, "b1")) for x in (a, b)]
    any_runner.launch("product_bits", 1, 32, *places, out)
    differing = (a[:, None] ^ b[None]).sum(axis=2)
    assert np.array_equal(any_runner.get(out, 64, "i4").reshape(8, 8), differing)


@pytest.mark.slow
def test_a_pipelined_product_by_ldmatrix_and_mma(runner: KernelRunner) -> None:
    rng = np.random.default_rng(7)
    m, n, k = 128, 192, 128
    a, b = halves(rng, m, k), halves(rng, n, k)
    out = runner.put(np.zeros(m * n, np.float32))
    runner.launch(
        "product_pipelined", (n // 64, m // 64, 1), 128, runner.put(a), runner.put(b), out, n, k
    )
    found = runner.get(out, m * n, np.float32).reshape(m, n)
    exact = a.astype("f8") @ b.T.astype("f8")
    assert np.allclose(found, exact, rtol=0, atol=4e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["reversed_by_pipeline", "reversed_by_group"])
def test_copies_by_single_threads_and_by_a_block(any_runner: KernelRunner, kernel: str) -> None:
    values = np.arange(1000, dtype=np.int32)
    out = any_runner.put(np.zeros(1000, np.int32))
    any_runner.launch(kernel, 8, 128, any_runner.put(values), out, 1000, shared=512)
    want = np.concatenate([part[::-1] for part in np.split(values, range(128, 1000, 128))])
    assert np.array_equal(any_runner.get(out, 1000, np.int32), want)


@pytest.mark.slow
def test_copies_by_warps_and_by_a_pipeline_of_each_thread(any_runner: KernelRunner) -> None:
    values = np.arange(2048, dtype=np.int32)
    out = any_runner.put(np.zeros(2048, np.int32))
    any_runner.launch("reversed_by_warps", 4, 128, any_runner.put(values), out)
    want = values.reshape(-1, 32, 4)[:, ::-1].reshape(-1)
    assert np.array_equal(any_runner.get(out, 2048, np.int32), want)
    any_runner.launch("reversed_by_thread_pipeline", 16, 64, any_runner.put(values), out)
    want = values.reshape(-1, 64)[:, ::-1].reshape(-1)
    assert np.array_equal(any_runner.get(out, 2048, np.int32), want)


SOURCE = """#include <mma.h>
using namespace nvcuda::wmma;
extern "C" __global__ void product(const half* a, const half* b, float* c) {
    fragment<matrix_a, 16, 16, 16, half, row_major> left;
    fragment<matrix_b, 16, 16, 16, half, col_major> right;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0.f);
    load_matrix_sync(left, a, 16);
    load_matrix_sync(right, b, 16);
    mma_sync(sum, left, right, sum);
    store_matrix_sync(c, sum, 16, mem_row_major);
}
"""


@pytest.mark.slow
def test_through_the_driver_and_its_checker() -> None:
    rng = np.random.default_rng(8)
    a, b = halves(rng, 16, 16), halves(rng, 16, 16)
    with session() as emulator:
        context = cudadrv.cuda_context_for(0)
        options = ptx.CompileOptions(target=context.target, lineinfo=True)
        image = ptx.compile(SOURCE, options, cache=False)
        with context.load_module(image) as module, context.new_stream() as stream:
            kernel, config = module.kernel("product"), cudadrv.LaunchConfig(1, 32)
            left, right, out = (stream.to_device(x) for x in (a, b, np.zeros((16, 16), "f4")))
            kernel.launch(stream, config, left, right, out)
            exact = a.astype("f8") @ b.T.astype("f8")
            assert np.allclose(stream.to_host(out), exact, rtol=0, atol=1e-5)
            with pytest.raises(MisalignedAddressError):
                kernel.launch(stream, config, left.ptr + 2, right, out)
        fault = emulator.last_fault
    assert isinstance(fault, Misaligned)
    assert "wmma.load.a" in str(fault)
    assert fault.where.thread == (0, 0, 0)
