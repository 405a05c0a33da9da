"""The corpus gives the same bits thread by thread as with all threads together."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.emulate.exec.lane.choice import always, chosen, drawn, never
from tests.differential.corpus import sources
from tests.differential.execution import machine, run
from tests.differential.recording import Recording, path_of
from tests.short_cases import few

# What other sources have is of whole warps, which NumPy does in any form.
SOURCES = (
    "integer", "floating", "conversion", "half", "memory", "atomic", "warp", "barrier", "control",
    "special", "cooperative", "fast_math", "unfused", "transaction", "async_copy",
)  # fmt: skip
CHOICES = {"always": always(), "drawn": drawn(17)}


@pytest.mark.parametrize("name", few(SOURCES, 3))
def test_bits_do_not_depend_on_the_form_of_registers(name: str) -> None:
    source = next(each for each in sources() if each.name == name)
    recording = Recording.load(path_of(source))
    wrong = []
    with (
        machine() as context,
        context.new_stream() as stream,
        context.load_module(recording.ptx) as module,
    ):
        for case in source.cases:
            with chosen(never()):
                want = run(module, stream, case)
            for form, choice in CHOICES.items():
                with chosen(choice):
                    got = run(module, stream, case)
                if not all(map(np.array_equal, want, got)):
                    wrong.append((case.name, form))
    assert wrong == []
