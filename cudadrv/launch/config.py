"""`LaunchConfig`: the extents, resources and attributes of a launch, checked before the driver."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Final, Literal, Self, SupportsIndex, TypeAlias

from .. import border
from ..driver._api import (
    CUaccessProperty,
    CUlaunchAttribute,
    CUlaunchAttributeID as _Id,
    CUlaunchAttributeValue,
    CUlaunchConfig,
    CUlaunchMemSyncDomain,
)
from ..driver.event import Event
from ..driver.types import Dim3
from ..errors import LaunchConfigError
from ..memory.buffer import DeviceData

Extents: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
MemoryDomain: TypeAlias = Literal["default", "remote"]
CacheProperty: TypeAlias = Literal["normal", "streaming", "persisting"]
ClusterSizeMode: TypeAlias = Literal["require_portable", "allow_non_portable"]
SharedMemoryMode: TypeAlias = Literal[
    "require_portable", "allow_non_portable", "allow_oversized", "prefer_oversized"
]

_DOMAINS: Final = {
    "default": CUlaunchMemSyncDomain.CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT,
    "remote": CUlaunchMemSyncDomain.CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE,
}
_PROPERTIES: Final = {
    "normal": CUaccessProperty.CU_ACCESS_PROPERTY_NORMAL,
    "streaming": CUaccessProperty.CU_ACCESS_PROPERTY_STREAMING,
    "persisting": CUaccessProperty.CU_ACCESS_PROPERTY_PERSISTING,
}
# CUlaunchAttributePortableClusterMode and CUsharedMemoryMode, which older bindings lack.
_CLUSTER_SIZE_MODES: Final = {"require_portable": 1, "allow_non_portable": 2}
_SHARED_MEMORY_MODES: Final = {
    "require_portable": 1,
    "allow_non_portable": 2,
    "allow_oversized": 3,
    "prefer_oversized": 4,
}


@dataclass(frozen=True, slots=True)
class AccessWindow:
    """A range of device memory that the L2 cache treats in its own way during a launch.

    `ContextLimits.persisting_l2_bytes` sets how much of the cache persisting accesses may use. The
    window has addresses only: it does not keep the memory.

    Args:
        address: the first byte, as a device address.
        nbytes: the bytes of the range.
        hit_ratio: the share of the accesses in the range that are treated as `hit`, from 0 to 1.
        hit: the property of that share.
        miss: the property of the other accesses in the range; not "persisting".

    Raises:
        LaunchConfigError: a value is out of its range.

    Source: CUaccessPolicyWindow in the CUDA Driver API manual.
    """

    address: int
    nbytes: int
    hit_ratio: float = 1.0
    hit: CacheProperty = "persisting"
    miss: CacheProperty = "streaming"

    def __post_init__(self) -> None:
        for name, largest in (("address", 2**64 - 1), ("nbytes", 2**63 - 1)):
            value = _index(name, getattr(self, name), "give an integer")
            if not 0 < value <= largest:
                raise LaunchConfigError(f"{name} is {value}: give 1 to {largest}")
            object.__setattr__(self, name, value)
        ratio = border.real("AccessWindow: hit_ratio", self.hit_ratio)
        if not 0 <= ratio <= 1:
            raise LaunchConfigError(f"hit_ratio is {ratio}: give a share from 0 to 1")
        _one_of("hit", self.hit, _PROPERTIES)
        _one_of("miss", self.miss, ("normal", "streaming"))

    @classmethod
    def of(
        cls,
        memory: DeviceData,
        hit_ratio: float = 1.0,
        hit: CacheProperty = "persisting",
        miss: CacheProperty = "streaming",
    ) -> Self:
        """Return the window of an array or a buffer.

        Raises:
            ClosedError: the memory was freed.
        """
        border.instance_of("AccessWindow.of: memory", memory, DeviceData)
        return cls(memory.ptr, memory.nbytes, hit_ratio, hit, miss)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchAttributes:
    """Requests of a launch to the scheduler and the caches; None is the driver's default.

    No attribute changes what a correct kernel computes. On the emulator only `completion_event`
    and the two modes have an effect.

    Args:
        priority: instead of the stream's; lower runs first (`Context.priority_range`).
        preferred_cluster: blocks of a cluster where so many fit, a multiple of the configuration's
            `cluster` along each axis (compute capability 10.0 and newer).
        memory_domain: the memory synchronization domain. A fence at system scope waits for writes
            of its own domain, so a kernel that communicates does not wait for the others.
        shared_carveout: the part of the L1 cache that becomes shared memory, in percent.
        access_window: memory that the L2 cache keeps or drops first (compute capability 8.0 and
            newer).
        completion_event: an event without timing, of the kernel's context. It is recorded when all
            blocks of the kernel have begun. Such a launch takes some microseconds more.
        nvlink_centric: whether blocks are scheduled for most traffic over NVLink (CUDA 13.0).
        cluster_size_mode: whether clusters may be larger than every device with clusters allows,
            instead of `KernelAttributes.allows_non_portable_clusters` (CUDA 13.2).
        shared_memory_mode: how much shared memory a block may request: at most 48 KiB, as much as
            the device allows, or an oversized amount with an L1 cache of 8 KiB (CUDA 13.2; the
            oversized ones CUDA 13.4 and a device that has
            `DeviceAttribute.MAX_OVERSIZED_SHARED_MEMORY_PER_BLOCK`).
        device_updatable: whether kernels of the graph may update the node. Only for launches in a
            capture and for `Graph.add_kernel` (CUDA 12.4). `KernelNode.make_updatable` has the
            rules for such a graph, and returns the node's handle for kernels.

    Raises:
        LaunchConfigError: a value is out of its range.

    Source: CUlaunchAttributeID in the CUDA Driver API manual.
    """

    priority: int | None = None
    preferred_cluster: Dim3 | None = None
    memory_domain: MemoryDomain | None = None
    shared_carveout: int | None = None
    access_window: AccessWindow | None = None
    completion_event: Event | None = None
    nvlink_centric: bool | None = None
    cluster_size_mode: ClusterSizeMode | None = None
    shared_memory_mode: SharedMemoryMode | None = None
    device_updatable: bool | None = None

    def __post_init__(self) -> None:
        if self.priority is not None:
            priority = _index("priority", self.priority, "give an integer, such as -1")
            object.__setattr__(self, "priority", priority)
        if self.preferred_cluster is not None:
            cluster = _dim3("preferred_cluster", self.preferred_cluster)
            object.__setattr__(self, "preferred_cluster", cluster)
        if self.memory_domain is not None:
            _one_of("memory_domain", self.memory_domain, _DOMAINS)
        if self.shared_carveout is not None:
            percent = _index("shared_carveout", self.shared_carveout, "give 0 to 100 percent")
            if not 0 <= percent <= 100:
                raise LaunchConfigError(f"shared_carveout is {percent}: give 0 to 100 percent")
            object.__setattr__(self, "shared_carveout", percent)
        border.optional("LaunchAttributes: nvlink_centric", self.nvlink_centric, bool)
        border.optional("LaunchAttributes: device_updatable", self.device_updatable, bool)
        if self.cluster_size_mode is not None:
            _one_of("cluster_size_mode", self.cluster_size_mode, _CLUSTER_SIZE_MODES)
        if self.shared_memory_mode is not None:
            _one_of("shared_memory_mode", self.shared_memory_mode, _SHARED_MEMORY_MODES)
        border.optional("LaunchAttributes: access_window", self.access_window, AccessWindow)
        border.optional("LaunchAttributes: completion_event", self.completion_event, Event)
        event = self.completion_event
        if event is not None and (event.timing or event.interprocess):
            raise LaunchConfigError(
                "completion_event is timed, or of several processes: "
                "give Event(context, timing=False)"
            )

    def __repr__(self) -> str:
        values = [(field.name, getattr(self, field.name)) for field in fields(self)]
        attributes = ", ".join(f"{name}={value!r}" for name, value in values if value is not None)
        return f"LaunchAttributes({attributes})"


NO_ATTRIBUTES: Final = LaunchAttributes()


@dataclass(frozen=True, slots=True, init=False)
class LaunchConfig:
    """The blocks, threads and resources of a launch.

    Args:
        grid: blocks along x, or (x, y) or (x, y, z).
        block: threads of a block, likewise.
        shared_bytes: dynamic shared memory of a block, in bytes.
        cluster: blocks of a cluster (compute capability 9.0 and newer).
        cooperative: whether all blocks must be resident at once, so that the grid can synchronise.
        programmatic: whether it may begin before earlier work in the stream has ended. Its code
            waits for that work by ``griddepcontrol.wait`` (cudaGridDependencySynchronize). The
            earlier kernel allows the start by ``griddepcontrol.launch_dependents``.
        attributes: what it requests of the scheduler and of the caches.

    Attributes:
        grid: blocks along x, y and z.
        block: threads of a block along x, y and z.
        shared_bytes: dynamic shared memory of a block, in bytes.
        cluster: blocks of a cluster along x, y and z; None without clusters.
        cooperative: whether all blocks must be resident at once.
        programmatic: whether it may begin before earlier work in the stream has ended.
        attributes: what it requests of the scheduler and of the caches.

    Raises:
        LaunchConfigError: an extent is not an integer of 1 or more. Limits of the device and the
            kernel are checked when the kernel is bound or launched.
    """

    grid: Dim3
    block: Dim3
    shared_bytes: int
    cluster: Dim3 | None
    cooperative: bool
    programmatic: bool
    attributes: LaunchAttributes

    def __new__(
        cls,
        grid: Extents,
        block: Extents,
        shared_bytes: int = 0,
        cluster: Extents | None = None,
        cooperative: bool = False,
        programmatic: bool = False,
        attributes: LaunchAttributes = NO_ATTRIBUTES,
    ) -> Self:
        """Return a configuration; of two integers the same object as before, if it is known."""
        is_frequent = (
            grid.__class__ is int
            and block.__class__ is int
            and shared_bytes.__class__ is int
            and cluster is None
            and cooperative is False
            and programmatic is False
            and attributes is NO_ATTRIBUTES
            and cls is LaunchConfig
        )
        if is_frequent:
            known = _known.get((grid, block, shared_bytes))
            if known is not None:
                return known  # type: ignore[return-value]  # `cls` is `LaunchConfig`
        self = object.__new__(cls)
        if type(shared_bytes) is not int:
            shared_bytes = _index("shared_bytes", shared_bytes, "give an integer number of bytes")
        if shared_bytes < 0:
            raise LaunchConfigError(f"shared_bytes is {shared_bytes!r}: give 0 or more bytes")
        _fill_grid(self, _dim3("grid", grid))
        _fill_block(self, _dim3("block", block))
        _fill_shared_bytes(self, shared_bytes)
        _fill_cluster(self, None if cluster is None else _dim3("cluster", cluster))
        # The test saves most callers a call.
        _fill_cooperative(self, cooperative is not False and bool(cooperative))
        _fill_programmatic(self, programmatic is not False and bool(programmatic))
        if attributes is not NO_ATTRIBUTES:
            border.instance_of("LaunchConfig: attributes", attributes, LaunchAttributes)
        _fill_attributes(self, attributes)
        if is_frequent:
            if len(_known) >= _MOST_KNOWN:
                _known.clear()
            _known[grid, block, shared_bytes] = self
        return self

    # Most configurations differ in these fields; hashing all of them takes twice as long.
    def __hash__(self) -> int:
        return hash((self.grid, self.block, self.shared_bytes))

    # Else a copy would fill an object that `__new__` returns for others.
    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        return type(self), tuple([getattr(self, field.name) for field in fields(self)])

    @classmethod
    def for_elements(cls, n: Extents, block: Extents = 256) -> LaunchConfig:
        """Return at least one thread for each element, in blocks of `block` threads.

        The first extent is that of x, while the last axis of a NumPy shape lies along x. So an
        image of shape (rows, columns) has ``for_elements(image.shape[::-1], (32, 8))``;
        `image.shape` itself swaps x and y.

        Args:
            n: elements along x, or (x, y) or (x, y, z). An axis without elements gets one block.
            block: threads of a block, likewise; of at most as many axes as `n`.

        Raises:
            LaunchConfigError: an extent of `n` is no integer of 0 or more, one of `block` is no
                integer of 1 or more, or `block` has more axes than `n`.
        """
        if type(n) is int and type(block) is int and n >= 0 < block:  # the most frequent form
            return cls(max(1, -(-n // block)), block)
        elements, threads = _extents("n", n, 0), _extents("block", block, 1)
        axes = len(elements)
        if max(threads[axes:], default=1) > 1:
            count = f"{axes} extent{'s' * (axes > 1)}"
            raise LaunchConfigError(
                f"block is {border.shown(block)}: n has {count}, so give a block of at most {axes}"
            )
        sizes = (*threads, 1, 1)[:axes]
        grid = [max(1, -(-count // size)) for count, size in zip(elements, sizes, strict=True)]
        return cls(grid, threads)

    def __repr__(self) -> str:
        # It appears in the errors of launches: default values would hide the rest.
        arguments = [f"grid={self.grid}", f"block={self.block}"]
        if self.shared_bytes:
            arguments.append(f"shared_bytes={self.shared_bytes}")
        if self.cluster is not None:
            arguments.append(f"cluster={self.cluster}")
        if self.cooperative:
            arguments.append("cooperative=True")
        if self.programmatic:
            arguments.append("programmatic=True")
        if self.attributes != NO_ATTRIBUTES:
            arguments.append(f"attributes={self.attributes}")
        return f"LaunchConfig({', '.join(arguments)})"

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return math.prod(self.block)

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return math.prod(self.grid)


_MOST_KNOWN: Final = 256
# Those of grids and blocks along x, which most calls of launches make. They never change, so one
# object serves every call with the same integers. Single operations of a dict: no lock.
_known: Final[dict[tuple[object, object, object], LaunchConfig]] = {}
# A frozen dataclass is filled through its slots, which takes half as long as object.__setattr__:
# callers that write the configuration into the call make one per launch.
(
    _fill_grid, _fill_block, _fill_shared_bytes, _fill_cluster, _fill_cooperative,
    _fill_programmatic, _fill_attributes,
) = (vars(LaunchConfig)[field.name].__set__ for field in fields(LaunchConfig))  # fmt: skip


def native_config(config: LaunchConfig) -> CUlaunchConfig:
    """Return the driver's structure of a configuration, for no particular stream."""
    native = CUlaunchConfig()
    native.gridDimX, native.gridDimY, native.gridDimZ = config.grid
    native.blockDimX, native.blockDimY, native.blockDimZ = config.block
    native.sharedMemBytes = config.shared_bytes
    native.attrs = [_native_attribute(*requested) for requested in requested_attributes(config)]
    native.numAttrs = len(native.attrs)
    return native


