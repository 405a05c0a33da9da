"""The check "divide": integer divisions by zero whose result is used.

A cell of the matrix is a kernel: an opcode, a type, and a shape of the code around it. The oracle
is a table of the shapes, with the thread that divides by zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Final

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.emulator.timeline.schedule import OrderName
from cudadrv.errors import CheckError

_ZERO: Final = 37
"""The thread whose divisor is zero."""
_KINDS: Final = ("u16", "s16", "u32", "s32", "u64", "s64")
_OPCODES: Final = ("div", "rem")
_NOTHING: Final = "nothing"
_INTENDED: Final = "a selection"

_IS_ZERO: Final = "setp.eq.{k} %p, %b, 0;"
# By shape: its instructions between loads of %a and %b and the store of %d, and what is reported.
SHAPES: Final[Mapping[str, tuple[str, int | str]]] = {
    "varying": ("{op} %d, %a, %b;", _ZERO),
    "uniform": ("mov.b{n} %b, 0; {op} %d, %a, %b;", 0),
    "literal": ("{op} %d, %a, 0;", 0),
    "constant": ("{op} %d, %a, 7;", _NOTHING),
    "not zero": ("or.b{n} %b, %b, 1; {op} %d, %a, %b;", _NOTHING),
    "guarded": (_IS_ZERO + "@!%p {op} %d, %a, %b;", _NOTHING),
    "guarded wrongly": (_IS_ZERO + "@%p {op} %d, %a, %b;", _ZERO),
    "branch": (_IS_ZERO + "@%p bra DONE; {op} %d, %a, %b; DONE:", _NOTHING),
    "wrong branch": (_IS_ZERO + "@!%p bra DONE; {op} %d, %a, %b; DONE:", _ZERO),
    "selection": (_IS_ZERO + "{op} %e, %a, %b; selp.b{n} %d, 0, %e, %p;", _INTENDED),
    "selection of a copy": (
        _IS_ZERO + "{op} %e, %a, %b; mov.b{n} %f, %e; selp.b{n} %d, %a, %f, %p;", _INTENDED,
    ),
    "guarded copy": (_IS_ZERO + "{op} %e, %a, %b; @!%p mov.b{n} %d, %e;", _INTENDED),
    "sum before a selection": (
        _IS_ZERO + "{op} %e, %a, %b; add.{k} %e, %e, 1; selp.b{n} %d, 0, %e, %p;", _ZERO,
    ),
    "branch around the use": (
        _IS_ZERO + "{op} %e, %a, %b; @%p bra DONE; add.{k} %d, %e, 1; DONE:", _ZERO,
    ),
    "not read": ("{op} %e, %a, %b;", _NOTHING),
    "read at another time": ("{op} %d, %a, %b; mov.b{n} %d, 1;", _NOTHING),
    "loop": (
        "mov.u32 %i, 0; NEXT: {op} %e, %a, %b; xor.b{n} %d, %d, %e; add.u32 %i, %i, 1;"
        " setp.lt.u32 %p, %i, 90; @%p bra NEXT;", _ZERO,
    ),
}  # fmt: skip


def kernel(name: str, opcode: str, kind: str, body: str) -> str:
    bits = int(kind[1:])
    text = body.format(op=f"{opcode}.{kind}", k=kind, n=bits)
    return f"""
