"""The self-test's kernels and their answers by NumPy, for tests and benchmarks as well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources

import numpy as np
import numpy.typing as npt

from ..launch.config import LaunchConfig
from ..launch.module_and_kernel import Module
from ..stream import Context

NAME_EXPRESSIONS = ("scale<float>", "scale<double>", "scale<int>")


def source() -> str:
    """Return the CUDA C++ source of the self-test."""
    return resources.files(__package__).joinpath("selftest.cu").read_text()


@dataclass(frozen=True, slots=True)
class Check:
    """A kernel's result, NumPy's result, and the tolerance."""

    found: npt.NDArray[np.generic]
    expected: npt.NDArray[np.generic]
    tolerance: float = 0.0

    @property
    def error(self) -> float:
        """The largest difference, relative to the largest expected value."""
        found, expected = self.found.astype(np.float64), self.expected.astype(np.float64)
        scale = float(np.max(np.abs(expected), initial=0.0)) or 1.0
        return float(np.max(np.abs(found - expected), initial=0.0)) / scale

    @property
    def ok(self) -> bool:
        """True if the two agree."""
        if self.tolerance == 0:
            return bool(np.array_equal(self.found, self.expected))
        return self.error <= self.tolerance


def run_saxpy(context: Context, module: Module, n: int = 1 << 16) -> Check:
    """a·x + y over float32; fused on the device, so within one rounding of NumPy's."""
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, n), np.float32)
    stream = context.default_stream
    with stream.to_device(x) as dx, stream.to_device(y) as dy, stream.empty(n, "f4") as out:
        launch = module.kernel("saxpy").launch
        launch(stream, LaunchConfig.for_elements(n), np.float32(2.5), dx, dy, out, n)
        found = stream.to_host(out)
    exact = 2.5 * x.astype(np.float64) + y.astype(np.float64)
    return Check(found, exact.astype(np.float32), 0.0)


def run_sum(context: Context, module: Module, dtype: str = "float32", n: int = 1 << 16) -> Check:
    """A block reduction in shared memory, one atomicAdd a block."""
    x = np.random.default_rng(2).random(n).astype(dtype)
    stream = context.default_stream
    config = LaunchConfig.for_elements(n, 256)
    config = LaunchConfig(config.grid, config.block, shared_bytes=256 * x.itemsize)
    with stream.to_device(x) as dx, stream.zeros(1, dtype) as total:
        module.kernel(f"sum_{dtype}").launch(stream, config, dx, total, n)
        found = stream.to_host(total)
    return Check(found, np.array([x.sum(dtype=np.float64)]), 1e-5 if dtype == "float32" else 1e-13)


def run_matmul(context: Context, module: Module, n: int = 64) -> Check:
    """A product of n by n matrices through tiles in shared memory."""
    a, b = np.random.default_rng(3).random((2, n, n)).astype(np.float32)
    stream = context.default_stream
    config = LaunchConfig((n // 16, n // 16), (16, 16))
    with stream.to_device(a) as da, stream.to_device(b) as db, stream.empty((n, n), "f4") as c:
        module.kernel("matmul").launch(stream, config, da, db, c, n)
        found = stream.to_host(c)
    return Check(found, a.astype(np.float64) @ b.astype(np.float64), 1e-5)


def run_template(context: Context, module: Module, n: int = 1000) -> Check:
    """A template kernel found by its name expression."""
    x = np.arange(n, dtype=np.float64)
    stream = context.default_stream
    with stream.to_device(x) as dx:
        kernel = module.kernel("scale<double>")
        kernel.launch(stream, LaunchConfig.for_elements(n), dx, 3.0, n)
        found = stream.to_host(dx)
    return Check(found, 3.0 * x)


def run_mandelbrot(context: Context, module: Module, side: int = 64, most: int = 64) -> Check:
    """A loop whose length differs a thread."""
    stream = context.default_stream
    config = LaunchConfig((-(-side // 16), -(-side // 16)), (16, 16))
    with stream.empty((side, side), "i4") as out:
        module.kernel("mandelbrot").launch(stream, config, out, side, side, most)
        found = stream.to_host(out)
    return Check(found, mandelbrot_counts(side, most))


def run_histogram(context: Context, module: Module, n: int = 1 << 16) -> Check:
    """Integer atomics in shared and global memory."""
    data = np.random.default_rng(4).integers(0, 256, n, np.uint8)
    stream = context.default_stream
    with stream.to_device(data) as dd, stream.zeros(256, "u4") as bins:
        module.kernel("histogram").launch(stream, LaunchConfig(32, 256), dd, n, bins)
        found = stream.to_host(bins)
    return Check(found, np.bincount(data, minlength=256).astype(np.uint32))


def mandelbrot_counts(side: int, most: int) -> npt.NDArray[np.int32]:
    """Return the counts in float32 arithmetic, each step rounded by itself."""
    three, extent = np.float32(3), np.float32(side)
    axis = three * np.arange(side, dtype=np.float32) / extent
    cr = np.broadcast_to(np.float32(-2) + axis, (side, side))
    ci = np.broadcast_to((np.float32(-1.5) + axis)[:, None], (side, side))
    zr, zi = np.zeros((2, side, side), np.float32)
    counts = np.zeros((side, side), np.int32)
    for _ in range(most):
        rr, ii = zr * zr, zi * zi
        running = rr + ii <= np.float32(4)
        counts += running
        zi = np.where(running, np.float32(2) * zr * zi + ci, zi)
        zr = np.where(running, rr - ii + cr, zr)
    return counts


CHECKS: dict[str, Callable[[Context, Module], Check]] = {
    "saxpy": run_saxpy,
    "sum float32": run_sum,
    "sum float64": lambda context, module: run_sum(context, module, "float64"),
    "matmul": run_matmul,
    "template by name expression": run_template,
    "mandelbrot": run_mandelbrot,
    "histogram": run_histogram,
}
