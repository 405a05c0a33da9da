"""The check "nan" for products of matrices and for sums in memory.

Each form of a product has one value in all elements of a matrix, so that the oracle is one line:
K times a times b, plus c. The oracle of sums adds one thread after another in float64.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import emulator

HEAD: Final = ".version 8.7\n.target sm_90\n.address_size 64\n"
_INF: Final = float("inf")
_NAN: Final = float("nan")


class Number(NamedTuple):
    """A format: bits of one number, how many a register has, its largest number, bits of one."""

    bits: int
    parts: int
    most: float
    has_infinity: bool = True


FORMATS: Final = {
    "f16": Number(16, 2, 65504.0),
    "bf16": Number(16, 2, 3.3895e38),
    "tf32": Number(32, 1, 3.4e38),
    "f32": Number(32, 1, 3.4028e38),
    "f64": Number(64, 1, 1.797e308),
    "e5m2": Number(8, 4, 57344.0),
    "e4m3": Number(8, 4, 448.0, has_infinity=False),
}


def bits_of(name: str, number: float) -> int:
    """Return a register whose numbers are all this one, which the format must hold."""
    kind = FORMATS[name]
    with np.errstate(over="ignore"):
        if name == "bf16":
            one = int(np.float32(number).view(np.uint32)) >> 16
        elif name == "e5m2":
            one = int(np.float16(number).view(np.uint16)) >> 8
        elif name == "e4m3":
            # Its exponent has one bit less than that of f16, with a bias of 7 in place of 15.
            half = int(np.float16(number).view(np.uint16))
            one = 0x7F if np.isnan(number) else half >> 8 & 0x80
            if number and not np.isnan(number):
                one |= (half >> 7 & 0xFF) - (8 << 3)
        else:
            dtype = {"f16": "f2", "tf32": "f4", "f32": "f4", "f64": "f8"}[name]
            one = int.from_bytes(np.array(number, dtype).tobytes(), "little")
    return sum(one << kind.bits * part for part in range(kind.parts))


class Product(NamedTuple):
    """A form of `mma`: its shape and types, and how many registers a, b and c have."""

    shape: str
    types: str
    a: int
    b: int
    c: int

    @property
    def name(self) -> str:
        layouts = "row.col"
        return f"mma.sync.aligned.{self.shape}.{layouts}.{self.types}"


PRODUCTS: Final = [
    Product("m8n8k4", "f16.f16.f16.f16", 2, 2, 4),
    Product("m8n8k4", "f32.f16.f16.f32", 2, 2, 8),
    *(Product(shape, types, a, b, c)
      for shape, a, b in (("m16n8k8", 2, 1), ("m16n8k16", 4, 2))
      for types, c in (("f16.f16.f16.f16", 2), ("f32.f16.f16.f32", 4), ("f32.bf16.bf16.f32", 4))),
    Product("m16n8k4", "f32.tf32.tf32.f32", 2, 1, 4),
    Product("m16n8k8", "f32.tf32.tf32.f32", 4, 2, 4),
    Product("m8n8k4", "f64.f64.f64.f64", 1, 1, 2),
    Product("m16n8k4", "f64.f64.f64.f64", 2, 1, 4),
    Product("m16n8k8", "f64.f64.f64.f64", 4, 2, 4),
    Product("m16n8k16", "f64.f64.f64.f64", 8, 4, 4),
    *(Product(shape, f"{d}.{left}.{right}.{d}", a, b, {"f32": 4, "f16": 2}[d])
      for shape, a, b in (("m16n8k16", 2, 1), ("m16n8k32", 4, 2))
      for d in ("f32", "f16")
      for left, right in itertools.product(("e4m3", "e5m2"), repeat=2)),
]  # fmt: skip


def cases(product: Product) -> list[tuple[str, tuple[float, float, float]]]:
    """Return values of a, b and c, with what the product makes of them: "" is nothing new."""
    d, left, right, _ = product.types.split(".")
    k = int(product.shape.rpartition("k")[2])
    big = {
        "f16": 60000.0,
        "bf16": 2.0**127,
        "tf32": 2.0**127,
        "f64": 2.0**1023,
        "e5m2": 2.0**15,
        "e4m3": 256.0,
    }
    numbers = [
        (1.0, 1.0, 0.0),
        (big[left], big[right], 0.0),
        (big[left], 1.0, _INF),
        (_NAN, 1.0, 0.0),
        (1.0, 1.0, _NAN),
        (0.0, 1.0, -_INF),
        (1.0, -1.0, _INF),
    ]
    if d != "f16":  # in which a GPU also rounds between the parts of a sum
        numbers.append((big[left], -big[right], _INF))
    if FORMATS[left].has_infinity:
        numbers += [(_INF, 1.0, 0.0), (_INF, 0.0, 0.0), (_INF, 1.0, -_INF), (_INF, 1.0, _INF)]
    result = []
    for a, b, c in numbers:
        with np.errstate(all="ignore"):
            # Products are exact: finite numbers change no infinity.
            is_exact = np.isinf(c) and np.isfinite([a, b]).all()
            value = c if is_exact else k * np.float64(a) * np.float64(b) + c
        is_nan = np.isnan(value) and not np.isnan([a, b, c]).any()
        is_infinite = abs(value) > FORMATS[d].most * 1.0001 and np.isfinite([a, b, c]).all()
        result.append(("NaN" if is_nan else "infinity" if is_infinite else "", (a, b, c)))
    return result


def product_kernel(name: str, product: Product) -> str:
    d = product.types.partition(".")[0]
    wide = 64 if d == "f64" else 32
    kind = "f64" if d == "f64" else "f32" if d == "f32" else "b32"
    of_operands = "f64" if d == "f64" else "b32"

    def vector(register: str, count: int) -> str:
        return "{" + ", ".join([f"%{register}{n}" for n in range(count)]) + "}"

    moves = "".join(
        f"ld.param.{of_type} %{register}{n}, [{name}_{number}];"
        for number, (register, count, of_type) in enumerate(
            (("a", product.a, of_operands), ("b", product.b, of_operands), ("c", product.c, kind)),
            1,
        )
        for n in range(count)
    )
    stores = "".join(f"st.global.{kind} [%w+{n * wide // 8}], %d{n};" for n in range(product.c))
    return f"""
