"""Thread blocks of a launch in another order, and what in them is not done yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptx.emulate.exec.order.late_copies import LateCopies
from ptx.emulate.memory.late_stores import LateStores
from ptx.emulate.threads.resident_blocks import ResidentBlocks

if TYPE_CHECKING:
    from ptx.emulate.exec.order.ordered_launch import OrderedLaunch
    from ptx.emulate.model.geometry import Geometry
    from ptx.emulate.model.order import Decisions
    from ptx.emulate.threads.fibre import Fibre


class OrderedBlocks(ResidentBlocks):
    """One chunk of a launch in another order.

    Attributes:
        late_copies: the asynchronous copies under way.
        late_stores: the stores that other chunks do not see yet.
        ways_given: how often its turn ended for what others may see.
    """

    def __init__(self, launch: OrderedLaunch, geometry: Geometry, first: int) -> None:
        super().__init__(launch, geometry, first)
        self.decisions: Decisions = launch.decisions
        self.late_copies: LateCopies = LateCopies(geometry.threads, launch.decisions)
        self.late_stores: LateStores = LateStores()
        if self.races is not None:
            self.races.hide(self.late_stores)
        self.ways_given = 0


def ordered_blocks(fibre: Fibre) -> OrderedBlocks:
    """The fibre's blocks, which code for launches in another order runs in."""
    blocks = fibre.blocks
    assert isinstance(blocks, OrderedBlocks)
    return blocks
