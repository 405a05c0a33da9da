"""`LaunchConfig`: the extents and resources of a launch, checked before the driver sees them."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import SupportsIndex, TypeAlias

from .. import border
from ..driver._api import CUlaunchAttribute, CUlaunchAttributeID, CUlaunchConfig
from ..driver.types import Dim3
from ..errors import LaunchConfigError

Extents: TypeAlias = SupportsIndex | Sequence[SupportsIndex]


@dataclass(frozen=True, slots=True)
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

    Attributes:
        grid: blocks along x, y and z.
        block: threads of a block along x, y and z.
        shared_bytes: dynamic shared memory of a block, in bytes.
        cluster: blocks of a cluster along x, y and z; None without clusters.
        cooperative: whether all blocks must be resident at once.
        programmatic: whether it may begin before earlier work in the stream has ended.

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

    def __init__(
        self,
        grid: Extents,
        block: Extents,
        shared_bytes: int = 0,
        cluster: Extents | None = None,
        cooperative: bool = False,
        programmatic: bool = False,
    ) -> None:
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

    @classmethod
    def for_elements(cls, n: int, block: int = 256) -> LaunchConfig:
        """Return one thread for each of `n` elements, in blocks of `block`; one block if n is 0."""
        if type(n) is not int:
            n = _index("n", n, "give an integer number of elements")
        if type(block) is not int:
            block = _index("block", block, "give an integer number of threads")
        if n < 0:
            raise LaunchConfigError(f"n is {n}: give 0 or more elements")
        return cls(max(1, -(-n // block)) if block > 0 else 1, block)

    def __repr__(self) -> str:
        # It appears in the errors of launches: default values would hide the rest.
        given = [f"grid={self.grid}", f"block={self.block}"]
        if self.shared_bytes:
            given.append(f"shared_bytes={self.shared_bytes}")
        if self.cluster is not None:
            given.append(f"cluster={self.cluster}")
        if self.cooperative:
            given.append("cooperative=True")
        if self.programmatic:
            given.append("programmatic=True")
        return f"LaunchConfig({', '.join(given)})"

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return math.prod(self.block)

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return math.prod(self.grid)


# A frozen dataclass is filled through its slots, which takes half as long as object.__setattr__:
# callers that write the configuration into the call make one per launch.
(
    _fill_grid, _fill_block, _fill_shared_bytes, _fill_cluster, _fill_cooperative,
    _fill_programmatic,
) = (vars(LaunchConfig)[field.name].__set__ for field in fields(LaunchConfig))  # fmt: skip


def native_config(config: LaunchConfig) -> CUlaunchConfig:
    """Return the driver's structure of a configuration, for no particular stream."""
    native = CUlaunchConfig()
    native.gridDimX, native.gridDimY, native.gridDimZ = config.grid
    native.blockDimX, native.blockDimY, native.blockDimZ = config.block
    native.sharedMemBytes = config.shared_bytes
    attributes = []
    if config.cooperative:
        attribute = CUlaunchAttribute()
        attribute.id = CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attribute.value.cooperative = 1
        attributes.append(attribute)
    if config.cluster is not None:
        attribute = CUlaunchAttribute()
        attribute.id = CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        extents = attribute.value.clusterDim
        extents.x, extents.y, extents.z = config.cluster
        attributes.append(attribute)
    if config.programmatic:
        attribute = CUlaunchAttribute()
        attribute.id = CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
        attributes.append(attribute)
    native.attrs = attributes
    native.numAttrs = len(attributes)
    return native


def _index(what: str, value: object, must: str) -> int:
    try:
        # Non-integers of any kind fail.
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise LaunchConfigError(f"{what} is {border.shown(value)}: {must}") from None


def _dim3(what: str, extents: Extents) -> Dim3:
    if type(extents) is int and extents > 0:  # the most frequent form, a microsecond faster
        return extents, 1, 1
    try:
        whole = [operator.index(extents)]  # type: ignore[arg-type]  # one extent, or several
    except TypeError:
        try:
            values = tuple(extents)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            values = (0,)
        if not 1 <= len(values) <= 3:
            raise LaunchConfigError(
                f"{what} is {border.shown(extents)}: give 1 to 3 extents"
            ) from None
        try:
            whole = [operator.index(value) for value in values]
        except TypeError:
            whole = [0]
    if min(whole) < 1:
        raise LaunchConfigError(
            f"{what} is {border.shown(extents)}: each extent must be an integer of 1 or more"
        )
    x, y, z = (*whole, 1, 1)[:3]
    return x, y, z
