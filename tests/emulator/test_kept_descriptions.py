"""What no function of the driver gives up does not grow with its use."""

from __future__ import annotations

import cudadrv
from cudadrv import emulator


def test_green_contexts_on_the_same_part_share_its_description() -> None:
    with emulator.session() as machine:
        (part, other), _ = cudadrv.cuda_context_for(0).sm_resource.split(8, 2)
        for _ in range(3):
            for each in (part, other):
                with cudadrv.Context.create_green(each) as green:
                    assert green.sm_resource.sm_count == each.sm_count
        assert machine.live_objects()["resource description"] == 2