.visible .entry {name}(.param .u64 {name}_0, .param .b{wide} {name}_1, .param .b{wide} {name}_2,
    .param .b{wide} {name}_3) {{
    .reg .b64 %w; .reg .b32 %i;
    .reg .{of_operands} %a<{product.a}>, %b<{product.b}>;
    .reg .{kind} %c<{product.c}>, %d<{product.c}>;
    ld.param.u64 %w, [{name}_0]; mov.u32 %i, %tid.x; mad.wide.u32 %w, %i, 64, %w;
    {moves}
    {product.name} {vector("d", product.c)}, {vector("a", product.a)}, {vector("b", product.b)},
        {vector("c", product.c)};
    {stores} ret;
}}"""


def differences(products: list[Product]) -> tuple[int, list[str]]:
    """Return how many cases ran, and those with other findings than expected."""
    kernels = {
        f"k{number}_{case}": (product, made, values)
        for number, product in enumerate(products)
        for case, (made, values) in enumerate(cases(product))
    }
    text = HEAD + "".join(product_kernel(name, each[0]) for name, each in kernels.items())
    with emulator.session(check="nan", raise_findings=False) as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        module = context.load_module(ptx.Image.from_ptx(text))
        out = stream.zeros(32 * 16, np.float32)
        for name, (product, _, values) in kernels.items():
            d, *of_operands = product.types.split(".")
            word = np.uint64 if d == "f64" else np.uint32
            words = [word(bits_of(*each)) for each in zip(of_operands, values, strict=True)]
            module.kernel(name).launch(stream, cudadrv.LaunchConfig(1, 32), out, *words)
        stream.synchronize()
    found: dict[str, list[str]] = {}
    for finding in machine.findings:
        assert isinstance(finding, emulator.Finding)
        assert finding.places[0].what == kernels[finding.kernel][0].name
        found.setdefault(finding.kernel, []).append(finding.kind)
    return len(kernels), [
        f"{product.name} of {values}: {found.get(name, [])}, expected {made!r}"
        for name, (product, made, values) in kernels.items()
        if found.get(name, []) != [made] * bool(made)
    ]


def test_a_product_of_a_warp_names_the_nan_and_the_infinity_that_it_makes() -> None:
    count, wrong = differences(PRODUCTS[3:5])
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong)


@pytest.mark.slow
def test_each_form_of_a_product_names_the_nan_and_the_infinity_that_it_makes() -> None:
    count, wrong = differences(PRODUCTS)
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong)


class Sum(NamedTuple):
    """What a kernel adds: memory before it, the value of each thread, and the result.

    Attributes:
        made: what is reported, "" for nothing.
        thread: of the first one that makes it.
    """

    before: float
    values: list[float]
    made: str = ""
    thread: int = -1


_THREADS: Final = 64
_WIDTHS: Final = {"f32": 1, "f64": 1, "f16": 1, "bf16": 1, "f16x2": 2, "bf16x2": 2}
_SPACES: Final = ("global", "shared", "")


def sums(ptx_type: str) -> dict[str, Sum]:
    """Return what threads add to one element, with the result of one addition after another."""
    most = FORMATS[ptx_type.removesuffix("x2")].most
    part = {"f16": 20000.0, "bf16": 2.0**126, "f32": 1e38, "f64": 2.0**1022}[
        ptx_type.removesuffix("x2")
    ]
    values = {
        "finite": (1.0, [0.0] * _THREADS),
        "too large": (0.0, [part if 20 <= thread < 30 else 0.0 for thread in range(_THREADS)]),
        "infinite before": (_INF, [1.0] * _THREADS),
        "NaN before": (_NAN, [1.0] * _THREADS),
        "two infinities": (_INF, [-_INF if thread == 9 else 0.0 for thread in range(_THREADS)]),
        "an infinity is added": (0.0, [_INF if thread == 9 else 0.0 for thread in range(_THREADS)]),
        "a NaN is added": (0.0, [_NAN if thread == 9 else 0.0 for thread in range(_THREADS)]),
    }
    result = {}
    for name, (before, added) in values.items():
        total, made, first = before, "", -1
        explained = {
            "NaN": np.isnan([before, *added]).any(),
            "infinity": not np.isfinite([before, *added]).all(),
        }
        for thread, value in enumerate(added):
            with np.errstate(all="ignore"):
                total = float(np.float64(total) + value)
            if abs(total) > most * 1.0001:
                total = _INF if total > 0 else -_INF
            kind = "NaN" if np.isnan(total) else "infinity" if np.isinf(total) else ""
            if kind and not made and not explained[kind]:
                made, first = kind, thread
        result[name] = Sum(before, added, made, first)
    return result


def sum_kernel(name: str, instruction: str, ptx_type: str, space: str, each: Sum) -> str:
    """Return a kernel of which one thread has the number of each value, by its own branch."""
    kind = FORMATS[ptx_type.removesuffix("x2")]
    bits = 64 if ptx_type == "f64" else 32 if ptx_type in ("f32", "f16x2", "bf16x2") else 16
    stored = f"b{bits}" if bits < 32 or "x2" in ptx_type else ptx_type

    def word(number: float) -> str:
        one = bits_of(ptx_type.removesuffix("x2"), number) & ((1 << kind.bits) - 1)
        return hex(sum(one << kind.bits * part for part in range(_WIDTHS[ptx_type])))

    usual = max(set(map(str, each.values)), key=list(map(str, each.values)).count)
    (first, *_), last = (
        [thread for thread, value in enumerate(each.values) if str(value) != usual] or [0],
        max([-1, *(t for t, value in enumerate(each.values) if str(value) != usual)]),
    )
    memory = "[%w]" if space != "shared" else "[s]"
    rare = each.values[first]
    begin = f"mov.b{bits} %a, {word(each.before)}; st.{space or 'global'}.b{bits} {memory}, %a;"
    if space == "":
        begin = f"mov.b{bits} %a, {word(each.before)}; st.b{bits} {memory}, %a;"
    return f"""