Fill: TypeAlias = Callable[[CUlaunchAttributeValue], None]


def _native_attribute(number: _Id, fill: Fill) -> CUlaunchAttribute:
    attribute = CUlaunchAttribute()
    attribute.id = number
    fill(attribute.value)
    return attribute


def requested_attributes(config: LaunchConfig) -> Iterator[tuple[_Id, Fill]]:
    """Yield the driver's number of each attribute of a launch, and a function that sets its value.

    A kernel node of a graph has the same attributes, in a structure of its own.
    """
    requests = config.attributes
    if config.cooperative:
        yield _Id.CU_LAUNCH_ATTRIBUTE_COOPERATIVE, _cooperate
    if config.cluster is not None:
        yield _Id.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, partial(_set_cluster, config.cluster)
    if config.programmatic:
        yield _Id.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, _allow_early_start
    if requests is not NO_ATTRIBUTES:
        yield from _further_attributes(requests)


def _further_attributes(requests: LaunchAttributes) -> Iterator[tuple[_Id, Fill]]:
    if requests.priority is not None:
        yield _Id.CU_LAUNCH_ATTRIBUTE_PRIORITY, partial(_set, "priority", requests.priority)
    if requests.preferred_cluster is not None:
        set_cluster = partial(_set_preferred_cluster, requests.preferred_cluster)
        yield _Id.CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, set_cluster
    if requests.memory_domain is not None:
        domain = _DOMAINS[requests.memory_domain]
        yield _Id.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, partial(_set, "memSyncDomain", domain)
    if requests.shared_carveout is not None:
        percent = requests.shared_carveout
        set_carveout = partial(_set, "sharedMemCarveout", percent)
        yield _Id.CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, set_carveout
    if requests.access_window is not None:
        set_window = partial(_set_window, requests.access_window)
        yield _Id.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, set_window
    if requests.completion_event is not None:
        set_event = partial(_set_event, requests.completion_event)
        yield _Id.CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, set_event
    # Older bindings lack these numbers: `check_support` has rejected them there.
    if requests.nvlink_centric is not None:
        is_centric = int(requests.nvlink_centric)
        set_centric = partial(_set, "nvlinkUtilCentricScheduling", is_centric)
        yield _Id.CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING, set_centric
    if requests.cluster_size_mode is not None:
        mode = _CLUSTER_SIZE_MODES[requests.cluster_size_mode]
        set_mode = partial(_set, "portableClusterSizeMode", mode)
        yield _Id.CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE, set_mode
    if requests.shared_memory_mode is not None:
        mode = _SHARED_MEMORY_MODES[requests.shared_memory_mode]
        yield _Id.CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE, partial(_set, "sharedMemoryMode", mode)
    if requests.device_updatable is not None:
        set_updatable = partial(_set_updatable, int(requests.device_updatable))
        yield _Id.CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, set_updatable


