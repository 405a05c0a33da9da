"""Options priced by quasi-Monte Carlo over all GPUs: of this host, or of a Dask cluster.

``python examples/option_pricing.py`` starts a process a GPU; ``--scheduler tcp://host:8786`` takes
a cluster's workers. The blocks of points are the same for any number of workers, and so are the
prices, bit for bit.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

from cudadrv import GpuExecutor, KernelLibrary, LaunchConfig, current_tile

SOURCE = """
extern "C" __global__ void pay(const double* points, double* european, double* asian, int paths,
                               int steps, double drift, double volatility, double start,
                               double strike)
{
    int path = blockIdx.x * blockDim.x + threadIdx.x;
    if (path >= paths) return;
    double price = start, sum = 0;
    for (int step = 0; step < steps; ++step) {
        price *= exp(drift + volatility * normcdfinv(points[path * steps + step]));
        sum += price;
    }
    european[path] = max(price - strike, 0.0);
    asian[path] = max(sum / steps - strike, 0.0);
}
"""
KERNELS = KernelLibrary({"options.cu": SOURCE})
START, STRIKE, RATE, VOLATILITY, YEARS, STEPS = 100.0, 105.0, 0.03, 0.2, 1.0, 8
BLOCK = 1 << 11


def payoffs(points: npt.NDArray[np.float64]) -> tuple[float, float]:
    """On a worker: the summed payoffs of a block of paths, of the plain and the Asian call."""
    tile = current_tile()
    kernel = KERNELS.kernel(tile.context, "pay")
    paths, stream = len(points), tile.stream
    drift = (RATE - VOLATILITY**2 / 2) * YEARS / STEPS
    scale = VOLATILITY * (YEARS / STEPS) ** 0.5
    with (
        stream.to_device(points) as there,
        stream.empty(paths, np.float64) as plain,
        stream.empty(paths, np.float64) as asian,
    ):
        kernel.launch(
            stream,
            LaunchConfig.for_elements(paths),
            there,
            plain,
            asian,
            paths,
            STEPS,
            drift,
            scale,
            START,
            STRIKE,
        )
        return float(stream.to_host(plain).sum()), float(stream.to_host(asian).sum())


def blocks(count: int) -> Iterator[npt.NDArray[np.float64]]:
    """Scrambled Sobol points, made as they are needed."""
    sobol = qmc.Sobol(STEPS, seed=1)
    for _ in range(count):
        yield sobol.random(BLOCK)


@contextmanager
def executor_of(scheduler: str | None) -> Iterator[GpuExecutor]:
    if scheduler is None:
        with GpuExecutor.local() as executor:
            yield executor
    else:
        from distributed import Client

        with Client(scheduler) as client, GpuExecutor.dask(client) as executor:
            yield executor


def plain_call() -> float:
    """The plain call's price by Black and Scholes."""
    spread = VOLATILITY * YEARS**0.5
    upper = (np.log(START / STRIKE) + (RATE + VOLATILITY**2 / 2) * YEARS) / spread
    cdf, discount = NormalDist().cdf, np.exp(-RATE * YEARS)
    return float(START * cdf(upper) - STRIKE * discount * cdf(upper - spread))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scheduler", help="a Dask scheduler's address")
    parser.add_argument("--blocks", type=int, default=8, help="of 2,048 paths")
    options = parser.parse_args()
    discount = np.exp(-RATE * YEARS)
    plain = asian = 0.0
    with executor_of(options.scheduler) as executor:
        workers = len(executor.workers)
        print(f"{workers} workers")
        results = executor.map(payoffs, blocks(options.blocks), buffersize=4 * workers)
        # In the order of the blocks, each as soon as it and those before it are there.
        for number, sums in enumerate(results, 1):
            plain += sums[0]
            asian += sums[1]
            paths = number * BLOCK
            print(
                f"{paths:>8,} paths: plain call {discount * plain / paths:.4f}, "
                f"Asian call {discount * asian / paths:.4f}",
                flush=True,
            )
    assert abs(discount * plain / paths - plain_call()) < 0.05
    print(f"Black-Scholes: plain call {plain_call():.4f}")


if __name__ == "__main__":
    main()
