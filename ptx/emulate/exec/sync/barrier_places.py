"""Whether threads that meet at a barrier may come from different instructions.

PTX ISA, "barrier": an aligned one, such as `bar.sync`, must be executed by all threads of a warp at
one place; what happens otherwise is undefined. Different warps may come from different places. CUDA
asks more of `__syncthreads`: one place for all threads of the block that have not exited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import SynchronisationFault
from ptx.emulate.model.geometry import WARP

if TYPE_CHECKING:
    from ptx.emulate.exec.scheduler import Scheduler
    from ptx.emulate.exec.sync.block_barrier import BarrierWait


def _is_aligned(entry: BarrierWait) -> bool:
    instruction = entry.instruction
    assert instruction is not None
    return instruction.opcode == "bar" or "aligned" in instruction.modifiers


def check_warps(entries: list[BarrierWait], *, sync: bool) -> None:
    """Refuse threads of one warp at different aligned barriers.

    An H100 lets them pass at `barrier.sync`, which counts only if `sync`, and hangs at a reduction.

    Raises:
        SynchronisationFault: there are such threads.
    """
    chosen = [e for e in entries if _is_aligned(e) and (sync or e.flag is not None)]
    _check(
        chosen, "warp_slot", WARP, "threads of one warp wait at different barriers, PTX lines {}:"
        " an aligned barrier is for all of a warp's threads, and a GPU may hang (PTX ISA,"
        ' "barrier"; Limits.divergent_barriers lets them pass)',
    )  # fmt: skip


def check_blocks(entries: list[BarrierWait]) -> None:
    """Refuse threads of one block at different aligned barriers.

    Raises:
        SynchronisationFault: there are such threads.
    """
    _check(
        [entry for entry in entries if _is_aligned(entry)], "slot", 1,
        "threads of one block wait at different barriers, PTX lines {}: __syncthreads is for all of"
        " a block's threads (Limits.strict_barriers asks for this)",
    )  # fmt: skip


def check_passed_by(
    scheduler: Scheduler, entries: list[BarrierWait], for_all: NDArray[np.bool_]
) -> None:
    """Refuse a barrier that others of the block went around, where that is checked.

    They have exited, or have come to another barrier. In the blocks where it is `for_all` threads:
    one with a count is for some.

    Raises:
        SynchronisationFault: there are such threads.
    """
    passed_by = scheduler.passed_by
    if passed_by is None:
        return
    slots: Index = scheduler.blocks.geometry.index("slot")
    nobody = np.zeros(0, dtype=np.int64)
    exited = np.concatenate(scheduler.exited) if scheduler.exited else nobody
    places: dict[int, list[BarrierWait]] = {}
    for entry in entries:
        places.setdefault(entry.block - (entry.flag is None), []).append(entry)
    lanes = {
        meeting: np.concatenate([entry.fibre.lane_numbers() for entry in group])
        for meeting, group in places.items()
    }
    waiting = {meeting: here[for_all[slots[here]]] for meeting, here in lanes.items()}
    elsewhere = {
        meeting: np.concatenate([nobody, *(each for to, each in waiting.items() if to != meeting)])
        for meeting in waiting
    }
    for meeting, here in waiting.items():
        first = places[meeting][0]
        for slot in np.unique(slots[here]):
            for others, end in ((exited, "exited"), (elsewhere[meeting], "wait at another one")):
                beside = others[slots[others] == slot]
                around = passed_by.who_went_around(meeting, here[slots[here] == slot], beside)
                if len(around):
                    thread = scheduler.blocks.thread_of(int(around[0]))
                    raise SynchronisationFault(
                        f"{len(around)} threads of the block, {thread} the first of them, went"
                        f" around a barrier at which others wait, and {end}: the condition around"
                        " it must be the same for all threads of the block",
                        first.fibre.where(0, first.instruction),
                    )
    for meeting, others in elsewhere.items():
        passed_by.arrive(meeting, others)  # they have met those who wait there


def _check(entries: list[BarrierWait], place: str, size: int, words: str) -> None:
    """Refuse two entries of one group: of threads whose `place`, divided by `size`, is equal."""
    places = {id(entry.instruction): entry for entry in entries}
    if len(places) < 2:
        return
    groups: Index = entries[0].fibre.blocks.geometry.index(place) // size
    came_from = np.zeros(int(groups.max()) + 1, dtype=np.int64)
    for entry in entries:
        here = groups.take(entry.fibre.lane_numbers())
        known = came_from.take(here)
        wrong = (known != 0) & (known != id(entry.instruction))
        if wrong.any():
            at = int(np.argmax(wrong))
            both = (places[int(known[at])].instruction, entry.instruction)
            lines = " and ".join(str(each.line) for each in both if each is not None)
            raise SynchronisationFault(
                words.format(lines), entry.fibre.where(at, entry.instruction)
            )
        came_from[here] = id(entry.instruction)
