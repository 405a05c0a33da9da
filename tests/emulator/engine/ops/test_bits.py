"""Instructions on bits, against Python's integers and against a GPU.

`gpu_bits.txt` has for each instruction a digest of what an H100 (compute capability 9.0, driver
580, assembled by that driver) gave for 256 rows of `sample_rows`. Marked `!` are instructions where
the driver's assembler departs from the PTX ISA, which the emulator follows: constant starts above
31 in `bfe.s32`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.emulator.engine.ops.assembly import Results, Rows, digest, emulate, sample_rows
from tests.emulator.engine.ops.bit_reference import evaluate
from tests.rows import all_rows

ROWS = 256


@cache
def recorded() -> dict[str, tuple[int, bool]]:
    """For each instruction the GPU's digest, and whether it follows the ISA."""
    lines = Path(__file__).with_name("gpu_bits.txt").read_text().splitlines()
    parts = (line.split(" ", 2) for line in lines)
    return {text: (int(number, 16), mark == "=") for number, mark, text in parts}


@cache
def emulated() -> Results:
    return emulate(tuple(recorded()), sample_rows(ROWS))


def expected(instruction: str, rows: Rows) -> np.ndarray:
    return np.array([evaluate(instruction, tuple(row)) for row in rows.tolist()], dtype=np.uint64)


def test_instructions_give_the_bits_of_the_gpu() -> None:
    wrong = [
        text
        for (text, (number, follows)), bits in zip(recorded().items(), emulated(), strict=True)
        if follows and digest(bits) != number
    ]
    assert len(recorded()) > 1700
    assert wrong == []


def test_instructions_agree_with_the_reference_bit_by_bit() -> None:
    rows = sample_rows(ROWS)[:48]
    wrong = [
        text
        for text, bits in zip(recorded(), emulated(), strict=True)
        if not np.array_equal(bits[:48], expected(text, rows))
    ]
    assert wrong == []


@pytest.mark.slow
def test_uniform_operands_give_the_same_as_varying_ones() -> None:
    rows = sample_rows(ROWS)
    for start in (0, 5, 77):
        row = rows[start : start + 1]
        assert np.array_equal(
            emulate(tuple(recorded()), np.repeat(row, 2, axis=0), uniform=True)[:, 1],
            emulated()[:, start],
        )


def test_guarded_instructions_leave_the_threads_that_are_excluded() -> None:
    rows = sample_rows(ROWS)
    texts = tuple(text for text in recorded() if "%q" not in text and "%h" not in text)
    found = emulate(texts, rows, guarded=True)
    taken = (rows[:, 2] & 1).astype(bool)
    kept32 = rows[:, 0].astype(np.uint64)
    kept64 = kept32 | rows[:, 1].astype(np.uint64) << np.uint64(32)
    every = dict(zip(recorded(), emulated(), strict=True))
    for text, bits in zip(texts, found, strict=True):
        old = kept32 if "%d" in text else kept64
        assert np.array_equal(bits, np.where(taken, every[text], old)), text


@pytest.mark.parametrize("table", [-3, 0x1EA, 0x1_0000_00EA])
def test_lop3_reads_the_lowest_byte_of_its_table(table: int) -> None:
    rows = sample_rows(2)
    texts = [f"lop3.b32 %d, %a, %b, %c, {each}" for each in (table, table & 0xFF)]
    given, masked = emulate(texts, rows)
    assert given.tolist() == masked.tolist()


@all_rows
@pytest.mark.parametrize(
    "instruction",
    [
        "shf.l.b32 %d, %a, %b, %c",
        "lop3.and.b32 %d, %a, %b, %c, 1",
        "bmsk.b32 %d, %a, %b",
        "dp2a.s32.s32 %d, %a, %b, %c",
        "max.u16x2.relu %d, %a, %b",
        "vadd.s32.s32.s32.add %d.b0, %a, %b, %c",
        "vadd.s32.s32.s32 %d, %a.b4, %b",
        "vadd.s32.s32.s32 %d, -%a, %b",
        "vadd4.s32.s32.s32.sat.add %d, %a, %b, %c",
        "vadd4.s32.s32.s32 %d.b01, %a, %b, %c",
        "vadd2.s32.s32.s32 %d, %a.b0000, %b, %c",
        "vmad.s32.s32.s32.po %d, -%a, %b, %c",
        "vset4.u32.u32 %d, %a, %b, %c",
        "add.s32 %d, %a.b0, %b",
    ],
)
def test_forms_that_ptx_lacks_are_rejected_with_their_opcode(instruction: str) -> None:
    from ptx.emulate.model.errors import UnsupportedInstruction

    with pytest.raises(UnsupportedInstruction) as refused:
        emulate([instruction], sample_rows(2))
    assert instruction.split()[0] in str(refused.value)


@pytest.mark.parametrize("bits", [32, 64])
def test_population_counts_alike_without_numpy_2(
    bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ptx.emulate.ops import integer

    values = sample_rows(ROWS).reshape(-1).view(f"u{bits // 8}")
    ones = [int(value).bit_count() for value in values]
    with np.errstate(over="ignore"):
        assert integer.population(values).tolist() == ones
        monkeypatch.setattr(integer, "_bitwise_count", None)
        assert integer.population(values).tolist() == ones


def test_every_logic_table_has_an_expression_that_means_it() -> None:
    from ptx.emulate.ops.logic_and_shift import expression

    for table in range(256):
        found = eval(expression(table), {"a": 0xF0, "b": 0xCC, "c": 0xAA})
        assert (-found if expression(table) == "1" else found) & 0xFF == table
