"""The table of operations: one record for each opcode and its types.

A file of `ptx.emulate.ops` calls `operation(...)` for each of its opcodes. The first instruction of
an opcode imports the files that its row in `ptx.isa.opcodes` lists.
Two records that could claim the same instruction fail at import.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

from ptx.emulate.codegen.emitter import Emitter
from ptx.isa.instruction_facts import facts_of
from ptx.isa.model import Instruction, Symbol
from ptx.isa.opcodes.opcode_row import OpcodeRowError
from ptx.isa.opcodes.opcode_table import ROWS

EmitExternal = Callable[[Emitter, tuple[Symbol, ...], tuple[Symbol, ...]], None]
EmitFunction = Callable[[Emitter, Instruction], None]


class Effect(Enum):
    """The effect of an operation apart from writing its registers.

    PURE: nothing; under a guard its result is selected lane by lane, and it may be executed for
        lanes that do not need it.
    MEMORY: reads or writes memory, or may fault; under a guard it is branched around.
    SYNCS: threads of several fibres wait for each other; it starts a basic block (see
        `ptx.emulate.ops`).
    ENDS: control leaves the basic block here; the emitter writes its `return`.
    """

    PURE = "pure"
    MEMORY = "memory"
    SYNCS = "syncs"
    ENDS = "ends"


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """One opcode.

    Attributes:
        name: the opcode, or the opcode with the modifiers that select this record: "bar.warp.sync".
        types: the type suffixes it takes, each as written: "s32", "f32.s32", "" for none.
        arity: how many operands it may have.
        emit: writes its Python code.
        effect: its effect beside writing registers.
        modifiers: further modifiers that it accepts; any other one rejects the instruction.
        section: where the PTX ISA describes it.
        writes: how many of its first operands are destinations.
        updates: whether it reads them, too.
        reads_carry, writes_carry: whether it uses the condition code register's CF.
    """

    name: str
    types: frozenset[str]
    arity: tuple[int, ...]
    emit: EmitFunction
    effect: Effect
    modifiers: frozenset[str]
    section: str
    writes: int = 1
    updates: bool = False
    reads_carry: bool = False
    writes_carry: bool = False


_OPERATIONS: dict[tuple[str, str], OperationRecord] = {}
_WITH_OPERATIONS: set[str] = set()  # the opcodes of the records
_IN_SEQUENCE = (("row", "col"), ("global", "shared", "shared::cta", "shared::cluster"))


def operation(
    name: str,
    types: Iterable[str],
    arity: int | tuple[int, ...],
    emit: EmitFunction,
    *,
    section: str,
    effect: Effect = Effect.PURE,
    modifiers: Iterable[str] = (),
    writes: int = 1,
    updates: bool = False,
    reads_carry: bool = False,
    writes_carry: bool = False,
) -> None:
    """Add a record to the table.

    Raises:
        ValueError: another record has the same name and type.
        OpcodeRowError: the opcode has no row, or one that lists no file of operations.
    """
    record = OperationRecord(
        name=name,
        types=frozenset(types),
        arity=(arity,) if isinstance(arity, int) else arity,
        emit=emit,
        effect=effect,
        modifiers=frozenset(modifiers),
        section=section,
        writes=writes,
        updates=updates,
        reads_carry=reads_carry,
        writes_carry=writes_carry,
    )
    opcode = name.partition(".")[0]
    if opcode not in ROWS or not ROWS[opcode].operations:
        raise OpcodeRowError(opcode, f"no row in ptx/isa/opcodes lists a file for {name}")
    _WITH_OPERATIONS.add(opcode)
    for suffix in record.types:
        if (name, suffix) in _OPERATIONS:
            raise ValueError(f"operation {name} of type {suffix or '(none)'} is defined twice")
        _OPERATIONS[name, suffix] = record
    _record.cache_clear()
    _in_table_order.cache_clear()


def import_operations(file: str) -> None:
    """Import a file of `ptx.emulate.ops`, which adds its records."""
    importlib.import_module(f"ptx.emulate.ops.{file}")


def _import_files(opcode: str, modifiers: Iterable[str]) -> None:
    """Import the files with the operations of an opcode; most kernels need few of them.

    Raises:
        OpcodeRowError: none of them has an operation of the opcode.
    """
    row = ROWS.get(opcode)
    for file, modifier in row.operations if row else ():
        if not modifier or modifier in modifiers:
            import_operations(file)
            if opcode not in _WITH_OPERATIONS:
                raise OpcodeRowError(opcode, f"ptx/emulate/ops/{file}.py has no operation for it")


_EXTERNALS: dict[str, tuple[int, EmitExternal]] = {}


def external(name: str, count: int, emit: EmitExternal) -> None:
    """Give a function that PTX only declares, such as vprintf, its meaning.

    It takes `count` arguments, or more that have none.
    `emit(emitter, arguments, results)` gets the caller's `.param` variables as symbols, which
    `Emitter.parameter` reads and `Emitter.set_parameter` writes.

    Raises:
        ValueError: the name has a meaning already.
    """
    if name in _EXTERNALS:
        raise ValueError(f"the external function {name} is defined twice")
    _EXTERNALS[name] = count, emit


def find_external(name: str) -> tuple[int, EmitExternal] | None:
    """Return how many arguments a declared function takes, and its meaning."""
    import_operations("system_calls")
    return _EXTERNALS.get(name)


def type_suffix(instruction: Instruction) -> str:
    """The type modifiers of an instruction, as written: "s32", "f32.s32", ""."""
    return instruction.facts.type_suffix


def find_operation(instruction: Instruction) -> OperationRecord | None:
    """The record for an instruction: the one whose name covers most of its modifiers.

    None if there is none, or if it does not take this number of operands or one of the modifiers.
    """
    record = _record(instruction.opcode, instruction.modifiers)
    return record if record and len(instruction.operands) in record.arity else None


@lru_cache(maxsize=4096)  # by opcode and modifiers; each new record clears it
def _record(opcode: str, modifiers: tuple[str, ...]) -> OperationRecord | None:
    _import_files(opcode, modifiers)
    facts = facts_of(opcode, modifiers)
    words, suffix = facts.words, facts.type_suffix
    for length in range(len(words), -1, -1):
        record = _OPERATIONS.get((".".join((opcode, *words[:length])), suffix))
        if record is not None:
            return record if set(words[length:]) <= record.modifiers else None
    return None


def in_table_order(instruction: Instruction) -> Instruction:
    """Return the instruction with the modifiers of its record first, in the table's order.

    The PTX ISA writes modifiers in one order; NVIDIA's assembler takes them in any, and public code
    has `ldmatrix.sync.aligned.x4.m8n8.shared.b16`. Only types, the layouts of a product's matrices
    and where a copy goes to and comes from mean something by their order; and some opcodes are two
    words.
    """
    ordered = _in_table_order(instruction.opcode, instruction.modifiers)
    if ordered is None:
        return instruction
    return replace(instruction, modifiers=ordered, written=instruction.text)


@lru_cache(maxsize=4096)  # by opcode and modifiers, as `_record`
def _in_table_order(opcode: str, modifiers: tuple[str, ...]) -> tuple[str, ...] | None:
    record, facts = _record(opcode, modifiers), facts_of(opcode, modifiers)
    if record is not None and ".".join((opcode, *modifiers, "")).startswith(f"{record.name}."):
        return None  # as in most texts
    names = {record.name} if record else {name for name, _ in _OPERATIONS}
    for name in sorted(names, key=lambda name: (-len(name), name)):
        first, *words = name.split(".")
        remaining = list(modifiers)
        if first != opcode or Counter(words) - Counter(remaining):
            continue
        if (facts.has_two_words or "async" in words[:1]) and words[:1] != remaining[:1]:
            continue
        for word in words:
            remaining.remove(word)
        ordered = (*words, *remaining)
        if _sequences(ordered) == _sequences(modifiers) and _record(opcode, ordered):
            return None if ordered == modifiers else ordered
    return None


def _sequences(modifiers: tuple[str, ...]) -> list[list[str]]:
    return [[word for word in modifiers if word in kind] for kind in _IN_SEQUENCE]


def operations() -> tuple[OperationRecord, ...]:
    """Every record once."""
    for row in ROWS.values():
        _import_files(row.opcode, [modifier for _, modifier in row.operations])
    return tuple({id(record): record for record in _OPERATIONS.values()}.values())
