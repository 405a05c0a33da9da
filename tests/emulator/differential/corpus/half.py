"""f16, bf16 and their pairs: instructions, and the headers' intrinsics."""

from __future__ import annotations

from itertools import product

from tests.emulator.differential.case import Bound, Source
from tests.emulator.differential.lanes import Lanes, four, lanes, predicates, three, two, uniform

_KINDS = (("f16", "u2"), ("f16x2", "u4"), ("bf16", "u2"), ("bf16x2", "u4"))


def _instructions() -> list[Lanes]:
    found = []
    for kind, out in _KINDS:
        brain = kind[0] == "b"
        modes = ("",) if brain else ("", ".ftz", ".sat", ".ftz.sat")
        rows = three(*(f"{op}{m}.{kind}" for op, m in product(("add", "sub", "mul"), modes)))
        rows += three(*(f"{op}.rn.{kind}" for op in ("add", "sub", "mul")))
        found.append(lanes(f"half_arithmetic_{kind}", "half", f"{kind} {kind}", out, rows))
        modes = (".relu",) if brain else (".relu", ".ftz", ".sat", ".ftz.relu")
        rows = four(f"fma.rn.{kind}", *(f"fma.rn{m}.{kind}" for m in modes))
        found.append(lanes(f"half_fma_{kind}", "half", f"{kind} {kind} {kind}", out, rows))
        flags = ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs")
        rows = three(*(f"{op}{m}.{kind}" for op, m in product(("min", "max"), flags)))
        rows += two(f"abs.{kind}", f"neg.{kind}")
        if not brain:
            rows += three(f"min.ftz.{kind}", f"max.ftz.NaN.{kind}")
        found.append(lanes(f"half_minmax_{kind}", "half", f"{kind} {kind}", out, rows))
    return found


def _comparisons() -> list[Lanes]:
    words = (
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "equ",
        "neu",
        "ltu",
        "leu",
        "gtu",
        "geu",
        "num",
        "nan",
    )
    found = []
    for kind in ("f16", "bf16"):
        rows = predicates(*(f"setp.{word}.{kind}" for word in words))
        if kind == "f16":
            rows += predicates("setp.lt.ftz.f16", "setp.equ.ftz.f16")
        found.append(lanes(f"half_compare_{kind}", "half", f"{kind} {kind}", "u4", rows))
        rows = [
            f"{{ .reg .pred p, q; setp.{word}.{kind}x2 p|q, %1, %2; .reg .b32 s;"
            " selp.u32 %0, 1, 0, p; selp.u32 s, 2, 0, q; or.b32 %0, %0, s; }"
            for word in ("eq", "ltu", "ge", "neu", "nan")
        ]
        rows += three(*(f"set.{word}.{kind}x2.{kind}x2" for word in ("lt", "geu", "num")))
        found.append(lanes(f"half_compare_{kind}x2", "half", f"{kind}x2 {kind}x2", "u4", rows))
    return found


def _approximate() -> list[Lanes]:
    found = []
    for kind, out in _KINDS:
        brain = kind[0] == "b"
        # ex2: f16 2^-9.9 relative, bf16 2^-7; tanh: 2^-10.987 absolute for f16, 2^-8 for bf16;
        # two units cover them at every size.
        rows = two(f"ex2.approx{'.ftz' if brain else ''}.{kind}", f"tanh.approx.{kind}")
        bound = Bound(ulp=2, source="PTX ISA, ex2 and tanh of half precision")
        found.append(lanes(f"half_approx_{kind}", "half", kind, out, rows, count=512, bound=bound))
    return found


