"""f32 and f64: arithmetic in every mode, comparison, classes, and the approximate instructions."""

from __future__ import annotations

from itertools import product

from tests.emulator.differential.case import Bound, Source
from tests.emulator.differential.inputs import Uniform
from tests.emulator.differential.lanes import Lanes, four, lanes, predicates, three, two, uniform

_ROUNDINGS = ("rn", "rz", "rm", "rp")
_ISA = "PTX ISA"


def _arithmetic() -> list[Lanes]:
    found = []
    for kind, out in (("f32", "f4"), ("f64", "f8")):
        forms = [(r, s) for r in _ROUNDINGS for s in ("", ".sat", ".ftz", ".ftz.sat")]
        if kind == "f64":
            forms = [(r, "") for r in _ROUNDINGS]
        plain = [form for form in forms if "sat" not in form[1]]
        pair, triple = f"{kind} {kind}", f"{kind} {kind} {kind}"
        for opcode in ("add", "sub", "mul"):
            rows = three(*(f"{opcode}.{r}{s}.{kind}" for r, s in forms))
            found.append(lanes(f"{opcode}_{kind}", kind, pair, out, rows))
        rows = four(*(f"fma.{r}{s}.{kind}" for r, s in forms))
        found.append(lanes(f"fma_{kind}", kind, triple, out, rows))
        rows = three(*(f"div.{r}{s}.{kind}" for r, s in plain))
        found.append(lanes(f"div_{kind}", kind, pair, out, rows))
        for opcode in ("rcp", "sqrt"):
            rows = two(*(f"{opcode}.{r}{s}.{kind}" for r, s in plain))
            found.append(lanes(f"{opcode}_{kind}", kind, kind, out, rows))
        rows = three(f"min.{kind}", f"max.{kind}", f"copysign.{kind}")
        rows += two(f"abs.{kind}", f"neg.{kind}")
        if kind == "f32":
            rows += three(*(f"{op}{s}.f32" for op in ("min", "max")
                            for s in (".ftz", ".NaN", ".xorsign.abs", ".ftz.NaN",
                                      ".NaN.xorsign.abs")))  # fmt: skip
            rows += two("abs.ftz.f32", "neg.ftz.f32")
        found.append(lanes(f"minmax_{kind}", kind, pair, out, rows))
    # The addend cancels the product, up to its rounding.
    for kind, out in (("f32", "f4"), ("f64", "f8")):
        letter = out[1]
        width = int(letter) * 8
        rows = [
            f"{{ .reg .{kind} p; mul.rn.{kind} p, %1, %2; neg.{kind} p, p;"
            f" fma.{r}.{kind} %0, %1, %2, p; }}"
            for r in _ROUNDINGS
        ]
        rows += [
            f"{{ .reg .{kind} p; .reg .b{width} b; mul.rz.{kind} p, %1, %2; mov.b{width} b, p;"
            f" add.u{width} b, b, {step}; mov.b{width} p, b; neg.{kind} p, p;"
            f" fma.{r}.{kind} %0, %1, %2, p; }}"
            for r, step in product(("rn", "rm"), (1, 2))
        ]
        found.append(lanes(f"fma_cancel_{kind}", kind, f"{kind} {kind}", out, rows))
    return found


def _comparisons() -> list[Lanes]:
    found = []
    for kind, out in (("f32", "f4"), ("f64", "f8")):
        words = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu",
                 "num", "nan")  # fmt: skip
        rows = predicates(*(f"setp.{word}.{kind}" for word in words))
        if kind == "f32":
            rows += predicates(*(f"setp.{word}.ftz.f32" for word in words[:8]))
        rows += three(f"set.lt.u32.{kind}", f"set.geu.s32.{kind}")
        found.append(lanes(f"compare_{kind}", "compare", f"{kind} {kind}", "u4", rows))
        rows = three(*(f"set.{word}.f32.{kind}" for word in ("eq", "neu", "gt", "num")))
        found.append(lanes(f"set_{kind}", "compare", f"{kind} {kind}", "f4", rows))
        classes = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
        rows = [
            f"{{ .reg .pred p; testp.{word}.{kind} p, %1; selp.u32 %0, 1, 0, p; }}"
            for word in classes
        ]
        found.append(lanes(f"testp_{kind}", "compare", kind, "u4", rows))
        choose = "slct.f32.f32 %0, %1, %2, %3"
        if kind == "f64":
            choose = "{ .reg .f32 c; cvt.rn.f32.f64 c, %3; slct.f64.f32 %0, %1, %2, c; }"
        rows = [
            f"{{ .reg .pred p; setp.ltu.{kind} p, %1, %2; selp.{kind} %0, %1, %3, p; }}",
            choose,
        ]
        rows.append(f"{{ .reg .pred p; setp.gt.{kind} p, %1, %2; @p mul.rn.{kind} %0, %2, %3; }}")
        found.append(lanes(f"select_{kind}", "select", f"{kind} {kind} {kind}", out, rows))
    return found