.visible .entry {name}(.param .u64 a, .param .u64 b) {{
    .reg .b{bits} %a, %b, %d, %e, %f; .reg .b32 %i; .reg .b64 %x, %y, %z; .reg .pred %p;
    ld.param.u64 %x, [a]; ld.param.u64 %y, [b]; mov.u32 %i, %tid.x;
    mul.wide.u32 %z, %i, {bits // 8}; add.u64 %x, %x, %z; add.u64 %y, %y, %z;
    ld.global.b{bits} %a, [%x]; ld.global.b{bits} %b, [%y]; mov.b{bits} %d, 0;
    {text}
    st.global.b{bits} [%x], %d; ret;
}}"""


def launched(text: str, kernels: Mapping[str, str], threads: int = 64) -> emulator.Emulator:
    """Launch kernels, each for a type, on divisors of which number `_ZERO` is zero."""
    with emulator.session(check="divide", raise_findings=False) as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        head = ".version 8.0\n.target sm_80\n.address_size 64\n"
        module = context.load_module(ptx.Image.from_ptx(head + text))
        for name, kind in kernels.items():
            dtype = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{int(kind[1:]) // 8}")
            dividends = np.arange(64, dtype=dtype)
            divisors = np.where(np.arange(64) == (_ZERO if threads > 1 else 0), 0, 3).astype(dtype)
            a, b = stream.to_device(dividends), stream.to_device(divisors)
            module.kernel(name).launch(stream, cudadrv.LaunchConfig(1, threads), a, b)
        stream.synchronize()
    return machine


def reported(machine: emulator.Emulator, name: str) -> int | str:
    """Return the thread that a finding names, or the words of the table."""
    findings = [finding for finding in machine.findings if finding.kernel == name]
    if not findings:
        return _NOTHING
    (finding,) = findings
    assert finding.check == "divide"
    (place,) = finding.places
    assert place.where is not None
    assert place.where.thread is not None
    return _INTENDED if finding.benign else place.where.thread[0]


def test_a_division_by_zero_is_reported_if_its_result_is_used() -> None:
    cells = {f"k{number}": cell for number, cell in enumerate(product(SHAPES, _OPCODES, _KINDS))}
    text = "\n".join(
        kernel(name, opcode, kind, SHAPES[shape][0])
        for name, (shape, opcode, kind) in cells.items()
    )
    machine = launched(text, {name: kind for name, (_, _, kind) in cells.items()})
    wrong = [
        f"{cell}: {reported(machine, name)}, expected {SHAPES[cell[0]][1]}"
        for name, cell in cells.items()
        if reported(machine, name) != SHAPES[cell[0]][1]
    ]
    assert not wrong, "\n".join(wrong)


def test_one_thread_that_repeats_a_division_is_reported_once() -> None:
    text = "\n".join(kernel(op, op, "s32", SHAPES["loop"][0]) for op in _OPCODES)
    machine = launched(text, dict.fromkeys(_OPCODES, "s32"), threads=1)
    assert [reported(machine, op) for op in _OPCODES] == [0, 0]


FUNCTION: Final = """
extern "C" __device__ __noinline__ int quotient(int a, int b) { return a / b; }
typedef int (*Operation)(int, int);
__device__ Operation operation = quotient;
extern "C" __global__ void direct(int* x) { x[threadIdx.x] = quotient(7, x[threadIdx.x]); }
extern "C" __global__ void indirect(int* x) { x[threadIdx.x] = operation(7, x[threadIdx.x]); }
"""


@pytest.mark.parametrize("name", ["direct", "indirect"])
def test_a_division_of_a_called_function_is_reported(name: str) -> None:
    with emulator.session(check="divide", raise_findings=False) as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        x = stream.to_device(np.arange(-_ZERO, 64 - _ZERO, dtype=np.int32))
        kernel = context.compile(FUNCTION, name="function.cu").kernel(name)
        kernel.launch(stream, cudadrv.LaunchConfig(1, 64), x)
        stream.synchronize()
    (finding,) = machine.findings
    (place,) = finding.places
    assert place.where is not None
    assert (finding.kernel, place.line, place.where.thread) == (name, 2, (_ZERO, 0, 0))


MEAN: Final = """
extern "C" __global__ void mean(int* sums, const int* counts, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        sums[i] = sums[i] / counts[i];
}
extern "C" __global__ void checked(int* sums, const int* counts, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        sums[i] = counts[i] ? sums[i] / counts[i] : 0;
}
"""


def mean(name: str) -> None:
    context = cudadrv.cuda_context_for(0)
    stream = context.default_stream
    function = context.compile(MEAN, name="mean.cu").kernel(name)
    sums = stream.to_device(np.arange(100, dtype=np.int32))
    counts = stream.to_device(np.arange(-60, 40, dtype=np.int32))
    function.launch(stream, cudadrv.LaunchConfig(4, 32), sums, counts, 100)
    assert stream.to_host(sums)[60] == (-1 if name == "mean" else 0)


@pytest.mark.parametrize("order", ["immediate", "late", "random"])
def test_a_finding_names_the_line_of_cuda_and_the_thread(order: OrderName) -> None:
    with pytest.raises(CheckError) as caught, emulator.session(check="divide", order=order):
        mean("mean")
    (finding,) = caught.value.findings
    lines = str(finding).split("\n")
    assert lines[0] == "divide: kernel mean, an integer division by zero"
    assert lines[1].startswith(
        "  division by block (1, 0, 0), thread (28, 0, 0), at mean.cu:6 (PTX line "
    )
    assert lines[2].startswith("  its result is unspecified: ")
    assert len(lines) == 3


def test_a_test_of_the_divisor_reports_nothing() -> None:
    with emulator.session(check="divide") as machine:
        mean("checked")
    assert machine.findings == ()


def test_without_the_check_nothing_is_reported() -> None:
    with emulator.session(check=("race", "init", "sync", "bounds")) as machine:
        mean("mean")
    assert machine.findings == ()
