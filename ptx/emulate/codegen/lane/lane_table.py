"""The operations that have code for a single thread, by the names of the table of operations."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from functools import cache

from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter
from ptx.emulate.codegen.table import OperationRecord, type_suffix
from ptx.isa.model import Instruction

EmitLane = Callable[[LaneEmitter, Instruction], None]
_LANE: dict[tuple[str, str], EmitLane] = {}
_FAMILIES: list[str] = []  # the modules that have them


def import_lane_code_later(module: str) -> None:
    """Have a module of such operations imported with the first code for a single thread."""
    _FAMILIES.append(module)


@cache
def _import_families() -> None:
    for module in _FAMILIES:
        importlib.import_module(module)


def lane_operation(name: str, types: Iterable[str], emit: EmitLane) -> None:
    """Give an operation code for a single thread.

    Raises:
        ValueError: it has one already.
    """
    for suffix in types:
        if (name, suffix) in _LANE:
            raise ValueError(f"lane code of {name} of type {suffix or '(none)'} is defined twice")
        _LANE[name, suffix] = emit


def find_lane(operation: OperationRecord, instruction: Instruction) -> EmitLane | None:
    """Return the emitter of an instruction's code for a single thread; None if it has none."""
    _import_families()
    return _LANE.get((operation.name, type_suffix(instruction)))


def lane_operations() -> tuple[tuple[str, str], ...]:
    """The name and the type of each."""
    _import_families()
    return tuple(_LANE)