.visible .entry {name}(.param .u64 p) {{
    .reg .b64 %w; .reg .b32 %i; .reg .pred %p, %q; .reg .b{bits} %a, %b;
    .shared .align 8 .b64 s;
    ld.param.u64 %w, [p]; mov.u32 %i, %tid.x;
    {begin} bar.sync 0;
    mov.b{bits} %a, {word(float(usual))}; mov.b{bits} %b, {word(rare)};
    setp.ge.u32 %p, %i, {first}; setp.le.and.s32 %q, %i, {last}, %p; selp.b{bits} %a, %b, %a, %q;
    {instruction.format(memory=memory)} ret;
}}""".replace("STORED", stored)


def differences_of_sums(types: Iterable[str]) -> list[str]:
    """Return the cases of these types with other findings than expected."""
    kernels: dict[str, tuple[str, Sum]] = {}
    text = HEAD
    for ptx_type in types:
        noftz = ".noftz" if ptx_type not in ("f32", "f64") else ""
        for number, space in enumerate(_SPACES):
            dot = f".{space}" if space else ""
            opcode = "atom" if number == 1 else "red"
            result = "%b, " if opcode == "atom" else ""
            operation = f"{opcode}{dot}.add{noftz}.{ptx_type}"
            for case, each in sums(ptx_type).items():
                name = f"k{len(kernels)}"
                text += sum_kernel(
                    name, f"{operation} {result}{{memory}}, %a;", ptx_type, space, each
                )
                kernels[name] = f"{operation}, {case}", each
    with emulator.session(check="nan", raise_findings=False) as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        module = context.load_module(ptx.Image.from_ptx(text))
        out = stream.zeros(8, np.float32)
        for name in kernels:
            module.kernel(name).launch(stream, cudadrv.LaunchConfig(1, _THREADS), out)
        stream.synchronize()
    found: dict[str, tuple[str, int, str]] = {}
    for finding in machine.findings:
        assert isinstance(finding, emulator.Finding)
        (place,) = finding.places
        assert place.where is not None
        assert place.where.thread is not None
        assert "which stays in memory" in str(finding)
        found[finding.kernel] = finding.kind, place.where.thread[0], place.what
    return [
        f"{text}: {found.get(name)}, expected {each.made!r} of thread {each.thread}"
        for name, (text, each) in kernels.items()
        if found.get(name, ("", -1))[:2] != (each.made, each.thread)
        or (each.made and found[name][2] != text.partition(",")[0])
    ]


def test_an_atomic_sum_that_becomes_nan_or_infinite_in_memory_is_named() -> None:
    assert differences_of_sums(["f32"]) == []


@pytest.mark.slow
def test_each_atomic_sum_that_becomes_nan_or_infinite_in_memory_is_named() -> None:
    assert differences_of_sums(_WIDTHS) == []


GROUP_HEAD: Final = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 k_0, .param .b32 k_1, .param .b32 k_2, .param .b32 k_3,
    .param .u32 k_4) {
    .reg .b64 %w, %rd<4>; .reg .b32 %i, %at, %h, %a<4>, %n; .reg .f32 %d<4>; .reg .pred %p;
    .shared .align 1024 .b8 pool[4096];
    ld.param.u64 %w, [k_0]; mov.u32 %i, %tid.x; mad.wide.u32 %w, %i, 16, %w;
    ld.param.b32 %a0, [k_1]; mov.b32 %a1, %a0; mov.b32 %a2, %a0; mov.b32 %a3, %a0;
    ld.param.b32 %h, [k_2]; shl.b32 %at, %i, 2; mov.u32 %n, pool; add.u32 %at, %at, %n;
    st.shared.b32 [%at], %h; st.shared.b32 [%at+512], %h; st.shared.b32 [%at+1024], %h;
    st.shared.b32 [%at+1536], %h; bar.sync 0;
    ld.param.f32 %d0, [k_3]; mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0;
    ld.param.u32 %n, [k_4]; setp.ne.u32 %p, %n, 0;
    mov.u32 %n, pool; shr.u32 %n, %n, 4; cvt.u64.u32 %rd1, %n;
    or.b64 %rd1, %rd1, 0x0000001000080000;
    wgmma.fence.sync.aligned;
"""
GROUP_TAIL: Final = """
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
    st.global.v4.f32 [%w], {%d0, %d1, %d2, %d3}; ret;
}"""
GROUP: Final = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
GROUP_CASES: Final = [
    (1.0, 1.0, 0.0, True, ""),
    (_INF, 1.0, 0.0, True, ""),
    (_INF, 0.0, 0.0, True, "NaN"),
    (_NAN, 1.0, 0.0, True, ""),
    (1.0, _INF, 0.0, True, ""),
    (0.0, _INF, 0.0, True, "NaN"),
    (1.0, _NAN, 0.0, True, ""),
    (1.0, _INF, -_INF, True, "NaN"),
    (1.0, 1.0, _INF, True, ""),
    (1.0, 1.0, _NAN, False, ""),
    (1.0, _INF, -_INF, False, ""),
    (_INF, _INF, 0.0, True, ""),
    (_INF, _INF, -_INF, True, "NaN"),
    (_NAN, _NAN, 0.0, True, ""),
    (256.0, 256.0, 3.4e38, True, ""),
]


