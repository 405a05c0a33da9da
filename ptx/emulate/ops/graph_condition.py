"""Conditions of graphs: the system call `cudaGraphSetConditional`.

CUDA C++ Programming Guide, "Conditional Graph Nodes"; PTX ISA has only the call.
"""

from __future__ import annotations

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import external
from ptx.emulate.model.errors import InvalidCondition
from ptx.emulate.model.geometry import Value
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction, Symbol


def set_condition(fibre: Fibre, handles: Value, values: Value, instruction: Instruction) -> None:
    """Set a condition for each thread in order, so that the last one counts.

    Raises:
        InvalidCondition: a handle is none of a condition.
    """
    numbers = fibre.spread(handles)
    words = np.asarray(fibre.spread(values)).astype(np.uint32)
    for position in range(fibre.n):
        handle = int(numbers[position])
        if not fibre.device.set_condition(handle, int(words[position])):
            raise InvalidCondition(
                f"cudaGraphSetConditional of {handle:#x}, which is no handle of a condition",
                fibre.where(position, instruction),
            )


def _emit(e: Emitter, arguments: tuple[Symbol, ...], results: tuple[Symbol, ...]) -> None:
    handle, value = e.parameter(arguments[0], "u64"), e.parameter(arguments[1], "u32")
    site = e.scope.bind(e.instruction, "instruction")
    e.line(f"{e.helper(set_condition)}(f, {handle}, {value}, {site})")


external("cudaGraphSetConditional", 2, _emit)
