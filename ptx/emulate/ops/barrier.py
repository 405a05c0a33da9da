"""Barriers of a block, and memory fences. PTX ISA, "bar", "barrier", "membar", "fence"."""

from __future__ import annotations

from ptx.emulate.emitter import Emitter
from ptx.emulate.table import Effect, operation
from ptx.isa.model import Instruction

_SECTION = "Parallel Synchronization and Communication Instructions"


def _number_and_count(e: Emitter, i: Instruction) -> tuple[str, str]:
    """The barrier's number and how many threads it expects."""
    operands = [e.value(operand, "u32") for operand in i.operands]
    return operands[0], operands[1] if len(operands) > 1 else "None"


def _sync(e: Emitter, i: Instruction) -> None:
    number, count = _number_and_count(e, i)
    e.leave(f"f.chunk.meeting.barrier(f, {number}, {count}, {e.following})")


def _arrive(e: Emitter, i: Instruction) -> None:
    number, count = _number_and_count(e, i)
    e.line(f"f.chunk.meeting.arrive(f, {number}, {count})")


def _nothing(e: Emitter, i: Instruction) -> None:
    """Every access is done at once, in order."""


for _name in ("bar", "bar.cta", "barrier", "barrier.cta"):
    operation(
        f"{_name}.sync", ("",), (1, 2), _sync, effect=Effect.ENDS, modifiers=["aligned"],
        writes=0, section=_SECTION,
    )  # fmt: skip
    operation(
        f"{_name}.arrive", ("",), 2, _arrive, effect=Effect.MEMORY, modifiers=["aligned"],
        writes=0, section=_SECTION,
    )  # fmt: skip
operation("membar", ("",), 0, _nothing, modifiers=["cta", "gl", "sys"], writes=0, section=_SECTION)
operation(
    "fence", ("",), 0, _nothing, writes=0, section=_SECTION,
    modifiers=["sc", "acq_rel", "acquire", "release", "cta", "cluster", "gpu", "sys"],
)  # fmt: skip