def kinds_of_group(line: str, a: float, b: float, c: float, *, adds: bool) -> list[str]:
    """Return the kinds of findings of a product whose B is in shared memory."""
    text = GROUP_HEAD + line + GROUP_TAIL
    with emulator.session(check="nan", raise_findings=False) as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        out = stream.zeros(512, np.float32)
        words = [np.uint32(bits_of(*each)) for each in (("f16", a), ("f16", b))]
        kernel = context.load_module(ptx.Image.from_ptx(text)).kernel("k")
        config = cudadrv.LaunchConfig(1, 128)
        kernel.launch(stream, config, out, *words, np.float32(c).view(np.uint32), int(adds))
        stream.synchronize()
    return [finding.kind for finding in machine.findings if isinstance(finding, emulator.Finding)]


@pytest.mark.slow
@pytest.mark.parametrize("left", ["{%a0, %a1, %a2, %a3}", "%rd1"])
def test_a_product_of_four_warps_names_what_it_makes(left: str) -> None:
    transposed = "0" if left[0] == "{" else "0, 0"
    line = f"{GROUP} {{%d0, %d1, %d2, %d3}}, {left}, %rd1, %p, 1, 1, {transposed};"
    in_memory = left == "%rd1"
    for a, b, c, adds, made in GROUP_CASES:
        if in_memory and a != b:
            continue
        found = kinds_of_group(line, a, b, c, adds=adds)
        assert found == [made] * bool(made), (a, b, c)


