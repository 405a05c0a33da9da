"""The corpus: CUDA C++ and inline assembly, a source for each group of instructions."""

from __future__ import annotations

from functools import cache

from tests.emulator.differential.case import Source


@cache
def sources() -> tuple[Source, ...]:
    """Every source, by family."""
    from tests.emulator.differential.corpus import (
        async_copy,
        atomic,
        conversion,
        floating,
        flow,
        half,
        integer,
        math_library,
        matrix,
        memory,
        transaction,
        warpgroup,
    )

    return (
        integer.source(),
        floating.source(),
        conversion.source(),
        half.source(),
        memory.source(),
        atomic.source(),
        async_copy.source(),
        matrix.source(),
        *flow.sources(),
        math_library.source(),
        math_library.fast_source(),
        math_library.unfused_source(),
        transaction.source(),
        warpgroup.source(),
    )
