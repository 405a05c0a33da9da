"""Volatile and relaxed stores of what was made of a volatile or relaxed load of the same place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from ptx.emulate.check.access_role import is_atomic_or_volatile
from ptx.emulate.codegen.analysis.places import Places
from ptx.emulate.codegen.cfg import Block, BlockStep
from ptx.emulate.codegen.table import Effect
from ptx.emulate.kernel_facts import Update
from ptx.isa.model import Register

_PASSED_ON: Final = frozenset({"mov", "cvt"})
_IDEMPOTENT: Final = frozenset({"or", "and", "min", "max", "selp"})
Writers = dict[int, list[BlockStep]]


def updates_of(blocks: Sequence[Block], first: int) -> dict[int, Update]:
    """The loads and stores of such updates, by identity; places are numbered from `first` on.

    `p[0] = p[0] + 1` is one, as the sum is made of what was loaded. A flag that is polled and then
    set is none.
    """
    strong = [
        step
        for block in blocks
        for step in block.steps
        if step.instruction.opcode in ("ld", "st") and is_atomic_or_volatile(step.instruction)
    ]
    loads = [step for step in strong if step.instruction.opcode == "ld"]
    stores = [step for step in strong if step.instruction.opcode == "st"]
    found: dict[int, Update] = {}
    if not loads or not stores:
        return found
    writers, places = writers_of(blocks), Places(blocks)
    numbers: dict[object, int] = {}
    for store in stores:
        place, value = places.of(store.instruction), store.instruction.operands[-1]
        if not isinstance(value, Register):
            continue
        sources, last = sources_of(writers, store.reads[-1])
        used = [s for s in loads if id(s) in sources and places.of(s.instruction) == place]
        if used:
            number = numbers.setdefault(place, first + len(numbers))
            update = Update(number, is_idempotent=last <= _IDEMPOTENT)
            found |= {id(each.instruction): update for each in (*used, store)}
    return found


def writers_of(blocks: Sequence[Block]) -> Writers:
    """What writes each register."""
    found: Writers = defaultdict(list)
    for block in blocks:
        for step in block.steps:
            for register in step.writes:
                found[register].append(step)
    return found


def sources_of(writers: Writers, register: int) -> tuple[set[int], set[str]]:
    """By what a register's value is made, by identity, as far as loads; the last opcodes of it."""
    found: set[int] = set()
    last: set[str] = set()
    waiting = [(register, True)]
    while waiting:
        each, is_last = waiting.pop()
        for step in writers.get(each, ()):
            if id(step) in found:
                continue
            found.add(id(step))
            opcode = step.instruction.opcode
            passes_on = is_last and opcode in _PASSED_ON
            if is_last and not passes_on:
                last.add(opcode)
            if step.operation.effect is Effect.PURE:
                waiting += [(read, passes_on) for read in step.reads]
    return found, last
