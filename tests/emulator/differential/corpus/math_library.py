"""CUDA's math functions, within the errors that the CUDA C++ Programming Guide states.

The guide's appendix "Mathematical Functions" gives each function's largest error in units in the
last place, and absolute errors for the Bessel functions; for the intrinsics, mostly absolute ones.
"""

from __future__ import annotations

import ptx
from tests.emulator.differential.case import Bound, Source
from tests.emulator.differential.inputs import Kind, Uniform
from tests.emulator.differential.lanes import Lanes, lanes

_GUIDE = "CUDA C++ Programming Guide, Mathematical Functions"
_COUNT = 256

# Name: lowest and highest argument that is not special, errors of float and of double in ulp.
_FUNCTIONS: dict[str, tuple[float, float, float, float]] = {
    "exp": (-105.0, 90.0, 1, 1), "exp2": (-150.0, 129.0, 2, 1), "exp10": (-46.0, 39.0, 2, 1),
    "expm1": (-18.0, 89.0, 1, 1), "log": (0.0, 40.0, 1, 1), "log2": (0.0, 40.0, 1, 1),
    "log10": (0.0, 40.0, 2, 1), "log1p": (-1.0, 40.0, 1, 1), "sin": (-1e5, 1e5, 2, 2),
    "cos": (-1e5, 1e5, 2, 2), "tan": (-1e3, 1e3, 4, 2), "asin": (-1.0, 1.0, 2, 2),
    "acos": (-1.0, 1.0, 2, 2), "atan": (-30.0, 30.0, 2, 2), "sinh": (-90.0, 90.0, 3, 2),
    "cosh": (-90.0, 90.0, 2, 1), "tanh": (-10.0, 10.0, 2, 1), "asinh": (-1e4, 1e4, 3, 3),
    "acosh": (1.0, 1e4, 4, 3), "atanh": (-1.0, 1.0, 3, 2), "erf": (-5.0, 5.0, 2, 2),
    "erfc": (-5.0, 11.0, 4, 5), "erfinv": (-1.0, 1.0, 2, 5), "erfcinv": (0.0, 2.0, 4, 6),
    "erfcx": (-5.0, 30.0, 4, 4), "normcdf": (-12.0, 9.0, 5, 5), "normcdfinv": (0.0, 1.0, 5, 8),
    "lgamma": (0.1, 90.0, 6, 4), "tgamma": (-8.0, 34.0, 5, 10), "cbrt": (-1e6, 1e6, 1, 1),
    "rcbrt": (-1e6, 1e6, 1, 1), "rsqrt": (0.0, 1e6, 2, 1), "sinpi": (-40.0, 40.0, 1, 2),
    "cospi": (-40.0, 40.0, 1, 2), "cyl_bessel_i0": (-80.0, 80.0, 6, 6),
    "cyl_bessel_i1": (-80.0, 80.0, 6, 6),
}  # fmt: skip
# Likewise of two arguments, with the second one's range.
_PAIRS: dict[str, tuple[float, float, float, float, float, float]] = {
    "pow": (0.0, 20.0, -20.0, 20.0, 4, 2),
    "atan2": (-30.0, 30.0, -30.0, 30.0, 3, 2),
    "hypot": (-1e3, 1e3, -1e3, 1e3, 3, 2),
    "rhypot": (-1e3, 1e3, -1e3, 1e3, 2, 1),
}
# Bessel functions: ulp up to 8, an absolute error beyond, for float and double.
_BESSEL = ("j0", "j1", "y0", "y1")


def _functions() -> list[Lanes]:
    found = []
    for name, (low, high, ulp32, ulp64) in _FUNCTIONS.items():
        found += _both(name, ((low, high),), ulp32, ulp64)
    for name, (low, high, low2, high2, ulp32, ulp64) in _PAIRS.items():
        found += _both(name, ((low, high), (low2, high2)), ulp32, ulp64)
    for name in _BESSEL:
        span = (0.0 if name[0] == "y" else -40.0, 40.0)
        found += _both(name, (span,), 9, 7, 2.2e-6, 5e-12)
    return found


