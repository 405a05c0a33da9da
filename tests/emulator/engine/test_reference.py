"""The reference interpreter's floating point gives the bits that a GPU gave.

The results are those of tests/emulator/engine/ieee/test_gpu.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.isa.instruction_facts import TYPE_BYTES
from tests.emulator.engine.ieee.test_gpu import RESULTS, approximate
from tests.emulator.engine.reference import conversions, floats

# Beyond the interpreter: narrow formats and fused products that know of a tensor's bounds.
_OTHERS = re.compile(r"tf32|e4m3|e5m2|\.oob")


def recorded() -> Iterator[tuple[str, list[NDArray[Any]], NDArray[Any]]]:
    """Instructions, the bits of their operands, and of their results."""
    with np.load(RESULTS) as file:
        arrays = {name: file[name] for name in file.files}
    for name, instructions in arrays.items():
        if not name.startswith("instructions "):
            continue
        _, pool, dtype = name.split(" ")
        operands = [x for key, x in arrays.items() if key.startswith(f"operand {pool} ")]
        yield from zip(
            instructions.tolist(),
            [operands] * len(instructions),
            arrays[f"results {pool} {dtype}"],
            strict=True,
        )


def found(instruction: str, given: list[int]) -> int:
    opcode, *words = instruction.split(".")
    types = [word for word in words if word in TYPE_BYTES]
    if opcode == "cvt":
        bits = conversions.convert(words, types[0], types[1], given)
        # Eight bits come back extended to the 16-bit register.
        return bits | 0xFF00 if types[0] == "s8" and bits & 0x80 else bits
    if opcode == "testp":
        return int(floats.has_property(words[0], types[0], given[0]))
    return floats.compute(opcode, words, types, given)


@pytest.mark.slow
def test_the_reference_gives_the_bits_of_a_gpu() -> None:
    checked, wrong = 0, []
    for instruction, operands, results in recorded():
        if approximate(instruction) or _OTHERS.search(instruction):
            continue
        checked += 1
        for *given, want in zip(*(x.tolist() for x in operands), results.tolist(), strict=True):
            got = found(instruction, given)
            if got != want:
                wrong.append((instruction, [hex(x) for x in given], hex(got), hex(want)))
                break
    assert wrong == []
    assert checked > 650
