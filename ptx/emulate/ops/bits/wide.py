"""Moves of 128-bit registers, which hold two words of 64 bits. PTX ISA, "mov"."""

from __future__ import annotations

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import operation
from ptx.emulate.model.geometry import Value
from ptx.isa.model import Instruction, Vector


def joined(low: Value, high: Value) -> Value:
    """Two 64-bit words as one value of 16 bytes."""
    words = np.empty((*np.broadcast(low, high).shape, 2), dtype=np.uint64)
    words[..., 0], words[..., 1] = low, high
    return words.view(np.complex128)[..., 0]


def word(value: Value, which: int) -> Value:
    """The lower (0) or upper (1) 64 bits."""
    return (
        np.asarray(value)
        .reshape(-1)
        .view(np.uint64)
        .reshape(-1, 2)[:, which][slice(None) if value.ndim else 0]
    )


def _move(e: Emitter, i: Instruction) -> None:
    target, source = i.operands
    if isinstance(source, Vector):
        if len(source.items) != 2:
            raise e.refuse("a 128-bit value is made of two words")
        low, high = e.values(source, "b64")
        e.assign(target, "b128", f"{e.helper(joined)}({low}, {high})")
    elif isinstance(target, Vector):
        value = e.temporary(e.value(source, "b128"))
        parts = [f"{e.helper(word)}({value}, {which})" for which in (0, 1)]
        e.assign_all(target, "b64", parts)
    else:
        e.assign(target, "b128", e.value(source, "b128"))


operation("mov", ("b128",), 2, _move, section="mov")
