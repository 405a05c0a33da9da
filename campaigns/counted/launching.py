"""Launching every kernel once, on whatever the driver in use is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import cudadrv
import ptx
from campaigns.counted.kernels import ELEMENTS, KERNELS, SOURCE, TRIPS, benchmarks

Launch = tuple[str, Callable[[], None]]


def launches(context: cudadrv.Context) -> Iterator[Launch]:
    """Each kernel's name, and what launches it and waits for it."""
    # Kernels are made of the same parts, of which some use a variable less.
    options = ptx.CompileOptions(target=context.target, lineinfo=True, extra=("-w",))
    module = context.load_module(ptx.compile(SOURCE, options, name="counted.cu"))
    stream = context.new_stream()
    rng = np.random.default_rng(1)
    x = stream.to_device(rng.standard_normal(ELEMENTS).astype(np.float32))
    y = stream.to_device(np.zeros(ELEMENTS, np.float32))
    idx = stream.to_device(rng.permutation(ELEMENTS).astype(np.int32))

    def run(name: str, config: cudadrv.LaunchConfig, arguments: tuple[object, ...]) -> Launch:
        def launch() -> None:
            module.kernel(name).launch(stream, config, *arguments)
            stream.synchronize()

        return name, launch

    for each in KERNELS:
        config = cudadrv.LaunchConfig(each.grid, each.block)
        yield run(each.name, config, (x, y, idx, TRIPS))
    for case in benchmarks():
        given = [
            stream.to_device(np.asarray(a)) if isinstance(a, np.ndarray) else a
            for a in case.arguments
        ]
        config = cudadrv.LaunchConfig(case.grid, case.block, shared_bytes=case.shared_bytes)
        yield run(case.kernel, config, tuple(given))
