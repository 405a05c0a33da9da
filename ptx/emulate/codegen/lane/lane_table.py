"""The operations that have code for a single thread, by the names of the table of operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter
from ptx.emulate.codegen.table import OperationRecord, import_operations, type_suffix
from ptx.isa.model import Instruction
from ptx.isa.opcodes.opcode_row import OpcodeRowError
from ptx.isa.opcodes.opcode_table import ROWS

EmitLane = Callable[[LaneEmitter, Instruction], None]
_LANE: dict[tuple[str, str], EmitLane] = {}


@cache
def _import_lane_code(file: str) -> None:
    """Import a file of `ptx.emulate.ops` that adds such code.

    Raises:
        OpcodeRowError: it has none for an opcode whose row names it.
    """
    import_operations(file)
    present = {name.partition(".")[0] for name, _ in _LANE}
    for row in ROWS.values():
        if row.lane == file and row.opcode not in present:
            raise OpcodeRowError(row.opcode, f"ptx/emulate/ops/{file}.py has no lane code for it")


def lane_operation(name: str, types: Iterable[str], emit: EmitLane) -> None:
    """Give an operation code for a single thread.

    Raises:
        ValueError: it has one already.
        OpcodeRowError: the row of its opcode names no file of lane code.
    """
    opcode = name.partition(".")[0]
    if opcode not in ROWS or not ROWS[opcode].lane:
        raise OpcodeRowError(opcode, f"its row names no file of lane code for {name}")
    for suffix in types:
        if (name, suffix) in _LANE:
            raise ValueError(f"lane code of {name} of type {suffix or '(none)'} is defined twice")
        _LANE[name, suffix] = emit


def find_lane(operation: OperationRecord, instruction: Instruction) -> EmitLane | None:
    """Return the emitter of an instruction's code for a single thread; None if it has none."""
    file = ROWS[instruction.opcode].lane
    if not file:
        return None
    _import_lane_code(file)
    return _LANE.get((operation.name, type_suffix(instruction)))


def lane_operations() -> tuple[tuple[str, str], ...]:
    """The name and the type of each."""
    for file in {row.lane for row in ROWS.values() if row.lane}:
        _import_lane_code(file)
    return tuple(_LANE)
