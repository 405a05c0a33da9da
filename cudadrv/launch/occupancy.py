"""How a kernel fills a device: the block that fills it best, and how many clusters it holds.

Source: "Occupancy" in the CUDA Driver API manual.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .. import border
from ..driver._api import (
    CUdevice_attribute as _Attribute,
    CUfunction,
    CUlaunchConfig,
    CUresult,
)
from ..driver.driver_selection import failure
from ..errors import LaunchConfigError
from .config import LaunchConfig, check_launch, native_shape
from .kernel_core import KernelCore


class PotentialBlock(NamedTuple):
    """The block that keeps most threads resident.

    Attributes:
        threads: threads of the block; the largest of equally good ones.
        blocks: the blocks that fill the whole device.
    """

    threads: int
    blocks: int


def potential_block(
    kernel: KernelCore, shared_bytes: int | Callable[[int], int], limit: int | None
) -> PotentialBlock:
    """The whole warps that keep most threads of a multiprocessor resident.

    Raises:
        LaunchConfigError: no block of the kernel fits with so much shared memory.
    """
    device = kernel._module.context.device
    warp = device.attribute(_Attribute.CU_DEVICE_ATTRIBUTE_WARP_SIZE)
    all_threads = device.attribute(_Attribute.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)
    optin = _Attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    room = device.attribute(optin) - kernel.attributes.static_shared_bytes
    most = kernel.attributes.max_threads_per_block
    if callable(shared_bytes):
        border.function("max_potential_block_size: shared_bytes", shared_bytes, takes=1)
    else:
        shared_bytes = border.whole("max_potential_block_size: shared_bytes", shared_bytes)
    if limit is not None:
        most = min(most, border.integer("max_potential_block_size: limit", limit))
    best, best_blocks = 0, 0
    # A most that is no multiple of the warp is a candidate itself.
    for whole in range(-(-most // warp) * warp, 0, -warp):
        threads = min(whole, most)
        nbytes = shared_bytes(threads) if callable(shared_bytes) else shared_bytes
        nbytes = border.whole("max_potential_block_size: shared_bytes(threads)", nbytes)
        if nbytes > room:
            continue
        blocks = kernel.max_active_blocks(threads, nbytes)
        if threads * blocks > best * best_blocks:
            best, best_blocks = threads, blocks
        if best * best_blocks >= all_threads:
            break
    if not best:
        raise LaunchConfigError(
            f"no block of kernel {kernel.name!r} of at most {most} threads fits {device!r}: "
            f"{room} bytes of shared memory are left for it"
        )
    multiprocessors = device.attribute(_Attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
    return PotentialBlock(best, best_blocks * multiprocessors)


def active_clusters(kernel: KernelCore, config: LaunchConfig) -> int:
    """See `Kernel.max_active_clusters`."""
    check_launch(kernel, config)
    if config.cluster is None and not kernel.attributes.cluster_size_must_be_set:
        raise LaunchConfigError(f"{config} has no clusters, and {kernel!r} asks for none")
    ask = kernel._module._handle.api.cuOccupancyMaxActiveClusters
    return _asked(kernel, config, ask, "cuOccupancyMaxActiveClusters", "the clusters")


def potential_cluster_size(kernel: KernelCore, config: LaunchConfig) -> int:
    """See `Kernel.max_potential_cluster_size`."""
    check_launch(kernel, config)
    ask = kernel._module._handle.api.cuOccupancyMaxPotentialClusterSize
    return _asked(kernel, config, ask, "cuOccupancyMaxPotentialClusterSize", "the largest cluster")


def _asked(
    kernel: KernelCore,
    config: LaunchConfig,
    ask: Callable[[CUfunction, CUlaunchConfig], tuple[CUresult, int]],
    call: str,
    what: str,
) -> int:
    """What the driver says of a configuration's clusters."""
    kernel._allow_shared(config.shared_bytes)
    box = kernel._module._handle
    code, count = box.context.call(ask, kernel.handle, native_shape(config))
    if code:
        raise failure(box.api, code, call, f"{what} of kernel {kernel.name!r} with {config}")
    return count
