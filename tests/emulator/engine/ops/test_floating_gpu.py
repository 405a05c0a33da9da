"""The bits that a GPU gave for 736 instructions, through the whole emulator.

The instructions and results are those of `tests/emulator/engine/ieee/test_gpu.py`; here they are
read from PTX text and executed by generated code: on lanes that differ, on uniform values, under a
guard, and in both of NVRTC's dialects.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.emulator.engine.ieee.test_gpu import TOLERANCES
from tests.emulator.engine.ops.lanes import Bits, Case, Dialect, run_lanes, run_uniform
from tests.rows import all_rows

RESULTS = Path(__file__).parents[1] / "ieee" / "gpu_results.npz"
REGISTERS = {"f16": "16", "bf16": "16", "f16x2": "32", "bf16x2": "32", "tf32": "32",
             "e4m3x2": "16", "e5m2x2": "16", "f32": "f32", "f64": "f64", "f32x2": "64"}  # fmt: skip
Group = tuple[list[Case], list[Bits], Bits]


def register(kind: str) -> str:
    """The register that holds a type: 8 bits are held in 16."""
    return REGISTERS.get(kind) or str(max(16, int(kind[1:])))


def case_of(instruction: str, count: int) -> Case:
    types = [word for word in instruction.split(".") if word in REGISTERS or word[1:].isdigit()]
    if instruction.startswith("testp"):
        return Case(instruction, "pred", (register(types[-1]),))
    target = types[0] if instruction.startswith("cvt") else types[-1]
    return Case(instruction, register(target), (register(types[-1]),) * count)


def operand_count(instruction: str) -> int:
    opcode, *_, kind = instruction.split(".")
    if opcode == "cvt":
        return 2 if "x2." in instruction and kind == "f32" else 1
    if opcode in ("fma", "mad"):
        return 3
    unary = ("abs", "neg", "rcp", "sqrt", "rsqrt", "sin", "cos", "ex2", "lg2", "tanh", "testp")
    return 1 if opcode in unary else 2


def approximate(instruction: str) -> bool:
    return ".approx" in instruction or ".full" in instruction


def groups(wanted: Callable[[str], bool]) -> dict[str, Group]:
    found: dict[str, Group] = {}
    with np.load(RESULTS) as file:
        arrays = {name: file[name] for name in file.files}
    for name, instructions in arrays.items():
        if not name.startswith("instructions "):
            continue
        _, pool, dtype = name.split(" ")
        chosen = [k for k, text in enumerate(instructions.tolist()) if wanted(text)]
        operands = [
            arrays[f"operand {pool} {i}"] for i in range(3) if f"operand {pool} {i}" in arrays
        ]
        cases = [case_of(str(instructions[k]), operand_count(str(instructions[k]))) for k in chosen]
        found[f"{pool} {dtype}"] = (cases, operands, arrays[f"results {pool} {dtype}"][chosen])
    return found


GROUPS = groups(lambda instruction: not approximate(instruction))


def differences(
    cases: list[Case], operands: list[Bits], got: list[Bits], want: Bits
) -> list[tuple[str, list[str], str, str]]:
    wrong = []
    for case, found, bits in zip(cases, got, want, strict=True):
        lanes = np.flatnonzero(found.astype(bits.dtype) != bits)[:1]
        wrong += [
            (case.instruction, [hex(x[i]) for x in operands], hex(found[i]), hex(bits[i]))
            for i in lanes
        ]
    return wrong


@all_rows
@pytest.mark.parametrize("dialect", ["typed", "bits"])
@pytest.mark.parametrize("group", GROUPS)
def test_lanes_have_the_bits_of_the_gpu(group: str, dialect: Dialect) -> None:
    cases, operands, want = GROUPS[group]
    assert differences(cases, operands, run_lanes(cases, operands, dialect=dialect), want) == []


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("group", GROUPS)
def test_a_guard_keeps_the_lanes_that_it_excludes(group: str) -> None:
    cases, operands, want = GROUPS[group]
    odd = np.where(np.arange(want.shape[1]) % 2 == 1, want, 0).astype(want.dtype)
    got = run_lanes(cases, operands, odd_only=True)
    assert differences(cases, operands, got, odd) == []


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("group", GROUPS)
def test_uniform_values_have_the_bits_of_the_gpu(group: str) -> None:
    cases, operands, want = GROUPS[group]
    lanes = list(range(0, want.shape[1], 11))
    found = run_uniform(cases, operands, lanes, "typed")
    got = [np.array([row[k] for row in found], np.uint64) for k in range(len(cases))]
    chosen = [x[lanes] for x in operands]
    assert differences(cases, chosen, got, want[:, lanes]) == []


def test_every_recorded_instruction_is_executed() -> None:
    assert sum(len(cases) for cases, _, _ in GROUPS.values()) > 700


def test_packed_f32_has_the_bits_of_single_f32() -> None:
    cases, operands, want = GROUPS["32_32_32 uint32"]
    twice = [np.stack([x, x[::-1]], axis=1).reshape(-1).copy().view(np.uint64) for x in operands]
    packed, rows = [], []
    for case, bits in zip(cases, want, strict=True):
        if ".sat" in case.instruction or not case.instruction.endswith(".f32"):
            continue
        packed.append(Case(case.instruction + "x2", "64", ("64",) * 3))
        rows.append(np.stack([bits, bits[::-1]], axis=1).reshape(-1).copy().view(np.uint64))
    assert len(packed) == 8
    assert differences(packed, twice, run_lanes(packed, twice), np.array(rows)) == []


def test_approximate_instructions_stay_near_the_gpu() -> None:
    floats = {"f32": np.float32, "f64": np.float64}
    checked = 0
    for cases, operands, want in groups(approximate).values():
        if not cases:
            continue
        for case, found, bits in zip(cases, run_lanes(cases, operands), want, strict=True):
            kind = case.instruction.split(".")[-1]
            if kind not in floats:
                continue  # packed and single halves: tests/emulator/engine/ieee/test_approximate.py
            relative, absolute = TOLERANCES[case.instruction.split(".")[0]]
            if kind == "f64":
                relative = 2.0**-19
            x, y = (each.view(floats[kind]).astype(np.float64) for each in (found, bits))
            number = np.isfinite(y)
            assert (x[~number & ~np.isnan(y)] == y[~number & ~np.isnan(y)]).all(), case
            assert (np.isnan(x) == np.isnan(y)).all(), case
            close = np.abs(x[number] - y[number]) <= relative * np.abs(y[number]) + absolute
            assert close.all(), case
            checked += 1
    assert checked >= 20