def test_an_infinity_of_an_accumulator_is_named_by_the_product() -> None:
    line = f"{GROUP} {{%d0, %d1, %d2, %d3}}, {{%a0, %a1, %a2, %a3}}, %rd1, %p, 1, 1, 0;"
    again = f"{line} wgmma.wait_group.sync.aligned 0; mul.f32 %d0, %d0, 0f7F000000; {line}"
    assert kinds_of_group(again, 300.0, 300.0, 0.0, adds=True) == ["infinity"]
    assert kinds_of_group(again, 300.0, 300.0, 0.0, adds=False) == []


SPARSE: Final = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


@pytest.mark.parametrize(("a", "b", "made"), [
    (1.0, 1.0, []), (_INF, 1.0, []), (_INF, 0.0, ["NaN"]), (0.0, _INF, ["NaN"]), (1.0, _NAN, []),
])  # fmt: skip
def test_a_sparse_product_names_what_it_makes(a: float, b: float, made: list[str]) -> None:
    text = f"""{HEAD}.visible .entry k(.param .u64 k_0, .param .b32 k_1, .param .b32 k_2) {{
    .reg .b64 %w; .reg .b32 %i, %a, %b, %e; .reg .f32 %d<4>, %z;
    ld.param.u64 %w, [k_0]; mov.u32 %i, %tid.x; mad.wide.u32 %w, %i, 16, %w;
    ld.param.b32 %a, [k_1]; ld.param.b32 %b, [k_2]; mov.b32 %e, 0x44444444; mov.f32 %z, 0f00000000;
    {SPARSE} {{%d0, %d1, %d2, %d3}}, {{%a, %a}}, {{%b, %b}}, {{%z, %z, %z, %z}}, %e, 0;
    st.global.v4.f32 [%w], {{%d0, %d1, %d2, %d3}}; ret;
    }}"""
    with emulator.session(check="nan", raise_findings=False) as machine:
        context = cudadrv.cuda_context_for(0)
        stream = context.default_stream
        out = stream.zeros(128, np.float32)
        words = [np.uint32(bits_of("f16", each)) for each in (a, b)]
        kernel = context.load_module(ptx.Image.from_ptx(text)).kernel("k")
        kernel.launch(stream, cudadrv.LaunchConfig(1, 32), out, *words)
        stream.synchronize()
    found = [each.kind for each in machine.findings if isinstance(each, emulator.Finding)]
    assert found == made
