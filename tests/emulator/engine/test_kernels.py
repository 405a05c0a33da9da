"""Whole kernels, as NVRTC compiles them, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.emulate import ieee
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner, compiled

TARGETS = ["compute_75", "compute_90", "compute_100", "compute_120"]
CHUNKS = [Limits(chunk_threads=256), Limits(chunk_threads=1500), Limits()]


@pytest.fixture(params=TARGETS)
def runner(request: pytest.FixtureRequest) -> KernelRunner:
    return KernelRunner(compiled(request.param))


@pytest.mark.slow
def test_saxpy_is_fused_and_leaves_what_lies_beyond_n(runner: KernelRunner) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 70000)).astype(np.float32)
    out = runner.put(np.full(70000, 7, np.float32))
    runner.launch("saxpy", 274, 256, 2.5, runner.put(x), runner.put(y), out, 69999)
    expected = ieee.fma(x, np.float32(2.5), y)
    expected[-1] = 7
    np.testing.assert_array_equal(runner.get(out, 70000, np.float32), expected)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_block_reduction_adds_block_sums_in_order(
    runner: KernelRunner, dtype: type[np.floating]
) -> None:
    x = np.random.default_rng(1).standard_normal(300 * 256).astype(dtype)
    out = runner.put(np.zeros(1, dtype))
    name = "reduce_f32" if dtype is np.float32 else "reduce_f64"
    runner.launch(name, 300, 256, runner.put(x), out, x.size, shared=256 * x.itemsize)
    sums = x.reshape(-1, 256).copy()
    half = 128
    while half:
        sums[:, :half] += sums[:, half : 2 * half]
        half //= 2
    total = dtype(0)
    for each in sums[:, 0]:
        total = dtype(total + each)
    assert runner.get(out, 1, dtype)[0] == total


def test_tiled_product_accumulates_with_one_rounding_a_step(runner: KernelRunner) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((2, 64, 64)).astype(np.float32)
    out = runner.put(np.zeros((64, 64), np.float32))
    runner.launch("matmul", (4, 4, 1), (16, 16, 1), runner.put(a), runner.put(b), out, 64)
    expected = np.zeros((64, 64), np.float32)
    for k in range(64):
        expected = ieee.fma(
            np.repeat(a[:, k : k + 1], 64, 1).ravel(), np.tile(b[k], 64), expected.ravel()
        ).reshape(64, 64)
    np.testing.assert_array_equal(runner.get(out, 4096, np.float32), expected.ravel())


def test_template_kernel_is_found_by_its_mangled_name(runner: KernelRunner) -> None:
    x = np.arange(30, dtype=np.float32)
    address = runner.put(x)
    runner.launch("_Z5scaleIfLi3EEvPT_S0_", 1, 10, address, 1.5)
    np.testing.assert_array_equal(runner.get(address, 30, np.float32), x * np.float32(1.5))


def mandelbrot(size: int, limit: int) -> np.ndarray:
    """The escape counts, with NVRTC's fused imaginary part."""
    f = np.float32
    y, x = (axis.ravel().astype(f) for axis in np.mgrid[0:size, 0:size])
    cr = x * f(3) / f(size) + f(-2)
    ci = y * f(3) / f(size) + f(-1.5)
    r2, i2, zr, zi = (np.zeros(size * size, f) for _ in range(4))
    counts = np.zeros(size * size, np.int32)
    active = np.ones(size * size, bool)
    with np.errstate(all="ignore"):
        for _ in range(limit):
            counts += active
            new = cr + (r2 - i2)
            zi = ieee.fma(zr + zr, zi, ci)
            zr, r2, i2 = new, new * new, zi * zi
            active &= r2 + i2 < f(4)
    return counts


@pytest.mark.parametrize("limits", CHUNKS)
def test_divergent_loop_counts_each_thread_alone(runner: KernelRunner, limits: Limits) -> None:
    out = runner.put(np.zeros(96 * 96, np.int32))
    runner.launch("mandelbrot", (6, 6, 1), (16, 16, 1), out, 96, 96, 64, limits=limits)
    np.testing.assert_array_equal(runner.get(out, 96 * 96, np.int32), mandelbrot(96, 64))


@pytest.mark.parametrize("limits", CHUNKS)
def test_histogram_with_shared_atomics_counts_every_byte(
    runner: KernelRunner, limits: Limits
) -> None:
    data = np.random.default_rng(3).integers(0, 256, 50001).astype(np.uint8)
    bins = runner.put(np.zeros(256, np.uint32))
    runner.launch("histogram", 13, 192, runner.put(data), data.size, bins, limits=limits)
    np.testing.assert_array_equal(
        runner.get(bins, 256, np.uint32), np.bincount(data, minlength=256)
    )


@pytest.mark.parametrize(
    ("target", "debug"), [("compute_75", False), ("compute_90", True), ("compute_100", False)]
)
def test_calls_structs_recursion_and_module_variables(target: str, debug: bool) -> None:
    runner = KernelRunner(compiled(target, *(["debug"] if debug else [])))
    values = (5, -7, 11)
    record = np.zeros(
        1,
        np.dtype(
            {
                "names": ["weight", "value", "quad"],
                "formats": ["f8", "3i4", "4f4"],
                "offsets": [0, 8, 32],
                "itemsize": 48,
            }
        ),
    )
    record["value"] = values
    quads = np.arange(64 * 4, dtype=np.float32)
    out = runner.put(np.zeros(128, np.int32))
    runner.launch("calls", 1, 64, record.tobytes(), out, runner.put(quads), 2)
    kept = {i % 32: quads[4 * i] for i in range(64)}

    def recurse(n: int) -> int:
        return 1 if n < 2 else n * recurse(n - 1) + n

    expected = []
    for i in range(64):
        called = i * values[i % 3] if i % 2 == 0 else i + values[i % 3]
        table = (1, 2, 3, 0)[i % 4]
        expected += [called + 7 + table + int(kept[2]) + recurse(i % 7), i + i]
    assert runner.get(out, 128, np.int32).tolist() == expected


@pytest.mark.parametrize("name", ["saxpy", "histogram"])
def test_debug_code_gives_what_optimised_code_gives(name: str) -> None:
    runner = KernelRunner(compiled("compute_90", "debug"))
    data = np.random.default_rng(5).integers(0, 256, 3000).astype(np.uint8)
    if name == "histogram":
        bins = runner.put(np.zeros(256, np.uint32))
        runner.launch(name, 3, 128, runner.put(data), data.size, bins)
        np.testing.assert_array_equal(
            runner.get(bins, 256, np.uint32), np.bincount(data, minlength=256)
        )
        return
    x = data.astype(np.float32)
    out = runner.put(np.zeros(3000, np.float32))
    runner.launch(name, 12, 256, 2.0, runner.put(x), runner.put(x), out, 3000)
    np.testing.assert_array_equal(runner.get(out, 3000, np.float32), 3 * x)
