"""The proxy fences of a launch, with what their threads knew."""

from __future__ import annotations

from collections import deque
from typing import Final

from ptx.emulate.check.chain import Told
from ptx.emulate.check.clocks import Clocks, Small
from ptx.emulate.check.stamps import Stamps
from ptx.emulate.model.addresses import Index

_MOST_FENCES: Final = 256  # of a launch that are kept; who asks for more is believed


class ProxyFence:
    """One fence of several threads, and what each of them knows when it executes it.

    Attributes:
        threads: their numbers in the launch, ascending; ended: the epoch that the fence ends.
        block, warp: up to where the block and the warp of each know each other.
        lanes: (threads, 32) what each knows of the lanes of its warp; None where that is less.
        told: what each knows through memory; empty where that is nothing.
    """

    __slots__ = ("block", "ended", "lanes", "threads", "told", "warp")

    def __init__(
        self, threads: Stamps, ended: Stamps, clocks: Clocks, lanes: Index, told: list[Told]
    ) -> None:
        self.threads: Stamps = threads
        self.ended: Stamps = ended
        block, warp, by_lane = clocks.known(lanes)
        self.block: Stamps = block
        self.warp: Stamps = warp
        self.lanes: Small | None = by_lane
        self.told: list[Told] = told


class ProxyFenceLog:
    """The proxy fences of one kind in a launch, the latest `_MOST_FENCES` of them.

    `forgot`: whether there were more.
    """

    def __init__(self) -> None:
        self.fences: deque[ProxyFence] = deque(maxlen=_MOST_FENCES)
        self.forgot: bool = False

    def add(self, fence: ProxyFence) -> None:
        """One more."""
        self.forgot |= len(self.fences) == _MOST_FENCES
        self.fences.append(fence)
