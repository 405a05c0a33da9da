"""The bits that a GPU gave, instruction by instruction.

`gpu_results.npz` holds what an H100 and an H200 (compute capability 9.0, driver 580.159, PTX ISA
8.7) gave for 736 instructions, each alone in a kernel, on special values, ties, subnormals and
random bits: `operand POOL i`, and per pool and result type `instructions …` and `results …`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.emulator.engine.ieee.instructions import run
from tests.emulator.engine.ieee.samples import Values

RESULTS = Path(__file__).with_name("gpu_results.npz")

# Largest differences from the GPU's own approximations: relative, and absolute beside them.
TOLERANCES = {
    "rcp": (2.0**-22, 0.0),
    "sqrt": (2.0**-22, 0.0),
    "rsqrt": (2.0**-22, 0.0),
    "div": (2.0**-21, 0.0),
    "ex2": (2.0**-20, 2.0**-140),
    "lg2": (2.0**-22, 2.0**-21),
    "sin": (0.0, 2.0**-20.5),
    "cos": (0.0, 2.0**-20.5),
    "tanh": (2.0**-10, 0.0),
}


@pytest.fixture(scope="module")
def recorded() -> dict[str, tuple[list[Values], Values]]:
    with np.load(RESULTS) as file:
        arrays = {name: file[name] for name in file.files}
    cases = {}
    for name, instructions in arrays.items():
        if name.startswith("instructions "):
            _, pool, dtype = name.split(" ")
            operands = [
                arrays[f"operand {pool} {i}"] for i in range(3) if f"operand {pool} {i}" in arrays
            ]
            for instruction, bits in zip(
                instructions.tolist(), arrays[f"results {pool} {dtype}"], strict=True
            ):
                cases[f"{instruction} {pool}"] = (operands, bits)
    return cases


def approximate(instruction: str) -> bool:
    return ".approx" in instruction or ".full" in instruction


def test_exact_instructions_give_the_bits_of_the_gpu(
    recorded: dict[str, tuple[list[Values], Values]],
) -> None:
    checked, wrong = 0, []
    for name, (operands, bits) in recorded.items():
        if approximate(name):
            continue
        got = run(name.split(" ")[0], operands)
        got = (
            got.view(bits.dtype) if got.dtype.itemsize == bits.itemsize else got.astype(bits.dtype)
        )
        checked += 1
        wrong += [
            (name, [hex(x[i]) for x in operands], hex(got[i]), hex(bits[i]))
            for i in np.flatnonzero(got != bits)[:1]
        ]
    assert wrong == []
    assert checked > 700


def test_approximate_instructions_stay_near_the_gpu_and_share_its_special_values(
    recorded: dict[str, tuple[list[Values], Values]],
) -> None:
    for name, (operands, bits) in recorded.items():
        instruction = name.split(" ")[0]
        opcode, *_, kind = instruction.split(".")
        if not approximate(name) or kind not in ("f32", "f64"):
            continue
        got = run(instruction, operands).astype(np.float64)
        want = bits.view("f4" if kind == "f32" else "f8").astype(np.float64)
        relative, absolute = TOLERANCES[opcode]
        if kind == "f64":
            relative = 2.0**-19
        assert (np.isnan(got) == np.isnan(want)).all(), name
        infinite = np.isinf(want)
        assert (got[infinite] == want[infinite]).all(), name
        finite = np.isfinite(want)
        x, y = got[finite], want[finite]
        assert (np.abs(x - y) <= relative * np.abs(y) + absolute).all(), name
