"""Conversions between all types, in every rounding mode."""

from __future__ import annotations

from itertools import product

from tests.emulator.differential.case import Source
from tests.emulator.differential.lanes import Lanes, lanes, three, two, uniform

_FLOATS = {"f16": ("f16", "u2"), "f32": ("f32", "f4"), "f64": ("f64", "f8")}
_INTEGERS = tuple(f"{sign}{bits}" for bits in (8, 16, 32, 64) for sign in "us")
_TO_INTEGER = ("rni", "rzi", "rmi", "rpi")
_ROUNDINGS = ("rn", "rz", "rm", "rp")


def _width(name: str) -> int:
    return int(name[1:])


def _holder(name: str) -> str:
    """The type of the result that holds an integer: bytes are held in 32 bits."""
    return f"u{max(_width(name), 16) // 8}" if name[1:] != "8" else "u4"


def _float_to_integer() -> list[Lanes]:
    found = []
    for source, (kind, _) in _FLOATS.items():
        ftz = ("", ".ftz") if source == "f32" else ("",)
        for bits in (8, 16, 32, 64):
            rows = two(
                *(
                    f"cvt.{mode}{s}.{sign}{bits}.{source}"
                    for sign, mode, s in product("us", _TO_INTEGER, ftz)
                )
            )
            out = _holder(f"u{bits}")
            found.append(lanes(f"cvt_i{bits}_{source}", "conversion", kind, out, rows))
    return found


def _integer_to_float() -> list[Lanes]:
    found = []
    for target, (_, out) in _FLOATS.items():
        for bits in (8, 16, 32, 64):
            kind = f"u{max(bits, 16)}"
            rows = two(
                *(
                    f"cvt.{mode}{s}.{target}.{sign}{bits}"
                    for sign, mode, s in product("us", _ROUNDINGS, ("", ".sat"))
                )
            )
            found.append(lanes(f"cvt_{target}_i{bits}", "conversion", kind, out, rows))
    return found


def _float_to_float() -> list[Lanes]:
    narrow = [f".{r}{s}" for r, s in product(_ROUNDINGS, ("", ".sat"))]
    whole = [f".{r}{s}" for r, s in product(_TO_INTEGER, ("", ".sat"))]
    forms: dict[tuple[str, str], list[str]] = {
        ("f32", "f64"): [f".{r}{s}" for r, s in product(_ROUNDINGS, ("", ".sat", ".ftz"))],
        ("f16", "f64"): narrow, ("f16", "f32"): [*narrow, ".rn.ftz"],
        ("f64", "f32"): ["", ".sat", ".ftz"], ("f64", "f16"): ["", ".sat"],
        ("f32", "f16"): ["", ".sat", ".ftz"], ("f16", "f16"): whole, ("f64", "f64"): whole,
        ("f32", "f32"): [*whole, *(f".{r}.ftz" for r in _TO_INTEGER), ".ftz", ".sat"],
    }  # fmt: skip
    found = []
    for (target, source), modes in forms.items():
        rows = two(*(f"cvt{mode}.{target}.{source}" for mode in modes))
        kind, out = _FLOATS[source][0], _FLOATS[target][1]
        found.append(lanes(f"cvt_{target}_{source}", "conversion", kind, out, rows))
    return found


def _integer_to_integer() -> list[Lanes]:
    found = []
    for bits in (16, 32, 64):
        sources = ("s16", "u16", "s8", "u8") if bits == 16 else (f"s{bits}", f"u{bits}", "u8", "s8")
        for out_bits in (16, 32, 64):
            rows = []
            for target, source in product((f"s{out_bits}", f"u{out_bits}"), sources):
                rows.append(f"cvt.{target}.{source} %0, %1")
                rows.append(f"cvt.sat.{target}.{source} %0, %1")
            if out_bits == 32:
                rows += [
                    f"cvt{sat}.{sign}8.{source} %0, %1"
                    for sat, sign, source in product(("", ".sat"), "us", sources[:2])
                ]
            name = f"cvt_i{out_bits}_i{bits}"
            rows = [row for row in rows if not _needless(row)]
            found.append(lanes(name, "conversion", f"u{bits}", f"u{out_bits // 8}", rows))
    return found


def _needless(row: str) -> bool:
    """Whether a conversion saturates nothing, which ptxas refuses."""
    *modes, target, source = row.split()[0].split(".")
    if "sat" not in modes:
        return False
    wider = _width(target) - _width(source)
    if target[0] == source[0]:
        return wider >= 0
    return target[0] == "s" and wider > 0


