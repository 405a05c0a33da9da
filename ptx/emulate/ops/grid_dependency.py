"""Launches that begin before what is ahead of them has ended. PTX ISA, "griddepcontrol".

Only in an order does one begin early: else the launch ahead has ended, and nothing waits.
"""

from __future__ import annotations

import math

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction


def may_go_on(fibre: Fibre, block: int) -> bool:
    """Whether what is ahead has ended; else the fibre tries again at `block`, in another turn."""
    dependency = fibre.blocks.launch.limits.dependency
    if dependency is None or dependency.may_go_on:
        return True
    fibre.scheduler.wait(fibre, block)
    fibre.scheduler.give_way()
    return False


def let_dependents_go(fibre: Fibre) -> None:
    """The threads' blocks let the next launch go, which may begin now."""
    launch = fibre.blocks.launch
    dependency = launch.limits.dependency
    if dependency is None:
        return
    slots = np.unique(np.asarray(fibre.place("slot"))) + fibre.blocks.first
    if dependency.let_go(slots.tolist(), math.prod(launch.grid)):
        fibre.scheduler.give_way()


def _wait(e: Emitter, i: Instruction) -> None:
    e.line(f"if not {e.helper(may_go_on)}(f, {e.here}): return -1")


def _let_go(e: Emitter, i: Instruction) -> None:
    # It ends its basic block, so that nothing of what follows comes before the next launch.
    e.line(f"{e.helper(let_dependents_go)}(f)")
    e.leave(str(e.following))


operation(
    "griddepcontrol.wait", ("",), 0, _wait, effect=Effect.SYNCS, writes=0, section="griddepcontrol"
)
operation(
    "griddepcontrol.launch_dependents", ("",), 0, _let_go, effect=Effect.ENDS, writes=0,
    section="griddepcontrol",
)  # fmt: skip
