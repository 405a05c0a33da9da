"""Every form of the video instructions, against a GPU and against Python's integers.

`gpu_video.txt` has for each form a digest of what an H200 (compute capability 9.0, driver 580,
assembled by that driver) gave for 256 rows of `sample_rows`. The forms are all opcodes, types,
saturations, second operations and destinations of scalar instructions, each with whole words and
with parts; all opcodes, types and modifiers of SIMD instructions, with selections and masks.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from tests.emulator.engine.ops.assembly import digest, emulate, sample_rows
from tests.emulator.engine.ops.bit_reference import evaluate

ROWS: Final = 256
CHUNK: Final = 400  # of forms in a kernel
OF_REFERENCE: Final = 8  # rows
FORMS: Final = {
    **dict.fromkeys(("vadd", "vsub", "vabsdiff", "vmin", "vmax"), 8 * 2 * 10 * 2),
    "vshl": 320, "vshr": 320, "vset": 480, "vmad": 672, "vadd4": 77, "vset2": 96, "vset4": 96,
    **dict.fromkeys(("vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2"), 54),
    **dict.fromkeys(("vsub4", "vavrg4", "vabsdiff4", "vmin4", "vmax4"), 78),
}  # fmt: skip
"""How many forms of each opcode were measured."""


@cache
def recorded() -> dict[str, int]:
    """For each form the GPU's digest."""
    lines = Path(__file__).with_name("gpu_video.txt").read_text().splitlines()
    parts = (line.split(" ", 1) for line in lines)
    return {text: int(number, 16) for number, text in parts}


@pytest.mark.slow
def test_each_form_gives_the_bits_of_a_gpu_and_of_the_reference() -> None:
    forms, rows = tuple(recorded()), sample_rows(ROWS)
    few = rows[:OF_REFERENCE].tolist()
    wrong = []
    for start in range(0, len(forms), CHUNK):
        part = forms[start : start + CHUNK]
        for form, bits in zip(part, emulate(part, rows), strict=True):
            if digest(bits) != recorded()[form]:
                wrong.append(f"{form}: not the GPU's bits")
            expected = np.array([evaluate(form, tuple(row)) for row in few], np.uint64)
            if not np.array_equal(bits[:OF_REFERENCE], expected):
                wrong.append(f"{form}: {bits[:OF_REFERENCE]}, the reference has {expected}")
    assert not wrong, "\n".join(wrong)


def test_each_opcode_has_all_of_its_forms() -> None:
    assert Counter(form.split(".")[0] for form in recorded()) == FORMS