def _brain_and_eight_bits() -> list[Lanes]:
    rows = two(*(f"cvt.{r}{relu}.bf16.f32" for r, relu in product(("rn", "rz"), ("", ".relu"))))
    found = [lanes("cvt_bf16_f32", "conversion", "f32", "u2", rows)]
    rows = three(
        *(
            f"cvt.{r}{relu}.{t}x2.f32"
            for t, r, relu in product(("f16", "bf16"), ("rn", "rz"), ("", ".relu"))
        )
    )
    found.append(lanes("cvt_pairs_f32", "conversion", "f32 f32", "u4", rows))
    rows = two("cvt.f32.bf16")
    found.append(lanes("cvt_f32_bf16", "conversion", "bf16", "f4", rows))
    rows = two(*(f"cvt.{mode}.{t}.bf16" for t, mode in product(("s32", "u32"), _TO_INTEGER)))
    found.append(lanes("cvt_i32_bf16", "conversion", "bf16", "u4", rows))
    rows = two(*(f"cvt.{mode}.bf16.{t}" for t, mode in product(("s32", "u32"), _ROUNDINGS)))
    found.append(lanes("cvt_bf16_i32", "conversion", "u32", "u2", rows))
    rows = two("cvt.rna.tf32.f32", "cvt.rn.tf32.f32", "cvt.rz.tf32.f32", "cvt.rn.relu.tf32.f32")
    found.append(lanes("cvt_tf32_f32", "conversion", "f32", "u4", rows))
    types, relus = ("e4m3x2", "e5m2x2"), ("", ".relu")
    rows = three(*(f"cvt.rn.satfinite{r}.{t}.f32" for t, r in product(types, relus)))
    found.append(lanes("cvt_fp8_f32", "fp8", "f32 f32", "u2", rows))
    rows = two(*(f"cvt.rn.satfinite{r}.{t}.f16x2" for t, r in product(types, relus)))
    found.append(lanes("cvt_fp8_f16", "fp8", "f16x2", "u2", rows))
    rows = two(*(f"cvt.rn{r}.f16x2.{t}" for t, r in product(types, relus)))
    found.append(lanes("cvt_f16_fp8", "fp8", "u16", "u4", rows))
    rows = [f"cvt.pack.sat.{t}.s32 %0, %1, %2" for t in ("u16", "s16")]
    rows += [f"cvt.pack.sat.{t}.s32.b32 %0, %1, %2, %3" for t in ("u8", "s8")]
    found.append(lanes("cvt_pack", "conversion", "u32 u32 u32", "u4", rows))
    return found


def _intrinsics() -> list[Lanes]:
    modes = ("rn", "rz", "ru", "rd")
    rows = [f"(unsigned)__float2{t}_{r}(x)" for t, r in product(("int", "uint"), modes)]
    rows += ["(unsigned)x", "(unsigned)(int)x", "(unsigned)(short)x", "(unsigned)(x > 1.0f)",
             "__float_as_uint(x)"]  # fmt: skip
    found = [lanes("conversions_f32", "conversion", "f32", "u4", rows)]
    rows = [f"(unsigned long long)__double2{t}_{r}(x)" for t, r in product(("ll", "ull"), modes)]
    rows += ["(unsigned long long)x", "(unsigned long long)(int)x", "__double_as_longlong(x)",
             "(unsigned long long)__double2hiint(x)",
             "(unsigned long long)__double2loint(x)"]  # fmt: skip
    found.append(lanes("conversions_f64", "conversion", "f64", "u8", rows))
    rows = [
        f"__{s}2float_{r}({c})"
        for (s, c), r in product((("ll", "(long long)x"), ("ull", "x"), ("int", "(int)x")), modes)
    ]
    found.append(lanes("conversions_integer", "conversion", "u64", "f4", rows))
    return found


def source() -> Source:
    kernels = [
        *_float_to_integer(),
        *_integer_to_float(),
        *_float_to_float(),
        *_integer_to_integer(),
        *_brain_and_eight_bits(),
        *_intrinsics(),
    ]
    alike = ("cvt_i32_f32", "cvt_f32_i64", "cvt_f32_f64", "cvt_fp8_f32", "cvt_i16_i64")
    kernels += [uniform(kernel) for kernel in kernels if kernel.name in alike]
    return Source(
        "conversion",
        "".join(kernel.text() for kernel in kernels),
        tuple(kernel.case() for kernel in kernels),
    )
