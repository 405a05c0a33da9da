"""Contexts: the devices' primary ones and those that are created."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Final, Self

from ptx.emulate.memory.device_memory import Allocation
from ptx.emulate.memory.mapped_memory import PeerMemory

from ..driver._api import CUdevResource, CUdevResourceType, CUresult
from .call_error import CallError, invalid_value
from .device_state import DeviceState, Owner

_SM: Final = CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
_FORM: Final = struct.Struct("<8s5q")
_MARK: Final = b"cudadrv\0"
# By the major of the compute capability: the least multiprocessors of a part, and their step.
_STEPS: Final = {7: (2, 2), 8: (4, 2)}
_NEWEST: Final = (8, 8)
_SINGLE: Final = (2, 2)  # where co-scheduling is ignored


@dataclass(frozen=True, slots=True)
class SmRange:
    """Multiprocessors that follow each other.

    Attributes:
        ordinal: of which device.
        start, count: which ones.
        part: how many each part had where these come from, 0 of a whole.
        is_whole: whether it may be divided: what a division gave may not, before a context has it.
    """

    ordinal: int
    start: int
    count: int
    part: int = 0
    is_whole: bool = True

    @classmethod
    def of(cls, device: DeviceState) -> Self:
        """All of a device."""
        return cls(device.ordinal, 0, device.profile.sm_count)

    @classmethod
    def read(cls, resource: CUdevResource | None) -> Self:
        """The multiprocessors of a resource.

        Raises:
            CallError: it is none of multiprocessors.
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
        """The resource as the driver has it; of an invalid type where it has nothing."""
        resource = CUdevResource()
        if not self.count:
            return resource
        resource.type = _SM
        resource.sm.smCount = self.count
        least, step = steps(device, ignore=False)
        if hasattr(resource.sm, "minSmPartitionSize"):  # from CUDA 13 on
            resource.sm.minSmPartitionSize = least
            resource.sm.smCoscheduledAlignment = step
        data = _FORM.pack(_MARK, self.ordinal, self.start, self.count, self.part, self.is_whole)
        resource._internal_padding = data.ljust(len(resource._internal_padding), b"\0")
        return resource

    def divided(self, least: int, groups: int | None) -> tuple[list[SmRange], SmRange]:
        """So many parts of at least so many, as many as there can be for None; and what is left."""
        most = self.count // least
        made = most if groups is None else min(groups, most)
        parts = [
            SmRange(self.ordinal, self.start + least * n, least, least, is_whole=False)
            for n in range(made)
        ]
        rest = replace(
            self, start=self.start + least * made, count=self.count - least * made,
            part=least, is_whole=False,
        )  # fmt: skip
        return parts, rest


def steps(device: DeviceState, *, ignore: bool) -> tuple[int, int]:
    """The least multiprocessors of a part of a device, and what their number is a multiple of."""
    major = device.profile.compute_capability[0]
    return _SINGLE if ignore and major >= 8 else _STEPS.get(major, _NEWEST)


def together(ranges: Iterable[SmRange]) -> tuple[SmRange, ...]:
    """Ranges that one context may have.

    Raises:
        CallError: they overlap, are of several devices or of different divisions.
    """
    found = tuple(sorted(ranges, key=lambda each: each.start))
    apart = any(a.start + a.count > b.start for a, b in pairwise(found))
    if not found or apart or len({(each.ordinal, each.part) for each in found}) > 1:
        raise CallError(
            CUresult.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
            "the resources are none, overlap, or do not come from one division of one device",
        )
    return found


@dataclass(eq=False, slots=True)
class Context:
    """A context.

    The primary context of a device has one handle for ever, and a new `Context` each time it
    becomes active.

    Attributes:
        retained: how often a primary context is retained.
        settings: limits that were set, by their number.
        cache_config: what its kernels prefer, which has no effect.
        peers: contexts of other devices whose memory its kernels reach.
        sms: the multiprocessors of a green context; none of another.
    """

    handle: int
    device: DeviceState
    flags: int
    primary: bool
    retained: int = 0
    destroyed: bool = False
    peers: list[Context] = field(default_factory=list)
    settings: dict[int, int] = field(default_factory=dict)
    cache_config: int = 0
    sms: tuple[SmRange, ...] = ()

    @property
    def sm_count(self) -> int:
        """How many multiprocessors its kernels run on."""
        return sum(each.count for each in self.sms) or self.device.profile.sm_count

    def peer_memories(self) -> list[tuple[DeviceState, PeerMemory]]:
        """The other devices of whose memory kernels of the context reach some, in order."""
        found = []
        for device in self.device.others:
            opened = any(
                self.device.ordinal in pool.peers for pool in device.account.pools.values()
            )
            if opened or self._peers_of(device):
                is_open = partial(self._reaches, device)
                found.append((device, PeerMemory(device.memory, is_open)))
        return found

    def _peers_of(self, device: DeviceState) -> list[int]:
        return [peer.handle for peer in self.peers if peer.device is device and not peer.destroyed]

    def _reaches(self, device: DeviceState, allocation: Allocation) -> bool:
        """Whether kernels reach memory of another device: the pool's as it says, and a peer's."""
        piece = device.pieces.get(allocation.address)
        if piece is not None and piece.owner in (Owner.POOL, Owner.GRAPH):
            return self.device.ordinal in (piece.pool or device.pool).peers
        peers = self._peers_of(device)
        # An allocation that is no piece is a variable of a module.
        return bool(peers) if piece is None else piece.context in peers
