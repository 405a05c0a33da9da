"""Code that counts executed instructions; it is generated only for launches that count."""

from __future__ import annotations

from ptx.emulate.codegen.emitter import Emitter
from ptx.isa.model import Guard, Instruction, Register

_COUNTS = "f.blocks.counts"


def begin_block(e: Emitter) -> None:
    """The block's code begins."""
    if e.scope.counted is not None:
        e.scope.counted.begin(e.here)


def count_block(e: Emitter) -> None:
    """Write code that counts the block for all threads of the fibre from here on."""
    if e.scope.counted is not None:
        e.line(f"{_COUNTS}.block(f, {e.here})")


def count_instruction(e: Emitter, *, is_skipped: bool) -> None:
    """Write code that counts an instruction; `is_skipped`: its warps were counted at its guard."""
    counted, i = e.scope.counted, e.instruction
    if counted is None:
        return
    if i.guard is not None:
        number = counted.add_guarded(e.here, i)
        e.line(f"{_COUNTS}.guard(f, {number}, {_condition(e, i.guard)})")
    elif (choice := _choice(e, i)) is not None:
        number = counted.add_guarded(e.here, i)
        e.line(f"{_COUNTS}.chosen_branch(f, {number}, {choice})")
    elif is_skipped:
        counted.of_threads[e.here].append(i)
    else:
        counted.add(e.here, i)


def count_end(e: Emitter, branch: Instruction | None, skipped: Instruction | None) -> None:
    """Write code for the branch at the block's end, or for the guard of an instruction."""
    counted = e.scope.counted
    if counted is None:
        return
    if skipped is not None:
        counted.of_warps[e.here].append(skipped)
    elif branch is not None and branch.guard is not None:
        number = counted.add_guarded(e.here, branch)
        e.line(f"{_COUNTS}.branch(f, {number}, {_condition(e, branch.guard)})")
    elif branch is not None:
        counted.add(e.here, branch)


def count_access(e: Emitter, addresses: str, offset: int, site: str) -> None:
    """The fibre accesses memory there, as `Emitter.address` and `Emitter.site` name it."""
    if e.scope.counted is not None:
        e.line(f"{_COUNTS}.access(f, {addresses}, {offset}, {site})")


def _choice(e: Emitter, i: Instruction) -> str | None:
    """Return the value that chooses a target: the index of `brx.idx`, a call's address."""
    if i.opcode == "brx":
        return e.value(i.operands[0], "u32")
    if i.opcode == "call":
        for operand in i.operands:
            if isinstance(operand, Register):
                return e.value(operand, "u64")
    return None


def _condition(e: Emitter, guard: Guard) -> str:
    value = e.value(guard.register, "pred")
    return f"~{value}" if guard.negated else value
