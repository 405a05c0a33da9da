"""The multiprocessors of a device as a resource, which is divided for green contexts.

CUDA Driver API, "Green Contexts".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from ptx.read_only import ReadOnly

from .. import border, errors
from ._api import CUdevResource, CUdevResourceDesc, CUdevResourceType
from .device import Device
from .driver_selection import checked, failure
from .handle import NotCopyable
from .workqueue_resource import WorkqueueResource, native_of

SM: Final = CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
# CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, whose enumeration has two names by version.
_IGNORE_COSCHEDULING: Final = 1
_MOST: Final = 2**31 - 1


class SmResource(NotCopyable):
    """Multiprocessors of a device, all or some; from `Context.sm_resource`.

    Attributes:
        device: the device of the multiprocessors.
        sm_count: their number.
    """

    __slots__ = ("_device", "_native", "_sm_count")

    device: ReadOnly[Device] = ReadOnly("_device")
    sm_count: ReadOnly[int] = ReadOnly("_sm_count")

    def __init__(self, device: Device, native: CUdevResource) -> None:
        self._device: Device = border.instance_of("SmResource: device", device, Device)
        self._native = border.instance_of("SmResource: native", native, CUdevResource)
        self._sm_count: int = int(native.sm.smCount)

    def __repr__(self) -> str:
        return f"<SmResource of {self._sm_count} multiprocessors of device {self._device.ordinal}>"

    @property
    def min_partition_size(self) -> int | None:
        """The least size of a part; None with the bindings of CUDA 12, which do not report it."""
        size: int | None = getattr(self._native.sm, "minSmPartitionSize", None)
        return size

    @property
    def coscheduled_alignment(self) -> int | None:
        """The size of every part is a multiple of this; None with the bindings of CUDA 12."""
        alignment: int | None = getattr(self._native.sm, "smCoscheduledAlignment", None)
        return alignment

    def split(
        self, sm_count: int, groups: int | None = None, *, ignore_coscheduling: bool = False
    ) -> tuple[tuple[SmResource, ...], SmResource | None]:
        """Return parts of equal size, and the rest of the whole, None if nothing is left.

        A part can be split again once a green context has it.

        Args:
            sm_count: the least size of a part; the driver rounds it up.
            groups: the number of parts; None is as many as possible.
            ignore_coscheduling: allow finer parts, which may rule out large clusters.

        Raises:
            InvalidResourceConfigurationError: there are not enough multiprocessors.
            ArgumentValueError: there are not enough parts.
        """
        sm_count = border.int_in_range("SmResource.split: sm_count", sm_count, most=_MOST)
        if groups is None:
            _, groups, _ = self._split(0, sm_count, ignore_coscheduling)
        groups = border.int_in_range("SmResource.split: groups", groups, 1, _MOST)
        # The bindings make as many objects as requested, and a part has one multiprocessor or more.
        requested = min(groups, self._sm_count)
        parts, part_count, remainder = self._split(requested, sm_count, ignore_coscheduling)
        if part_count < groups:
            raise errors.ArgumentValueError(
                f"SmResource.split: {groups} groups of {sm_count} are more than there are in "
                f"{self!r}, which gives {part_count}"
            )
        resources = tuple(SmResource(self._device, part) for part in parts[:part_count])
        is_left = remainder.type == SM and remainder.sm.smCount
        return resources, SmResource(self._device, remainder) if is_left else None

    def _split(
        self, groups: int, sm_count: int, ignore: bool
    ) -> tuple[list[CUdevResource], int, CUdevResource]:
        api, call = self._device.driver.api, "cuDevSmResourceSplitByCount"
        flags = _IGNORE_COSCHEDULING if ignore else 0
        code, parts, part_count, remainder = api.cuDevSmResourceSplitByCount(
            groups, self._native, flags, sm_count
        )
        if code:
            doing = f"splitting {self!r} into groups of {sm_count}"
            raise failure(api, code, call, doing)
        return parts, part_count, remainder


Resource: TypeAlias = "SmResource | WorkqueueResource"
_KINDS: Final = (SmResource, WorkqueueResource)


def description(
    where: str, resources: Resource | Sequence[Resource]
) -> tuple[Device, CUdevResourceDesc]:
    """Return the device of a green context, and the driver's description of its resources.

    Raises:
        ArgumentValueError: there are no resources, they are of several devices, or there are
            several configurations of workqueues.
        InvalidResourceConfigurationError: the multiprocessors do not come from one split.
        UnsupportedError: workqueues need a newer driver.
    """
    if isinstance(resources, _KINDS):
        resources = (resources,)
    given: Sequence[Resource] = border.sequence_of(where, resources, _KINDS)
    if len({resource.device for resource in given}) != 1:
        raise errors.ArgumentValueError(f"{where}: give multiprocessors of one device")
    if sum(isinstance(resource, WorkqueueResource) for resource in given) > 1:
        raise errors.ArgumentValueError(f"{where}: give one WorkqueueResource")
    api = given[0].device.driver.api
    natives = [
        resource._native if isinstance(resource, SmResource) else native_of(resource)
        for resource in given
    ]
    doing = f"describing a green context on {', '.join(map(repr, given))}"
    result = api.cuDevResourceGenerateDesc(natives, len(natives))
    return given[0].device, checked(api, "cuDevResourceGenerateDesc", result, doing)