def _both(
    name: str,
    ranges: tuple[tuple[float, float], ...],
    ulp32: float,
    ulp64: float,
    absolute32: float = 0.0,
    absolute64: float = 0.0,
) -> list[Lanes]:
    arguments = ", ".join("xy"[: len(ranges)])
    made = []
    for suffix, dtype, ulp, absolute in (
        ("f", "f4", ulp32, absolute32),
        ("", "f8", ulp64, absolute64),
    ):
        kinds: tuple[Kind, ...] = tuple(Uniform(dtype, low, high) for low, high in ranges)
        bound = Bound(ulp=ulp, absolute=absolute, source=_GUIDE)
        rows = [f"{name}{suffix}({arguments})"]
        made.append(
            lanes(f"math_{name}{suffix}", "math", kinds, dtype, rows, count=_COUNT, bound=bound)
        )
    return made


def _several_results() -> list[Lanes]:
    x32 = (Uniform("f4", -100.0, 100.0),)
    x64 = (Uniform("f8", -100.0, 100.0),)
    pair32 = (*x32, Uniform("f4", -5.0, 5.0))
    rows = ["first_f(x)", "second_f(x)"]
    found = [
        lanes(
            "math_sincosf", "math", x32, "f4", rows, count=_COUNT, bound=Bound(ulp=2, source=_GUIDE)
        )
    ]
    rows = ["first(x)", "second(x)"]
    found.append(
        lanes(
            "math_sincos", "math", x64, "f8", rows, count=_COUNT, bound=Bound(ulp=2, source=_GUIDE)
        )
    )
    rows = ["norm3df(x, y, 2.0f)", "norm4df(x, y, 1.0f, 2.0f)"]
    found.append(
        lanes(
            "math_norm", "math", pair32, "f4", rows, count=_COUNT, bound=Bound(ulp=3, source=_GUIDE)
        )
    )
    rows = ["rnorm3df(x, y, 2.0f)", "rnorm4df(x, y, 1.0f, 2.0f)"]
    found.append(
        lanes(
            "math_rnorm",
            "math",
            pair32,
            "f4",
            rows,
            count=_COUNT,
            bound=Bound(ulp=2, source=_GUIDE),
        )
    )
    rows = ["split_f(x)", "parts_f(x)", "quotient_f(x, y)"]
    found.append(lanes("math_partsf", "math", pair32, "f4", rows, count=_COUNT))
    rows = ["split(x)", "parts(x)", "quotient(x, 3.25)"]
    found.append(lanes("math_parts", "math", x64, "f8", rows, count=_COUNT))
    return found


_HEAD = """
__device__ float first_f(float x) { float s, c; sincosf(x, &s, &c); return s; }
__device__ float second_f(float x) { float s, c; sincosf(x, &s, &c); return c; }
__device__ double first(double x) { double s, c; sincos(x, &s, &c); return s; }
__device__ double second(double x) { double s, c; sincos(x, &s, &c); return c; }
__device__ float split_f(float x) { int e; float m = frexpf(x, &e); return m * 4 + e; }
__device__ double split(double x) { int e; double m = frexp(x, &e); return m * 4 + e; }
__device__ float parts_f(float x) { float w, p = modff(x, &w); return p * 0.5f + w; }
__device__ double parts(double x) { double w, p = modf(x, &w); return p * 0.5 + w; }
__device__ float quotient_f(float x, float y) {
  int q; float r = remquof(x, y, &q); return r + (q & 7);
}
__device__ double quotient(double x, double y) {
  int q; double r = remquo(x, y, &q); return r + (q & 7);
}
"""


def source() -> Source:
    """Every function by its own."""
    kernels = [*_functions(), *_several_results()]
    return Source(
        "math_library",
        _HEAD + "".join(kernel.text() for kernel in kernels),
        tuple(kernel.case() for kernel in kernels),
    )


