"""Code that a context of the emulator compiles says which lines it is of, unless refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import Context, LaunchConfig, Module, PtxModuleCache, emulator

SOURCE = """
extern "C" __global__ void last(int* x)
{
    x[0] = threadIdx.x;
}
"""
REFUSED = ptx.CompileOptions(lineinfo=False)
FOR_DEBUGGERS = ptx.CompileOptions(debug=True)


def line_of_the_race(compiled: Callable[[Context], Module]) -> int | None:
    """Where the threads of one launch write one place."""
    with emulator.session(check=("race",), raise_findings=False) as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        kernel = compiled(context).kernel("last")
        kernel.launch(stream, LaunchConfig(1, 64), stream.zeros(1, np.int32))
        stream.synchronize()
        (place, *_) = machine.findings[0].places
        return place.line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compiled", "line"),
    [
        (lambda context: context.compile(SOURCE), 4),
        (lambda context: context.compile_kernel(SOURCE).module, 4),
        (lambda context: PtxModuleCache().get_or_compile(context, "last", SOURCE), 4),
        (lambda context: context.compile(SOURCE, FOR_DEBUGGERS), 4),
        (lambda context: context.compile(SOURCE, REFUSED), None),
        (lambda context: PtxModuleCache(REFUSED).get_or_compile(context, "last", SOURCE), None),
    ],
    ids=["compile", "compile_kernel", "cache", "for debuggers", "refused", "refused by a cache"],
)
def test_findings_have_lines_of_cuda_unless_they_were_rejected(
    compiled: Callable[[Context], Module], line: int | None
) -> None:
    assert line_of_the_race(compiled) == line


@pytest.mark.slow
def test_code_of_a_header_of_cuda_has_the_line_that_calls_it() -> None:
    source = """
        #include <cooperative_groups.h>
        __device__ void put(int* p, int v) { *p = v; }
        extern "C" __global__ void meets(int* x)
        {
            put(x + threadIdx.x, 1);
            cooperative_groups::this_grid().sync();
        }
        extern "C" __global__ void puts(int* x)
        {
            put(x + 1, 2);
        }"""
    with emulator.session() as machine:
        context = cudadrv.cuda_context_for(0)
        module, stream = context.compile(source), context.default_stream
        with pytest.raises(cudadrv.CudaError, match=r"trap at PTX line \d+, kernel\.cu:7\b"):
            module.kernel("meets").launch(stream, LaunchConfig(2, 32), stream.zeros(64, np.int32))
            stream.synchronize()
    with emulator.session(check=("race",), raise_findings=False) as machine:
        context = cudadrv.cuda_context_for(0)
        module, stream = context.compile(source), context.default_stream
        module.kernel("puts").launch(stream, LaunchConfig(1, 32), stream.zeros(64, np.int32))
        module.kernel("puts").launch(stream, LaunchConfig(1, 32), stream.zeros(64, np.int32))
        stream.synchronize()
        assert {place.line for each in machine.findings for place in each.places} == {3}


def test_what_no_context_compiles_has_lines_only_where_they_were_requested() -> None:
    def lines(options: ptx.CompileOptions) -> bool:
        return ".loc" in (ptx.compile(SOURCE, options).ptx or "")

    target = ptx.Target.ptx("compute_80")
    assert not lines(ptx.CompileOptions(target=target))
    assert lines(ptx.CompileOptions(target=target, lineinfo=True))