def _set(name: str, value: int, native: CUlaunchAttributeValue) -> None:
    setattr(native, name, value)


def _cooperate(native: CUlaunchAttributeValue) -> None:
    native.cooperative = 1


def _allow_early_start(native: CUlaunchAttributeValue) -> None:
    native.programmaticStreamSerializationAllowed = 1


def _set_cluster(extents: Dim3, native: CUlaunchAttributeValue) -> None:
    cluster = native.clusterDim
    cluster.x, cluster.y, cluster.z = extents


def _set_preferred_cluster(extents: Dim3, native: CUlaunchAttributeValue) -> None:
    cluster = native.preferredClusterDim
    cluster.x, cluster.y, cluster.z = extents


def _set_window(window: AccessWindow, native: CUlaunchAttributeValue) -> None:
    policy = native.accessPolicyWindow
    policy.base_ptr, policy.num_bytes = window.address, window.nbytes
    policy.hitRatio = window.hit_ratio
    policy.hitProp, policy.missProp = _PROPERTIES[window.hit], _PROPERTIES[window.miss]


def _set_event(event: Event, native: CUlaunchAttributeValue) -> None:
    native.launchCompletionEvent.event = event.handle
    native.launchCompletionEvent.flags = 0


def _set_updatable(value: int, native: CUlaunchAttributeValue) -> None:
    native.deviceUpdatableKernelNode.deviceUpdatable = value