def _approximate() -> list[Lanes]:
    # Where the bound holds over the whole range, the inputs are of all kinds.
    everywhere = {
        "rcp": Bound(ulp=1, source=_ISA),
        "rsqrt": Bound(relative=2.0**-22.9, source=_ISA),
        "sqrt": Bound(ulp=1, source=_ISA),
        # Relative to the result; one unit where that is subnormal.
        "ex2": Bound(relative=2.0**-22, absolute=2.0**-149, source=_ISA),
        "lg2": Bound(relative=2.0**-22, absolute=2.0**-22, source=_ISA),
    }
    found = []
    for opcode, bound in everywhere.items():
        rows = two(f"{opcode}.approx.f32", f"{opcode}.approx.ftz.f32")
        kind: tuple[str | Uniform, ...] = ("f32",)
        if opcode == "ex2":
            kind = (Uniform("f4", -150.0, 130.0),)
        found.append(lanes(f"approx_{opcode}", "f32", kind, "f4", rows, count=512, bound=bound))
    for opcode in ("sin", "cos"):
        rows = two(f"{opcode}.approx.f32", f"{opcode}.approx.ftz.f32")
        angles = Uniform("f4", -3.14159, 3.14159, edges=0)
        bound = Bound(absolute=2.0**-20.5, source=_ISA)
        found.append(
            lanes(f"approx_{opcode}", "f32", (angles,), "f4", rows, count=512, bound=bound)
        )
    bound = Bound(relative=2.0**-11, source=_ISA)
    found.append(
        lanes(
            "approx_tanh",
            "f32",
            (Uniform("f4", -9.0, 9.0),),
            "f4",
            ["tanh.approx.f32 %0, %1"],
            count=512,
            bound=bound,
        )
    )
    pair = (Uniform("f4", -1e6, 1e6), Uniform("f4", -1e3, 1e3))
    rows = three("div.approx.f32", "div.approx.ftz.f32", "div.full.f32", "div.full.ftz.f32")
    bound = Bound(ulp=2, source=_ISA)
    found.append(lanes("approx_div", "f32", pair, "f4", rows, count=512, bound=bound))
    for opcode, rows, bound in (
        ("rcp", two("rcp.approx.ftz.f64"), Bound(relative=2.0**-19, source=_ISA)),
        ("rsqrt", two("rsqrt.approx.f64", "rsqrt.approx.ftz.f64"), Bound(relative=2.0**-20)),
    ):
        found.append(
            lanes(f"approx_{opcode}_f64", "f64", "f64", "f8", rows, count=512, bound=bound)
        )
    return found


def _intrinsics() -> list[Lanes]:
    rows = [f"__{op}_{r}({args})" for r in ("rn", "rz", "ru", "rd")
            for op, args in (("fadd", "x, y"), ("fsub", "x, y"), ("fmul", "x, y"),
                             ("fmaf", "x, y, z"), ("fdiv", "x, y"), ("frcp", "x"),
                             ("fsqrt", "x"))]  # fmt: skip
    found = [lanes("intrinsics_f32", "f32", "f32 f32 f32", "f4", rows)]
    rows = [f"__{op}_{r}({args})" for r in ("rn", "rz", "ru", "rd")
            for op, args in (("dadd", "x, y"), ("dsub", "x, y"), ("dmul", "x, y"),
                             ("fma", "x, y, z"), ("ddiv", "x, y"), ("drcp", "x"),
                             ("dsqrt", "x"))]  # fmt: skip
    found.append(lanes("intrinsics_f64", "f64", "f64 f64 f64", "f8", rows))
    # A product is subtracted by mul.f32 and sub.f32, which the driver's compiler may fuse (PTX ISA,
    # "mul": without a rounding modifier); it does.
    difference = "-x * y + z"
    rows = ["x + y * z", "x / y", "sqrtf(x)", "(x + y) - x", "fabsf(x) < y ? z : x",
            "fminf(x, y) + fmaxf(y, z)", "__saturatef(x)", "x > y ? x : y", "(x < y) + (x != z)",
            difference, "1.0f / x", "(float)(x == x)"]  # fmt: skip
    found.append(
        lanes("expressions_f32", "f32", "f32 f32 f32", "f4", rows, open_rows=(difference,))
    )
    rows = ["x + y * z", "x / y", "sqrt(x)", "(x + y) - x", "fabs(x) < y ? z : x",
            "fmin(x, y) + fmax(y, z)", "x > y ? x : y", "(double)(float)x + y",
            "1.0 / x"]  # fmt: skip
    found.append(lanes("expressions_f64", "f64", "f64 f64 f64", "f8", rows))
    rows = ["floorf(x)", "ceilf(x)", "truncf(x)", "rintf(x)", "roundf(x)", "nearbyintf(x)",
            "fmodf(x, y)", "remainderf(x, y)", "fdimf(x, y)", "nextafterf(x, y)", "logbf(x)",
            "(float)ilogbf(x)", "ldexpf(x, 7)", "scalbnf(y, -40)", "copysignf(x, y)",
            "(float)(isnan(x) + 2 * isinf(x) + 4 * isfinite(x) + 8 * signbit(x))"]  # fmt: skip
    found.append(lanes("whole_f32", "math", "f32 f32", "f4", rows))
    rows = [row.replace("f(", "(").replace("(float)", "(double)") for row in rows]
    rows = [row.replace("isin(", "isinf(") for row in rows]
    found.append(lanes("whole_f64", "math", "f64 f64", "f8", rows))
    return found


def source() -> Source:
    exact = [*_arithmetic(), *_comparisons()]
    alike = ("add_f32", "fma_f32", "fma_f64", "div_f64", "minmax_f32", "sqrt_f32", "compare_f64")
    kernels = [*exact, *(uniform(kernel) for kernel in exact if kernel.name in alike)]
    kernels += [*_approximate(), *_intrinsics()]
    return Source(
        "floating",
        "".join(kernel.text() for kernel in kernels),
        tuple(kernel.case() for kernel in kernels),
    )
