"""NVRTC's warnings name the code that had cudadrv compile a source."""

from __future__ import annotations

import pytest

from cudadrv import PtxModuleCache, cuda_context_for, emulator
from ptx import CompileWarning

# A process shows the warnings of a source once: no other test compiles this one.
SOURCE = 'extern "C" __global__ void k(unsigned n, int* named) { if (n >= 0) named[n] = 1; }'


def test_a_context_and_a_module_cache_warn_the_code_that_calls_them() -> None:
    with emulator.session():
        context = cuda_context_for(0)
        with pytest.warns(CompileWarning) as by_context:
            context.compile(SOURCE)
        with pytest.warns(CompileWarning) as by_cache:
            PtxModuleCache().get_or_compile(context, "fill", SOURCE + " ")
    assert [each.filename for each in (*by_context, *by_cache)] == [__file__] * 2
