"""Stores and atomics of an ordered launch, whose weak stores other blocks see late.

What is strong is seen at once: an atomic operation, and a volatile or relaxed store. One that
releases, as a fence does, shows all that its block has stored before.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ptx.emulate.access.faults import SeveralMemories
from ptx.emulate.access.memory_access import divide, locate, store
from ptx.emulate.exec.order.ordered_blocks import OrderedBlocks, ordered_blocks
from ptx.emulate.memory.generic_addresses import is_global, is_mixed
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, addresses_in
from ptx.emulate.model.geometry import Value
from ptx.emulate.threads.fibre import Fibre

_MOST_WAYS: Final = 16  # a chunk: each takes its stores away and puts them back
_GIVE_WAY: Final = 2  # one time in so many another chunk goes on where others may learn something


def publish(fibre: Fibre) -> None:
    """A fence that other blocks take note of."""
    ordered_blocks(fibre).late_stores.publish()


def store_weak(fibre: Fibre, addresses: Addresses, offset: int, site: Site, *values: Value) -> None:
    """A store that other blocks see late."""
    note_write(fibre, addresses, offset, site, strong=False)
    store(fibre, addresses, offset, site, *values)


def store_strong(
    fibre: Fibre, addresses: Addresses, offset: int, site: Site, *values: Value
) -> None:
    """A store that other blocks see at once."""
    note_write(fibre, addresses, offset, site, strong=True)
    store(fibre, addresses, offset, site, *values)


def note_write(
    fibre: Fibre, addresses: Addresses, offset: int, site: Site, *, strong: bool
) -> None:
    """Global memory is about to be written.

    Raises:
        MemoryFault: an address is out of bounds, freed or misaligned.
    """
    if site.space == "generic" and is_mixed(addresses, offset):
        for _, part, where in divide(fibre, addresses, offset):
            note_write(part, where, offset, site, strong=strong)
        return
    if not is_global(addresses, offset, site):
        return
    blocks = ordered_blocks(fibre)
    try:
        elements, index = locate(fibre, addresses, offset, site, is_access=False)
    except SeveralMemories as several:
        every = addresses.every(fibre.n)
        for positions in several.groups:
            part = fibre.subset(positions, ())
            note_write(part, addresses_in(every[positions]), offset, site, strong=strong)
        return
    if strong:
        blocks.late_stores.publish_at(elements, index, site.count)
        _give_way(fibre, blocks)
    else:
        blocks.late_stores.note(elements, np.unique(index), site.count)


def _give_way(fibre: Fibre, blocks: OrderedBlocks) -> None:
    """Let another chunk go on while it sees this and not what was stored before."""
    decisions = blocks.decisions
    if not blocks.late_stores or blocks.ways_given >= _MOST_WAYS:
        return
    if decisions.late or decisions.early(_GIVE_WAY):
        blocks.ways_given += 1
        fibre.scheduler.give_way()
