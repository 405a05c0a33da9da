"""Interrupts at the points of the operations that make something of the driver's, or begin one."""

from __future__ import annotations

import pytest

import cudadrv
from campaigns.interrupts.operations import OPERATIONS
from campaigns.interrupts.systematic import some_points
from tests.short_cases import few

CHOSEN = (
    "allocations", "building of graphs", "capture and graphs", "captures of a client", "contexts",
    "copies of pinned arrays", "copy between devices", "download", "events", "fill",
    "green contexts", "host function", "links", "managed arrays", "streams", "textures and arrays",
    "unordered", "update of a graph", "upload",
)  # fmt: skip

MOST = 40
"""Points of each; the campaign tries all of them."""


@pytest.mark.skipif(
    not cudadrv.list_devices()[0].is_emulated, reason="needs the emulator, which counts captures"
)
@pytest.mark.parametrize("operation", few(CHOSEN, 5))
def test_after_an_interrupt_at_any_point_all_is_usable(operation: str) -> None:
    assert operation in OPERATIONS
    outcome = some_points(operation, MOST)
    assert outcome.failures == []
    assert outcome.cases[operation] > 5
