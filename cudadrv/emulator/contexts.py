"""Contexts: the devices' primary ones and created ones."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Final, Self

from ptx.emulate import Allocation
from ptx.emulate.memory.mapped_memory import PeerMemory

from ..driver._api import CUdevResource, CUdevResourceType, CUresult
from .call_error import CallError, invalid_value
from .device_state import DeviceState, Owner
from .workqueues import Workqueues

_SM: Final = CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
_FORM: Final = struct.Struct("<8s5q")
_MARK: Final = b"cudadrv\0"
# By the major of the compute capability: the least size of a part, and the step of sizes.
_STEPS: Final = {7: (2, 2), 8: (4, 2)}
_NEWEST: Final = (8, 8)
_SINGLE: Final = (2, 2)  # with co-scheduling ignored


@dataclass(frozen=True, slots=True)
class SmRange:
    """Consecutive multiprocessors of a device.

    Attributes:
        ordinal: the ordinal of the device.
        start, count: the first one, and their number.
        part: the size of each part of the split that made them, 0 if they are a whole.
        is_whole: whether it may be divided: a part may not, before a context has it.
    """

    ordinal: int
    start: int
    count: int
    part: int = 0
    is_whole: bool = True

    @classmethod
    def of(cls, device: DeviceState) -> Self:
        """Return all multiprocessors of a device."""
        return cls(device.ordinal, 0, device.profile.sm_count)

    @classmethod
    def read(cls, resource: CUdevResource | None) -> Self:
        """Return the multiprocessors of a resource.

        Raises:
            CallError: it is no resource of multiprocessors.
        """
        if resource is None:
            raise invalid_value("the resource is null")
        padding = bytes(resource._internal_padding)
        mark, ordinal, start, count, part, is_whole = _FORM.unpack_from(padding)
        if resource.type != _SM or mark != _MARK:
            raise CallError(
                CUresult.CUDA_ERROR_INVALID_RESOURCE_TYPE,
                "the resource is not of multiprocessors, or comes from elsewhere",
            )
        return cls(ordinal, start, count, part, bool(is_whole))

    def native(self, device: DeviceState) -> CUdevResource:
        """Return the driver's resource; of an invalid type if it is empty."""
        resource = CUdevResource()
        if not self.count:
            return resource
        resource.type = _SM
        resource.sm.smCount = self.count
        min_count, step = steps(device, ignore=False)
        if hasattr(resource.sm, "minSmPartitionSize"):  # from CUDA 13 on
            resource.sm.minSmPartitionSize = min_count
            resource.sm.smCoscheduledAlignment = step
        data = _FORM.pack(_MARK, self.ordinal, self.start, self.count, self.part, self.is_whole)
        resource._internal_padding = data.ljust(len(resource._internal_padding), b"\0")
        return resource

    def divided(self, group_size: int, groups: int | None) -> tuple[list[SmRange], SmRange]:
        """Return parts of `group_size`, as many as possible if `groups` is None, and the rest."""
        group_count = self.count // group_size
        count = group_count if groups is None else min(groups, group_count)
        parts = [
            SmRange(
                self.ordinal, self.start + group_size * n, group_size, group_size, is_whole=False
            )
            for n in range(count)
        ]
        remainder = replace(
            self,
            start=self.start + group_size * count,
            count=self.count - group_size * count,
            part=group_size,
            is_whole=False,
        )
        return parts, remainder


def steps(device: DeviceState, *, ignore: bool) -> tuple[int, int]:
    """Return the least size of a device's part, and the divisor of sizes."""
    major = device.profile.compute_capability[0]
    return _SINGLE if ignore and major >= 8 else _STEPS.get(major, _NEWEST)


def together(ranges: Iterable[SmRange]) -> tuple[SmRange, ...]:
    """Return ranges that one context may have.

    Raises:
        CallError: they overlap, are of several devices or of different divisions.
    """
    in_order = tuple(sorted(ranges, key=lambda sm_range: sm_range.start))
    overlap = any(a.start + a.count > b.start for a, b in pairwise(in_order))
    if (
        not in_order
        or overlap
        or len({(sm_range.ordinal, sm_range.part) for sm_range in in_order}) > 1
    ):
        raise CallError(
            CUresult.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
            "the resources are none, overlap, or do not come from one division of one device",
        )
    return in_order


@dataclass(eq=False, repr=False, slots=True)
class Context:
    """A context.

    The primary context of a device has one permanent handle, and a new `Context` each time it
    becomes active.

    Attributes:
        retained: how often a primary context is retained.
        attached: how often cuCtxAttach was called for a created one, and not undone.
        settings: limits that were set, by their number.
        cache_config: its kernels' cache preference, which has no effect.
        peers: contexts of other devices whose memory its kernels can access.
        sms: the multiprocessors of a green context; empty for others.
        workqueues: those that a green context requested.
        coredump: its own settings of core dumps, by their number.
    """

    handle: int
    device: DeviceState
    flags: int
    primary: bool
    retained: int = 0
    attached: int = 0
    destroyed: bool = False
    peers: list[Context] = field(default_factory=list)
    settings: dict[int, int] = field(default_factory=dict)
    cache_config: int = 0
    sms: tuple[SmRange, ...] = ()
    workqueues: Workqueues | None = None
    coredump: dict[int, bool | int | bytes] = field(default_factory=dict)

    @property
    def sm_count(self) -> int:
        """The number of multiprocessors that its kernels run on."""
        return sum(sm_range.count for sm_range in self.sms) or self.device.profile.sm_count

    def shares_objects_with(self, other: Context) -> bool:
        """Return whether events of one may be recorded in streams of the other.

        The regular context of a green one is its device's primary one (CUDA Driver API,
        cuStreamGetCtx_v2).
        """
        if self is other or self.device is not other.device:
            return self is other
        return bool((self.sms and (other.sms or other.primary)) or (other.sms and self.primary))

    def peer_memories(self) -> list[tuple[DeviceState, PeerMemory]]:
        """Return other devices with memory that kernels of the context can access, in order."""
        memories = []
        for device in self.device.others:
            opened = any(
                self.device.ordinal in pool.peers for pool in device.account.pools.values()
            )
            mapped = any(
                self.device.ordinal in piece.devices
                for reservation in list(device.reservations.values())
                for piece in list(reservation.pieces.values())
            )
            in_team = device in self.device.teams
            of_process = any(context == self.handle for context, _ in list(device.opened))
            if opened or mapped or in_team or of_process or self._peers_of(device):
                is_open = partial(self.reaches, device)
                memories.append((device, PeerMemory(device.memory, is_open)))
        return memories

    def _peers_of(self, device: DeviceState) -> list[int]:
        return [peer.handle for peer in self.peers if peer.device is device and not peer.destroyed]

    def reaches(self, device: DeviceState, allocation: Allocation) -> bool:
        """Return whether kernels can access memory of another device.

        That is memory of opened pools, mapped memory, memory of peers, and what the context has
        opened of another process.
        """
        piece = device.pieces.get(allocation.address)
        if piece is not None and piece.owner in (Owner.POOL, Owner.GRAPH):
            return self.device.ordinal in (piece.pool or device.pool).peers
        for reservation in list(device.reservations.values()):
            mapped = reservation.pieces.get(allocation.address)
            if mapped is not None:
                return self.device.ordinal in mapped.devices
        if piece is not None and piece.owner is Owner.OPENED:
            return piece.context == self.handle
        peers = self._peers_of(device)
        # An allocation that is not a piece is a variable of a module.
        return bool(peers) if piece is None else piece.context in peers
