"""The bare calls of cuda.bindings, which everything is compared with."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from cuda.bindings import driver

import cudadrv

NAME: Final = "cuda.bindings"
# The stub has only what cudadrv calls; here others are made too.
_all: Final[Any] = driver


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


def batch_names(
    stream: cudadrv.Stream,
    pairs: Sequence[tuple[cudadrv.DeviceArray[Any], cudadrv.DeviceArray[Any]]],
) -> dict[str, object]:
    """What statements of bare copies between arrays of one size name."""
    attributes = _all.CUmemcpyAttributes()
    attributes.srcAccessOrder = _all.CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    targets, sources = ([pointer(array.ptr) for array in side] for side in zip(*pairs, strict=True))
    sizes = [target.nbytes for target, _ in pairs]
    return {
        "copy": driver.cuMemcpyAsync,
        "batch": _all.cuMemcpyBatchAsync,
        "pointers": list(zip(targets, sources, strict=True)),
        "nbytes": sizes[0],
        "lists": (targets, sources, sizes, len(pairs), [attributes], [0], 1, stream.handle),
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


class PeerMemory:
    """Memory of a pool of one device, which every device may access."""

    def __init__(self, ordinal: int, nbytes: int) -> None:
        self.context = _checked(
            driver.cuDevicePrimaryCtxRetain(_checked(driver.cuDeviceGet(ordinal)))
        )
        self.nbytes = nbytes
        props = _all.CUmemPoolProps()
        props.allocType = _all.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        props.location = location(ordinal)
        pool = _checked(_all.cuMemPoolCreate(props))
        count = _checked(driver.cuDeviceGetCount())
        asked = []
        for other in range(count):
            access = driver.CUmemAccessDesc()
            access.location = location(other)
            access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
            asked.append(access)
        _checked(driver.cuMemPoolSetAccess(pool, asked, count))
        _checked(driver.cuCtxPushCurrent(self.context))
        queue = _checked(_all.cuStreamCreate(0))
        self.pointer = _checked(_all.cuMemAllocFromPoolAsync(nbytes, pool, queue))
        _checked(driver.cuStreamSynchronize(queue))
        _checked(driver.cuCtxPopCurrent())


def copy_between(of: PeerMemory, to: PeerMemory, stream: cudadrv.Stream) -> Callable[[], object]:
    """The bare copy, on a stream of either device."""
    call, handle = driver.cuMemcpyPeerAsync, stream.handle
    arguments = (to.pointer, to.context, of.pointer, of.context, to.nbytes, handle)

    def copy() -> None:
        _checked(call(*arguments))

    return copy


def location(ordinal: int) -> driver.CUmemLocation:
    """A device as the bindings take it."""
    result = driver.CUmemLocation()
    result.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    result.id = ordinal
    return result


def _checked(result: tuple[Any, ...]) -> Any:
    code, *values = result
    if code:
        raise RuntimeError(f"the bare driver returned {code!r}")
    return values[0] if values else None
