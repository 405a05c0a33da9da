"""The bare calls of cuda.bindings, which everything is compared with."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from cuda.bindings import driver

import cudadrv

NAME: Final = "cuda.bindings"


def launch_names(stream: cudadrv.Stream) -> dict[str, object]:
    """What statements of bare launches name."""
    return {
        "cuLaunchKernel": driver.cuLaunchKernel,
        "cuLaunchKernelEx": driver.cuLaunchKernelEx,
        "cuGraphLaunch": driver.cuGraphLaunch,
        "s": stream.handle,
    }


def memory_names(stream: cudadrv.Stream) -> dict[str, object]:
    """What statements of bare allocations and copies name."""
    return {
        "alloc": driver.cuMemAllocAsync,
        "free": driver.cuMemFreeAsync,
        "htod": driver.cuMemcpyHtoDAsync,
        "dtoh": driver.cuMemcpyDtoHAsync,
        "sync": driver.cuStreamSynchronize,
        "s": stream.handle,
    }


def pointer(address: int) -> driver.CUdeviceptr:
    """A device address as the bindings take it."""
    return driver.CUdeviceptr(address)


def launch_config(names: Mapping[str, Any], grid: int, block: int) -> driver.CUlaunchConfig:
    """The structure of cuLaunchKernelEx."""
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = block, 1, 1
    config.hStream = names["s"]
    config.attrs = []
    config.numAttrs = 0
    return config


def packed_launch(
    names: Mapping[str, Any],
    buffer: bytearray,
    params: int,
    packer: struct.Struct,
    extents: tuple[int, int],
) -> Callable[[int, int, int, float, int], None]:
    """What one would write by hand for one kernel, with the checks that struct makes."""
    call, f, s = names["cuLaunchKernel"], names["f"], names["s"]
    pack_into = packer.pack_into
    grid, block = extents

    def launch(a: int, b: int, c: int, x: float, n: int) -> None:
        pack_into(buffer, 0, a, b, c, x, n)
        code = call(f, grid, 1, 1, block, 1, 1, 0, s, params, 0)[0]
        if code:
            raise RuntimeError(f"cuLaunchKernel: {code!r}")

    return launch
