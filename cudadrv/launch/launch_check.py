"""`LaunchCheck`: whether a kernel can run a configuration on its device."""

from __future__ import annotations

from collections.abc import Callable

import ptx

from .. import border, errors
from ..driver._api import CUdevice_attribute as _OfDevice
from ..driver.context import BaseContext
from ..driver.types import Dim3
from .attribute_support import check_support, max_shared_bytes
from .config import NO_ATTRIBUTES, LaunchConfig
from .kernel_attributes import KernelAttributes

_GRID_LIMITS = (
    _OfDevice.CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
    _OfDevice.CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
    _OfDevice.CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
)
_BLOCK_LIMITS = (
    _OfDevice.CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
    _OfDevice.CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
    _OfDevice.CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
)


class LaunchCheck:
    """Checks configurations for one kernel; the one that was checked last is not checked again."""

    __slots__ = (
        "_attributes",
        "_changes",
        "_checked",
        "_context",
        "_kernel",
        "_max_active_blocks",
        "_signature",
    )

    def __init__(
        self,
        kernel: str,
        context: BaseContext,
        attributes: KernelAttributes,
        signature: ptx.KernelSignature,
        max_active_blocks: Callable[[int, int], int],
    ) -> None:
        self._kernel = kernel
        self._context = context
        self._attributes = attributes
        self._signature = signature
        self._max_active_blocks = max_active_blocks
        # The configuration that was checked last, if its check depends on nothing else, with the
        # attributes' number of changes then.
        self._checked: LaunchConfig | None = None
        self._changes = 0

    def require(self, config: LaunchConfig) -> None:
        """Raise `LaunchConfigError`, with the limit, if the device or kernel cannot run it.

        Limits: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability",
        queried from the driver.
        """
        changes = self._attributes._changes
        # Before the first check there is none, and None is no configuration.
        if config is self._checked and changes == self._changes and config is not None:
            return
        unchecked: object = config
        if not isinstance(unchecked, LaunchConfig):
            raise self._unlaunchable(
                f"its configuration is {border.shown(unchecked)}\n"
                "  give a cudadrv.LaunchConfig(grid, block), or LaunchConfig.for_elements(n)"
            )
        device = self._context.device
        self._check_extents("grid", config.grid, _GRID_LIMITS)
        self._check_extents("block", config.block, _BLOCK_LIMITS)
        max_threads = self._attributes.max_threads_per_block
        if config.threads > max_threads:
            raise self._unlaunchable(
                f"a block of {config.threads} threads; this kernel on {device!r} allows "
                f"{max_threads} (registers and launch bounds count)"
            )
        required = self._signature.required_block
        if required is not None and config.block != required:
            raise self._unlaunchable(f"block {config.block}, but it was compiled for {required}")
        if config.attributes is not NO_ATTRIBUTES:
            check_support(config.attributes, device)
        self._check_shared(config)
        if config.cluster is not None:
            self._check_cluster(config.grid, config.cluster)
        if config.programmatic and device.compute_capability < (9, 0):
            raise self._unlaunchable(
                f"programmatically; {device!r} cannot (compute capability 9.0 can)"
            )
        if config.cooperative:
            self._check_cooperative(config)
        if config.attributes is not NO_ATTRIBUTES:
            self._check_attributes(config)
        elif not config.cooperative:
            self._checked, self._changes = config, changes

    def _check_extents(
        self, dimension: str, extents: Dim3, limits: tuple[_OfDevice, _OfDevice, _OfDevice]
    ) -> None:
        device = self._context.device
        for axis, extent, attribute in zip("xyz", extents, limits, strict=True):
            # Every device runs blocks and grids of one thread along an axis.
            if extent != 1 and extent > (limit := device.attribute(attribute)):
                raise self._unlaunchable(
                    f"{dimension}.{axis} is {extent}; {device!r} allows {limit}"
                )

    def _check_shared(self, config: LaunchConfig) -> None:
        device, mode = self._context.device, config.attributes.shared_memory_mode
        static = self._attributes.static_shared_bytes
        limit = max_shared_bytes(device, mode)
        if static + config.shared_bytes > limit:
            raise self._unlaunchable(
                f"{config.shared_bytes} bytes of dynamic and {static} of static shared memory\n"
                f"  {device!r} allows {limit} a block"
                f"{'' if mode is None else f' with shared_memory_mode {mode!r}'}"
            )

    def _check_cluster(self, grid: Dim3, cluster: Dim3) -> None:
        context = self._context
        if not context.capability.has_cluster_launch:
            raise self._unlaunchable(
                f"a cluster; {context.device!r} has none (compute capability 9.0 does)"
            )
        for axis, blocks, extent in zip("xyz", grid, cluster, strict=True):
            # The grid of a kernel with `.blocksareclusters` counts clusters: the driver decides.
            if blocks % extent and cluster != self._required_cluster():
                raise self._unlaunchable(
                    f"grid.{axis} {blocks} is not a multiple of cluster.{axis} {extent}"
                )

    def _required_cluster(self) -> tuple[int, int, int]:
        """The cluster that the kernel requires, zeros without one."""
        known = self._attributes
        return (
            known.required_cluster_width,
            known.required_cluster_height,
            known.required_cluster_depth,
        )

    def _check_attributes(self, config: LaunchConfig) -> None:
        context, device = self._context, self._context.device
        requests = config.attributes
        if requests.priority is not None:
            lowest, greatest = context.priority_range()
            if not greatest <= requests.priority <= lowest:
                raise self._unlaunchable(
                    f"with priority {requests.priority}; {device!r} has {greatest} to {lowest}"
                )
        if requests.preferred_cluster is not None:
            self._check_preferred_cluster(config, requests.preferred_cluster)
        if requests.access_window is not None:
            limit = device.attribute(_OfDevice.CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE)
            if requests.access_window.nbytes > limit:
                raise self._unlaunchable(
                    f"with an access window of {requests.access_window.nbytes} bytes; "
                    f"{device!r} allows {limit}"
                )
        event = requests.completion_event
        if event is not None and event.context is not context:
            raise errors.WrongDeviceError(f"completion_event {event!r} is not of {context!r}")

    def _check_preferred_cluster(self, config: LaunchConfig, preferred: Dim3) -> None:
        device = self._context.device
        if device.compute_capability < (10, 0):
            raise self._unlaunchable(
                f"with a preferred cluster; {device!r} has none (compute capability 10.0 does)"
            )
        cluster = config.cluster
        if cluster is None or any(
            extent % unit for extent, unit in zip(preferred, cluster, strict=True)
        ):
            raise self._unlaunchable(
                f"with preferred_cluster {preferred}, no multiple of cluster {cluster}"
            )
        self._check_cluster(config.grid, preferred)

    def _check_cooperative(self, config: LaunchConfig) -> None:
        context, device = self._context, self._context.device
        if not device.attribute(_OfDevice.CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH):
            raise self._unlaunchable(f"a cooperative launch, which {device!r} does not offer")
        per_multiprocessor = self._max_active_blocks(config.threads, config.shared_bytes)
        resident = per_multiprocessor * device.attribute(
            _OfDevice.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
        )
        if context.is_green:
            resident = per_multiprocessor * context.sm_resource.sm_count
        if config.blocks > resident:
            location = repr(context if context.is_green else device)
            raise self._unlaunchable(
                f"a cooperative grid of {config.blocks} blocks; {resident} fit on {location} at "
                "once"
            )

    def _unlaunchable(self, reason: str) -> errors.LaunchConfigError:
        return errors.LaunchConfigError(f"kernel {self._kernel!r} cannot be launched: {reason}")
