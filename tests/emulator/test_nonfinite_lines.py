"""The line that the check "nan" names, where the compiler merges or moves what makes a value.

A short test has PTX for each form. A slow one has functions of CUDA for several targets, since PTX
for compute_100 has registers without a type, which integers and floats share.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray

import cudadrv
import ptx
from cudadrv import LaunchConfig, emulator

HEAD: Final = """.version 8.7
.target sm_90
.address_size 64
.file 1 "lines.cu"
.visible .entry lines(.param .u64 at) {
    .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .pred %p<3>; .reg .b64 %w, %d<3>; .reg .f64 %g;
    .loc 1 1 0
    ld.param.u64 %w, [at]; mov.u32 %r8, %tid.x; mad.wide.u32 %w, %r8, 4, %w;
"""
SUM: Final = """ld.global.f32 %f1, [%w];
    .loc 1 2 0
    cvt.rzi.s32.f32 %r1, %f1; shl.b32 %r2, %r1, 23; add.s32 %r3, %r2, 1065353216;
    {move} ex2.approx.f32 %f3, %f1;
    .loc 1 3 0
    fma.rn.f32 %f1, %f3, {factor}, %f1; st.global.f32 [%w], %f1;"""
FORMS: Final[Mapping[str, tuple[str, list[tuple[float | int, str]]]]] = {
    "a sum with an exponential": (
        SUM.format(move="mov.b32 %f2, %r3;", factor="%f2"), [(100.0, "2 infinity")],
    ),
    "a sum with a product": (
        SUM.format(move="", factor="0f7F000000"), [(100.0, "3 infinity")],
    ),
    "a logarithm to which a constant is added": (
        """ld.global.f32 %f1, [%w];
        .loc 1 2 0
        lg2.approx.f32 %f2, %f1; setp.eq.f32 %p1, %f1, 0f00000000;
        .loc 1 3 0
        add.f32 %f3, %f2, 0f3F800000; selp.f32 %f4, 0fFF800000, %f3, %p1;
        st.global.f32 [%w], %f4;""",
        [(0.0, "2 infinity"), (1.0, "")],
    ),
    "an exponent of an integer": (
        """ld.global.u32 %r1, [%w];
        .loc 1 2 0
        shl.b32 %r2, %r1, 23; add.s32 %r3, %r2, 1065353216; mov.b32 %f1, %r3;
        mul.f32 %f2, %f1, 0f3F000000; st.global.f32 [%w], %f2;""",
        [(128, "2 infinity of %r1 = 128"), (127, ""), (129, "")],
    ),
    "an exponent of a double": (
        """ld.global.u32 %r1, [%w];
        .loc 1 2 0
        shl.b32 %r2, %r1, 20; mov.u32 %r7, 0; mov.b64 %g, {%r7, %r2}; add.f64 %g, %g, %g;
        st.global.f64 [%w], %g;""",
        [(2047, "2 infinity of %r1 = 2047"), (2045, "")],
    ),
    "an integer of memory": (
        """ld.global.u32 %r1, [%w];
        .loc 1 2 0
        shl.b32 %r2, %r1, 16; mov.b32 %f1, %r2; st.global.f32 [%w], %f1;""",
        [(0x7F80, ""), (0x7FC0, "")],
    ),
    "bits of an integer and a float without a type": (
        """ld.global.b32 %r1, [%w];
        .loc 1 2 0
        cvt.rzi.s32.f32 %r2, %r1; shl.b32 %r3, %r2, 23; add.s32 %r4, %r3, %r1;
        mul.f32 %r5, %r4, 0f3F000000; st.global.b32 [%w], %r5;""",
        [(126.0, ""), (122.0, "2 NaN of %r1 = 122.0"), (np.inf, "")],
    ),
    "a NaN without a type that is selected": (
        """ld.global.b32 %r1, [%w]; mov.b32 %r3, 0f7FFFFFFF;
        .loc 1 2 0
        setp.lt.f32 %p1, %r1, 0f00000000; @%p1 bra NEXT; mov.b32 %r3, %r1; NEXT:
        st.global.b32 [%w], %r3; mul.f32 %r5, %r3, 0f3F000000; st.global.b32 [%w], %r5;""",
        [(-1.0, "1 NaN"), (1.0, "")],
    ),
    "inline PTX whose lines are counted": (
        """.loc 1 2 0
        // begin inline asm
        ld.global.f32 %f1, [%w];
        .loc 1 3 0
        rcp.rn.f32 %f1, %f1;
        // end inline asm
        st.global.f32 [%w], %f1;""",
        [(0.0, "2 infinity of %f1 = 0.0"), (1.0, "")],
    ),
}  # fmt: skip


def run_once(kernel: cudadrv.Kernel, stream: cudadrv.Stream, value: NDArray[np.generic]) -> None:
    """Launch a kernel with one thread."""
    kernel.launch(stream, LaunchConfig(1, 1), stream.to_device(value))
    stream.synchronize()


@pytest.mark.parametrize("form", FORMS)
def test_a_value_has_the_line_of_the_function_that_makes_it(form: str) -> None:
    body, cases = FORMS[form]
    with emulator.session(check="nan", raise_findings=False) as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        for number, expected in cases:
            kernel = context.load_module(ptx.Image.from_ptx(f"{HEAD}{body} ret; }}")).kernel(
                "lines"
            )
            kind = np.float32 if isinstance(number, float) else np.uint32
            before = len(machine.findings)
            run_once(kernel, stream, np.array([number, 0], kind))
            new = [each for each in machine.findings[before:] if isinstance(each, emulator.Finding)]
            line, _, operand = expected.partition(" of ")
            names = [f"{each.places[0].line} {each.kind}" for each in new]
            assert names == [line] * bool(line), (number, new)
            assert all(operand in str(each) for each in new)


CUDA: Final = {
    "s = x + expf(x * 100); // add\n": 1.0,
    "s = -2 * logf(x - 1); // multiply\n": 1.0,
    "s = __int_as_float(__float_as_int(x) + ((int)x << 23)); // bits\n": 122.0,
    "s = erfcinvf(x - 1) * 2; // root\n": 1.0,
    "s = powf(x - 1, -x) + 1; // power\n": 1.0,
    "s = __half2float(hrcp(__float2half(x * 1e-6f))); // half\n": 1.0,
    "s = y0f(-x) + 1; // Bessel\n": 1.0,
    "s = log10(x - 1) + 1; // double\n": 1.0,
    "s = remainder((double)x, x - 1.0); // remainder\n": 1.0,
}


@pytest.mark.slow
@pytest.mark.parametrize("target", [75, 90, 100])
def test_functions_of_cuda_have_their_line_for_each_target(target: int) -> None:
    options = ptx.CompileOptions(target=ptx.Target.parse(f"compute_{target}"))
    for line, number in CUDA.items():
        first, _, rest = line.partition("(")
        source = f"""#include <cuda_fp16.h>
extern "C" __global__ void function(float* at) {{
    float x = at[0], s;
    {first}({rest}
    s = s + x;
    at[1] = s * x;
}}"""
        with emulator.session(
            check="nan", raise_findings=False, compute_capability=divmod(target, 10)
        ) as machine:
            context = cudadrv.cuda_context_for(0)
            kernel = context.compile(source, name="f.cu", options=options).kernel("function")
            run_once(kernel, context.default_stream, np.array([number, 0], np.float32))
        assert 4 in [each.places[0].line for each in machine.findings], (line, machine.findings)


CALLS: Final = """.version 8.7
.target sm_90
.address_size 64
.file 1 "lines.cu"
.func (.param .b32 result) inverse(.param .b32 of) {
    .reg .f32 %f<3>;
    ld.param.f32 %f1, [of]; rcp.rn.f32 %f2, %f1; st.param.f32 [result], %f2; ret;
}
.func (.param .b32 result) is_infinite(.param .b32 of) {
    .reg .f32 %f<3>; .reg .pred %p; .reg .b32 %r;
    ld.param.f32 %f1, [of]; abs.f32 %f2, %f1; setp.eq.f32 %p, %f2, 0f7F800000;
    selp.u32 %r, 1, 0, %p; st.param.b32 [result], %r; ret;
}
.visible .entry lines(.param .u64 at) {
    .reg .b32 %r<3>; .reg .f32 %f<5>; .reg .pred %p; .reg .b64 %w; .param .b32 a, b;
    .loc 1 1 0
    ld.param.u64 %w, [at]; mov.u32 %r1, %tid.x; mad.wide.u32 %w, %r1, 4, %w;
    ld.global.f32 %f1, [%w];
    .loc 1 2 0
    st.param.f32 [a], %f1; call (b), inverse, (a); ld.param.f32 %f2, [b];
    .loc 1 3 0
    sub.f32 %f3, %f1, 0f3F800000; st.param.f32 [a], %f3; call (b), inverse, (a);
    ld.param.f32 %f3, [b];
    .loc 1 4 0
    st.param.f32 [a], %f2; call (b), is_infinite, (a); ld.param.b32 %r2, [b];
    setp.ne.u32 %p, %r2, 0; selp.f32 %f2, 0f00000000, %f2, %p;
    .loc 1 5 0
    sub.f32 %f4, %f1, 0f40000000; st.param.f32 [a], %f4; call (b), inverse, (a);
    ld.param.f32 %f4, [b]; add.f32 %f3, %f3, %f4; add.f32 %f2, %f2, %f3;
    st.global.f32 [%w], %f2; ret;
}"""


def test_a_function_without_lines_has_that_of_its_call_and_may_test_a_value() -> None:
    with emulator.session(check="nan", raise_findings=False) as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        kernel = context.load_module(ptx.Image.from_ptx(CALLS)).kernel("lines")
        numbers = stream.to_device(np.array([0, 1, 2, 3], np.float32))
        kernel.launch(stream, LaunchConfig(1, 4), numbers)
        assert stream.to_host(numbers).tolist()[:3] == [-1.5, np.inf, np.inf]
    found = [each for each in machine.findings if isinstance(each, emulator.Finding)]
    threads = [each.places[0].where.thread for each in found if each.places[0].where is not None]
    assert [each.places[0].line for each in found] == [3, 5]
    assert threads == [(1, 0, 0), (2, 0, 0)]
    assert all("rcp.rn.f32" in str(each) for each in found)
