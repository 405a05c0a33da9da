"""Contexts: the devices' primary ones and those that are created."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from ptx.emulate.memory.device_memory import Allocation
from ptx.emulate.memory.mapped_memory import PeerMemory

from .device_state import Owner

if TYPE_CHECKING:
    from .device_state import DeviceState
    from .sm_resources import SmRange


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
        # What is no piece is a variable of a module.
        return bool(peers) if piece is None else piece.context in peers
