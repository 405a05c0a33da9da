"""How many clusters of a kernel a device holds, and how large they may be.

Source: "Occupancy" in the CUDA Driver API manual.
"""

from __future__ import annotations

from ..driver._api import CUfunction, CUlaunchConfig
from ..driver.in_use import failure
from ..errors import LaunchConfigError
from .config import LaunchConfig, check_launch, native_shape
from .kernel_core import KernelCore


def active_clusters(kernel: KernelCore, config: LaunchConfig) -> int:
    """See `Kernel.max_active_clusters`."""
    native, handle = _ready(kernel, config)
    if config.cluster is None and not kernel.attributes.cluster_size_must_be_set:
        raise LaunchConfigError(f"{config} has no clusters, and {kernel!r} asks for none")
    box = kernel._module._box
    ask = box.api.cuOccupancyMaxActiveClusters
    code, count = box.context.call(ask, handle, native)
    if code:
        doing = f"the clusters of kernel {kernel.name!r} with {config}"
        raise failure(box.api, code, "cuOccupancyMaxActiveClusters", doing)
    return count


def potential_cluster_size(kernel: KernelCore, config: LaunchConfig) -> int:
    """See `Kernel.max_potential_cluster_size`."""
    native, handle = _ready(kernel, config)
    box = kernel._module._box
    ask = box.api.cuOccupancyMaxPotentialClusterSize
    code, blocks = box.context.call(ask, handle, native)
    if code:
        doing = f"the largest cluster of kernel {kernel.name!r} with {config}"
        raise failure(box.api, code, "cuOccupancyMaxPotentialClusterSize", doing)
    return blocks


def _ready(kernel: KernelCore, config: LaunchConfig) -> tuple[CUlaunchConfig, CUfunction]:
    check_launch(kernel, config)
    kernel._allow_shared(config.shared_bytes)
    return native_shape(config), kernel.handle
