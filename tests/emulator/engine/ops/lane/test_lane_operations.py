"""Each operation's code for single threads gives the bits of NumPy's, for special values too."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate.codegen.lane.lane_table import lane_operations
from ptx.isa.instruction_facts import TYPE_BYTES
from tests.emulator.engine.few_threads import ALWAYS, NEVER, drawn
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
from tests.rows import all_rows
from tests.short_cases import few

_WORDS = {
    2: [0, 1, 2, 0x7FFF, 0x8000, 0xFFFF, 0x1234],
    4: [0, 1, 7, 31, 32, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x3F800000, 0xBFC00000, 0x00000001,
        0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC01234, 0xFFA00001,
        0x4B000001, 0x33800000, 0x5F000000, 0xCF000001, 0x3EFFFFFF, 0x7E800000],
    8: [0, 1, 63, 64, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF,
        0x3FF0000000000000, 0xBFF8000000000000, 0x000FFFFFFFFFFFFF, 0x8010000000000000,
        0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000001234,
        0xFFF4000000000001, 0x4340000000000001, 0x3CA0000000000000, 0x43E0000000000000,
        0x3690000000000001, 0x47EFFFFFF0000000],
}  # fmt: skip
_ROUNDED = ("fma.rn", "mad.rn", "div.rn", "rcp.rn", "sqrt.rn")
_FORMS = {
    "mul": ["mul.lo.{t} d, a, b", "mul.hi.{t} d, a, b", "mul.lo.{t} d, a, 12"],
    "mad": ["mad.lo.{t} d, a, b, c", "mad.hi.{t} d, a, b, c"],
    "fma": ["{n}.{t} d, a, b, c"], "cvta": ["cvta.to.shared.{t} d, a", "cvta.local.{t} d, a"],
    "copysign": ["{n}.{t} d, a, b"], "bfe": ["bfe.{t} d, a, s, u"],
    "shl": ["shl.{t} d, a, s", "shl.{t} d, a, 40"], "shr": ["shr.{t} d, a, s", "shr.{t} d, a, 9"],
    "popc": ["popc.{t} w, a"], "clz": ["clz.{t} w, a"], "selp": ["selp.{t} d, a, b, p"],
    "mov": ["mov.{t} d, a"],
}  # fmt: skip
_UNARY = ("neg", "abs", "not", "cnot", "rcp", "sqrt", "rsqrt", "lg2", "ex2", "tanh")
_INTEGER_TESTS = ("eq", "ne", "lt", "le", "gt", "ge")
_FLOAT_TESTS = (*_INTEGER_TESTS, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
_NO_RESULT = ("ld", "ldu", "st")  # a test of their own: the corpus


def _forms(name: str, suffix: str) -> list[str]:
    """Instructions of an operation that the table of operations takes."""
    stem, _, rest = name.partition(".")
    kind = suffix.split(".")[0]
    if stem in ("setp", "set"):
        tests = _FLOAT_TESTS if suffix.split(".")[-1][0] == "f" else _INTEGER_TESTS
        target = "p" if stem == "setp" else "d"
        return [f"{stem}.{test}.{suffix} {target}, a, b" for test in tests]
    if stem == "cvt":
        to, of = suffix.split(".")
        modes = [""]
        if of[0] == "f" and to[0] != "f":
            modes = ["rni.", "rzi.", "rmi.", "rpi."]
        elif (of[0] != "f" and to[0] == "f") or (to, of) == ("f32", "f64"):
            modes = ["rn."]
        elif to == of and to[0] == "f":
            modes = ["", "rni.", "rzi.", "rmi.", "rpi."]
        return [f"cvt.{mode}{suffix} d, a" for mode in modes]
    if stem in ("mul", "mad") and kind[0] != "f":
        wide = [f"mul.wide.{suffix} x, a, b"] if stem == "mul" and kind[1:] == "32" else []
        return [form.format(t=suffix) for form in _FORMS[stem]] + wide
    if stem in ("fma", "mad"):
        return [f"{name}.{suffix} d, a, b, c"]
    if stem in _FORMS and stem != "mul":
        return [form.format(n=name, t=suffix) for form in _FORMS[stem]]
    operands = "d, a" if stem in _UNARY else "d, a, b"
    plain = [f"{name}.{suffix} {operands}"]
    if suffix == "f32" and stem in ("add", "sub", "mul", "div", "sqrt", "rcp") and rest != "full":
        plain.append(f"{name}.ftz.{suffix} {operands}")
    return plain


def _values(nbytes: int) -> NDArray[np.unsignedinteger]:
    """Triples of special values and of random ones, (3, n)."""
    words = _WORDS[nbytes]
    rng = np.random.default_rng(3)
    dtype = np.dtype(f"u{nbytes}")
    pairs = np.array(list(product(words, words)), dtype=dtype).T
    third = rng.choice(np.array(words, dtype=dtype), pairs.shape[1])
    return np.vstack([pairs, third])


def _results(form: str, suffix: str) -> list[bytes]:
    """The bits of all results by each form of registers."""
    kind = suffix.split(".")[-1]
    size = max(TYPE_BYTES[kind], 2)
    target = suffix.split(".")[0]
    wide = max(TYPE_BYTES[target], 2)
    declared = {1: "b16", 2: "b16", 4: "b32", 8: "b64"}
    held = kind if kind[0] == "f" else declared[size]
    result = target if target[0] == "f" else declared[wide]
    loads = "\n".join(
        f"mad.lo.u64 q, i, {size}, z{at}; ld.global.{held} {name}, [q];"
        for at, name in enumerate("abc")
    )
    body = f"""
    .reg .u64 q, i, o, z0, z1, z2, x; .reg .u32 t, s, u, w, k; .reg .pred p;
    .reg .{held} a, b, c; .reg .{result} d;
    mov.u32 t, %tid.x; cvt.u64.u32 i, t; and.b32 s, t, 65; and.b32 u, t, 7;
    setp.eq.u32 p, u, 3; mov.u32 w, 0; mov.u64 x, 0; mov.u32 k, 0;
    ld.param.u64 z0, [p0]; ld.param.u64 z1, [p1]; ld.param.u64 z2, [p2]; ld.param.u64 o, [p3];
    {loads}
    {"mov.b" + str(8 * wide) + " d, 0;" if result[0] == "b" else "mov." + result + " d, 0.0;"}
    {form};
    selp.u32 k, 1, 0, p;
    mad.lo.u64 q, i, 32, o;
    st.global.{result} [q], d; st.global.u64 [q+8], x; st.global.u32 [q+16], w;
    st.global.u32 [q+20], k;
    ret;"""
    params = ", ".join(f".param .u64 p{at}" for at in range(4))
    runner = KernelRunner(ptx_text(body, params))
    values = _values(size)
    count = min(values.shape[1], 576)
    places = [runner.put(np.ascontiguousarray(row[:count])) for row in values]
    outputs = [runner.put(np.zeros(32 * count, np.uint8)) for _ in range(3)]
    for out, limits in zip(outputs, (NEVER, ALWAYS, drawn(5)), strict=True):
        for _ in range(2):  # at first no load knows its memory, and all threads go the long way
            runner.launch("k", 1, count, *places, out, limits=limits)
    return [runner.get(out, 32 * count, np.uint8).tobytes() for out in outputs]


_PURE = sorted({name for name, suffix in lane_operations() if name not in _NO_RESULT})
_MANY_FORMS = ("cvt", "set", "setp")


@all_rows
@pytest.mark.parametrize(
    "name",
    [
        *few([each for each in _PURE if each not in _MANY_FORMS], 8),
        *(pytest.param(each, marks=pytest.mark.slow) for each in _MANY_FORMS),
    ],
)
def test_code_for_single_threads_gives_the_bits_of_numpy(name: str) -> None:
    suffixes = [suffix for each, suffix in lane_operations() if each == name and suffix != "pred"]
    if len(suffixes) > 40:  # of conversions and `set`: each of one width with each of another
        suffixes = suffixes[::3]
    wrong = []
    for suffix in suffixes:
        for form in _forms(name, suffix):
            want, *others = _results(form, suffix)
            if any(other != want for other in others):
                wrong.append(form)
    assert wrong == []