def _index(option: str, value: object, must: str) -> int:
    try:
        return border.index_of(value)
    except TypeError:
        raise LaunchConfigError(f"{option} is {border.shown(value)}: {must}") from None


def _one_of(option: str, value: object, choices: Collection[str]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise LaunchConfigError(
            f"{option} is {border.shown(value)}: give one of {', '.join(choices)}"
        )


def _dim3(option: str, extents: Extents) -> Dim3:
    if type(extents) is int and extents > 0:  # the most frequent form, a microsecond faster
        return extents, 1, 1
    x, y, z = (*_extents(option, extents, 1), 1, 1)[:3]
    return x, y, z


def _extents(option: str, extents: Extents, lowest: int) -> list[int]:
    """One to three extents as they were given.

    Raises:
        LaunchConfigError: there are others, or an extent is no integer of `lowest` or more.
    """
    try:
        sizes = [border.index_of(extents)]  # one extent, or several
    except TypeError:
        try:
            values = tuple(extents)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            values = (lowest - 1,)
        if not 1 <= len(values) <= 3:
            raise LaunchConfigError(
                f"{option} is {border.shown(extents)}: give 1 to 3 extents"
            ) from None
        try:
            sizes = [border.index_of(value) for value in values]
        except TypeError:
            sizes = [lowest - 1]
    if min(sizes) < lowest:
        raise LaunchConfigError(
            f"{option} is {border.shown(extents)}: "
            f"each extent must be an integer of {lowest} or more"
        )
    return sizes
