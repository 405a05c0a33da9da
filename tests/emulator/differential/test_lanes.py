"""The corpus gives the same bits thread by thread as with all threads together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate.threads.limits import Limits
from tests.emulator.differential.case import Source
from tests.emulator.differential.corpus import sources
from tests.emulator.differential.execution import machine, run
from tests.emulator.differential.recording import Recording, path_of
from tests.emulator.engine.few_threads import ALWAYS, NEVER, drawn
from tests.short_cases import few

# What other sources have is of whole warps, which NumPy does in any form.
SOURCES = (
    "special", "integer", "floating", "conversion", "half", "memory", "atomic", "barrier", "warp",
    "control", "cooperative", "fast_math", "unfused", "transaction", "async_copy",
)  # fmt: skip
FORMS = {"always": ALWAYS, "drawn": drawn(17)}


@pytest.mark.slow
@pytest.mark.parametrize("name", few(SOURCES, 3))
def test_bits_do_not_depend_on_the_form_of_registers(name: str) -> None:
    source = next(each for each in sources() if each.name == name)
    wanted = _results(source, NEVER)
    found = {form: _results(source, limits) for form, limits in FORMS.items()}
    wrong = [
        (case.name, form)
        for form, results in found.items()
        for case, want, got in zip(source.cases, wanted, results, strict=True)
        if not all(map(np.array_equal, want, got))
    ]
    assert wrong == []


def _results(source: Source, limits: Limits) -> list[list[NDArray[Any]]]:
    recording = Recording.load(path_of(source))
    with (
        machine(limits) as context,
        context.new_stream() as stream,
        context.load_module(recording.ptx) as module,
    ):
        return [run(module, stream, case) for case in source.cases]