def _intrinsics() -> list[Lanes]:
    found = []
    for short, make, kind in (
        ("half", "__half_as_ushort", "f16"),
        ("bfloat16", "__bfloat16_as_ushort", "bf16"),
    ):
        x, y, z = (f"__ushort_as_{short}({v})" for v in "xyz")
        values = [f"__hadd({x}, {y})", f"__hsub({x}, {y})", f"__hmul({x}, {y})",
                  f"__hfma({x}, {y}, {z})", f"__hadd_sat({x}, {y})", f"__hmax({x}, {y})",
                  f"__hmin_nan({x}, {y})", f"__habs({x})", f"__hneg({x})", f"hfloor({x})",
                  f"hceil({x})", f"htrunc({x})", f"hrint({x})", f"__hfma_relu({x}, {y}, {z})",
                  f"__float2{short}((float)x)",
                  f"__float2{short}_rn((float){x} * (float){y})"]  # fmt: skip
        rows = [f"{make}({value})" for value in values]
        rows += [f"(unsigned short)__h{c}({x}, {y})" for c in ("eq", "lt", "geu", "ne", "leu")]
        whole = f"__{short}2int_rz" if kind == "f16" else "__bfloat162int_rz"
        rows += [f"(unsigned short){function}({x})" for function in (whole, "__hisnan")]
        found.append(lanes(f"half_intrinsics_{kind}", "half", f"{kind} {kind} {kind}", "u2", rows))
        values = [f"hsqrt({x})", f"hrcp({x})", f"hrsqrt({x})", f"__hdiv({x}, {y})"]
        rows = [f"{make}({value})" for value in values]
        bound = Bound(ulp=1, source="CUDA Math API: round to nearest of an approximation")
        found.append(lanes(f"half_roots_{kind}", "half", f"{kind} {kind}", "u2", rows, bound=bound))
        values = [
            f"hexp({x})",
            f"hexp2({x})",
            f"hlog({x})",
            f"hlog2({x})",
            f"hlog10({x})",
            f"hsin({x})",
        ]
        values += [f"hcos({x})", f"htanh({x})", f"hexp10({x})"]
        rows = [f"{make}({value})" for value in values]
        bound = Bound(ulp=2, source="CUDA Math API, half precision: maximum error 2 ulp")
        found.append(lanes(f"half_math_{kind}", "half", kind, "u2", rows, count=512, bound=bound))
    return found


def _eight_bits() -> list[Lanes]:
    rows = []
    for interpretation, saturate in product(
        ("__NV_E4M3", "__NV_E5M2"), ("__NV_SATFINITE", "__NV_NOSAT")
    ):
        rows.append(f"__nv_cvt_float_to_fp8(x, {saturate}, {interpretation})")
        rows.append(f"__nv_cvt_double_to_fp8((double)x * 1.0000001, {saturate}, {interpretation})")
    rows += ["(unsigned short)__nv_fp8_e4m3(x).__x", "(unsigned short)__nv_fp8_e5m2(x).__x"]
    found = [lanes("fp8_from_float", "fp8", "f32", "u2", rows)]
    rows = [
        "(float)as_e4m3(x)",
        "(float)as_e5m2(x)",
        "__half2float(__half(as_e4m3(x)))",
        "(float)(int)as_e4m3(x)",
    ]
    found.append(lanes("fp8_to_float", "fp8", "u8", "f4", rows, count=512))
    return found


_HEAD = """#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
__device__ __nv_fp8_e4m3 as_e4m3(unsigned char x) { __nv_fp8_e4m3 v; v.__x = x; return v; }
__device__ __nv_fp8_e5m2 as_e5m2(unsigned char x) { __nv_fp8_e5m2 v; v.__x = x; return v; }
"""


def source() -> Source:
    kernels = [*_instructions(), *_comparisons(), *_approximate(), *_intrinsics(), *_eight_bits()]
    alike = ("half_arithmetic_f16", "half_fma_bf16x2", "half_compare_f16")
    kernels += [uniform(kernel) for kernel in kernels if kernel.name in alike]
    return Source(
        "half",
        _HEAD + "".join(kernel.text() for kernel in kernels),
        tuple(kernel.case() for kernel in kernels),
    )