def _fast() -> list[Lanes]:
    angle = (Uniform("f4", -3.14, 3.14, edges=0),)
    moderate = (Uniform("f4", -10.0, 10.0),)
    around_one = (Uniform("f4", 0.5, 2.0, edges=0),)
    positive = (Uniform("f4", 2.0, 1e6, edges=0),)
    pair = (Uniform("f4", 0.5, 9.0, edges=0), Uniform("f4", -6.0, 6.0, edges=0))
    stated: list[tuple[str, str, tuple[Kind, ...], Bound]] = [
        ("sin", "__sinf(x)", angle, Bound(absolute=2.0**-21.41)),
        ("cos", "__cosf(x)", angle, Bound(absolute=2.0**-21.19)),
        ("exp", "__expf(x)", moderate, Bound(ulp=2 + 11)),
        ("exp10", "__exp10f(x)", moderate, Bound(ulp=2 + 29)),
        ("log_near", "__logf(x)", around_one, Bound(absolute=2.0**-21.41)),
        ("log", "__logf(x)", positive, Bound(ulp=3)),
        ("log2_near", "__log2f(x)", around_one, Bound(absolute=2.0**-22)),
        ("log2", "__log2f(x)", positive, Bound(ulp=2)),
        ("log10_near", "__log10f(x)", around_one, Bound(absolute=2.0**-24)),
        ("log10", "__log10f(x)", positive, Bound(ulp=3)),
        # exp2(y log2 x): the exponent's error of 2 ulp at up to 32 becomes a relative one.
        ("pow", "__powf(x, y)", pair, Bound(relative=2.0**-17)),
        ("divide", "__fdividef(x, y)", pair, Bound(ulp=2)),
        # sin / cos: three operations, away from the poles.
        ("tan", "__tanf(x)", (Uniform("f4", -1.2, 1.2, edges=0),),
         Bound(relative=2.0**-18, absolute=2.0**-20)),
        ("tanh", "__tanhf(x)", moderate, Bound(relative=2.0**-11)),
        ("rsqrt", "rsqrtf(x)", positive, Bound(ulp=2)),
        ("quotient", "x / y", pair, Bound(ulp=2)),
        ("root", "sqrtf(x)", positive, Bound(ulp=3)),
        ("norm", "x * rsqrtf(x * x + y * y)", pair, Bound(ulp=6)),
        ("sigmoid", "1.0f / (1.0f + expf(-x))", moderate, Bound(relative=2.0**-18)),
    ]  # fmt: skip
    return [
        lanes(f"fast_{name}", "math", kinds, "f4", [row], count=_COUNT, bound=bound)
        for name, row, kinds, bound in stated
    ]


def fast_source() -> Source:
    """Under -use_fast_math: intrinsics, and operations that are flushed and approximate."""
    exact = lanes(
        "fast_expressions", "f32", "f32 f32 f32", "f4",
        ["x + y", "x * y - z", "fminf(x, y)", "x < y ? z : x", "fmaxf(x, y) * z", "x * y + z",
         "floorf(x) + ceilf(y)", "fabsf(x)", "(float)(int)x", "-x * y", "(float)(double)x",
         "__saturatef(x * y)"],
    )  # fmt: skip
    kernels = [exact, *_fast()]
    return Source(
        "fast_math",
        "".join(kernel.text() for kernel in kernels),
        tuple(kernel.case() for kernel in kernels),
        ptx.CompileOptions(use_fast_math=True),
    )


def unfused_source() -> Source:
    """Without contraction, with approximate division and root, and with -lineinfo."""
    kernels = [
        lanes(
            "unfused_expressions_f32",
            "f32",
            "f32 f32 f32",
            "f4",
            ["x * y + z", "x * y - z * x", "z - x * y", "(x + y) * (x - y)", "x * x * x + y"],
        ),
        lanes(
            "unfused_expressions_f64",
            "f64",
            "f64 f64 f64",
            "f8",
            ["x * y + z", "x * y - z * x", "z - x * y", "(x + y) * (x - y)", "x * x * x + y"],
        ),
        lanes(
            "loose_quotient",
            "f32",
            (Uniform("f4", 0.5, 1e9), Uniform("f4", 0.5, 1e9, 0)),
            "f4",
            ["x / y", "1.0f / y"],
            count=_COUNT,
            bound=Bound(ulp=2, source=_GUIDE),
        ),
        lanes(
            "loose_root",
            "f32",
            (Uniform("f4", 0.0, 1e9),),
            "f4",
            ["sqrtf(x)"],
            count=_COUNT,
            bound=Bound(ulp=3, source=_GUIDE),
        ),
    ]
    return Source(
        "unfused",
        "".join(kernel.text() for kernel in kernels),
        tuple(kernel.case() for kernel in kernels),
        ptx.CompileOptions(fmad=False, prec_div=False, prec_sqrt=False, lineinfo=True),
    )
