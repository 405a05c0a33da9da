"""What scattering work over devices costs, and how well it scales: `python -m benchmarks.scatter`.

The fixed cost is a call whose tiles do nothing. Efficiency is the time of one device for some work
over N times the time of N devices for the same work. Each element takes a fixed number of steps, so
the work can be shared evenly. Results are compared bit for bit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from cudadrv import (
    Context,
    GpuPolicy,
    GpuRuntime,
    Kernel,
    LaunchConfig,
    PtxModuleCache,
    current_tile,
    list_devices,
    scatter_batched,
)
from cudadrv.memory import set_release_threshold
from cudadrv.runtime import GpuDispatchPolicy

SOURCE = """
extern "C" __global__ void logistic(double* x, int n, int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double v = x[i];
    for (int step = 0; step < steps; ++step) v = 3.7 * v * (1.0 - v);
    x[i] = v;
}
"""
MODULES = PtxModuleCache()


def seconds(function: Callable[[], None], repeats: int) -> float:
    """The median of some calls, two first ones left out."""
    times: list[float] = []
    for _ in range(repeats + 2):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times[2:])


def fixed_cost_us(runtime: GpuRuntime) -> float:
    """Microseconds of a call whose tiles do nothing."""
    items = np.zeros(64 * runtime.device_count())
    return 1e6 * seconds(lambda: scatter_batched(runtime, items, lambda ordinal, part: None), 2000)


def kernel_on(context: Context) -> Kernel:
    """The kernel, compiled once and loaded once a device."""
    return MODULES.get_or_compile(context, "logistic", SOURCE).kernel("logistic")


def logistic(steps: int, ordinal: int, part: npt.NDArray[np.float64]) -> None:
    """A tile's work: every element through `steps` steps."""
    tile = current_tile()
    kernel = kernel_on(tile.context)
    with tile.stream.to_device(part) as there:
        config = LaunchConfig.for_elements(part.size)
        kernel.launch(tile.stream, config, there, part.size, steps)
        tile.stream.to_host(there, part)


def copied(runtime: GpuRuntime, items: npt.NDArray[np.float64]) -> None:
    """Copy each tile to a device and back."""

    def copy(ordinal: int, part: npt.NDArray[np.float64]) -> None:
        stream = current_tile().stream
        with stream.to_device(part) as there:
            stream.to_host(there, part)

    scatter_batched(runtime, items, copy)


def run(runtime: GpuRuntime, items: npt.NDArray[np.float64], steps: int) -> None:
    """The work on some devices."""
    scatter_batched(runtime, items, partial(logistic, steps))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--elements", type=int, default=1 << 22)
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--pool-keeps", type=int, metavar="MIB", help="what each pool keeps at a wait; else nothing"
    )
    options = parser.parse_args()
    for device in list_devices() if options.pool_keeps is not None else ():
        set_release_threshold(device, options.pool_keeps << 20)
    everything = GpuRuntime.resolve(GpuPolicy.REQUIRED)
    assert everything is not None  # REQUIRED raises instead
    start = np.random.default_rng(1).random(options.elements)
    one_seconds, one_result = 0.0, start
    for count in range(1, everything.device_count() + 1):
        devices = everything.devices[:count]
        runtime = GpuRuntime(devices=devices, policy=GpuDispatchPolicy())
        items = start.copy()
        run(runtime, items, options.steps)
        if count == 1:
            one_result = items
        scratch = start.copy()
        took = seconds(lambda: run(runtime, scratch, options.steps), options.repeats)  # noqa: B023
        one_seconds = one_seconds or took
        report = {
            "devices": count,
            "fixed_cost_us": round(fixed_cost_us(runtime), 1),
            "seconds": round(took, 4),
            "efficiency": round(one_seconds / (count * took), 4),
            "bit_for_bit": bool(np.array_equal(items, one_result)),
        }
        print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
