"""Which instructions made the first wrong value of an example."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ptx.emulate.history.value_chain import ChainStep

from .comparison import ReferenceArrays
from .example_run import CompiledCase
from .verdict import Example, SourceLine

Host: TypeAlias = npt.NDArray[np.generic]


def made_by(
    compiled: CompiledCase, example: Example, expected: ReferenceArrays
) -> tuple[SourceLine, ...]:
    """Run an example again; return the lines that made its first wrong value.

    They are the shortest way from the instruction that made it wrong, else from a load or an
    argument, to the store. () if no value is wrong when operations run at their calls.
    """
    steps = compiled.value_chain(example, expected)
    return tuple([_line(compiled, step) for step in reversed(steps)])


def _line(compiled: CompiledCase, step: ChainStep) -> SourceLine:
    where = step.where
    # Line 0 is code of no line, such as a selection in a function of CUDA.
    file, line = (where.source_file, where.source_line) if where.source_line else (None, None)
    what = f"{where.instruction.partition(' ')[0]}: {step.text}"
    return SourceLine(
        f"{what} ({step.cause})" if step.cause else what,
        file,
        line,
        where.ptx_line,
        where.block,
        where.thread,
        compiled.source.line(file, line),
    )
