"""Tensor cores: `mma` in every form, `wmma` through mma.h, and moves of 8 x 8 matrices.

The results of floating-point products are those of one architecture: they are exact on GPUs of
compute capability 9.0 only, as PTX leaves the order and rounding of sums open.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

from tests.emulator.differential.case import Argument, Case, In, Out, Source
from tests.emulator.differential.inputs import Factors, Kind, Uniform

_WIDTHS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "e4m3": 8, "e5m2": 8,
           "s32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}  # fmt: skip
_QUARTERS = ("exponents far apart", "with infinities", "near each other", "subnormal")
_THREADS = 256


def _pairs(result: str, *elements: str) -> tuple[str, ...]:
    return tuple(f"{result}.{a}.{b}.{result}" for a in elements for b in elements)


_HALF = ("f16.f16.f16.f16", "f32.f16.f16.f32")
_BYTES, _NIBBLES, _BITS = _pairs("s32", "s8", "u8"), _pairs("s32", "s4", "u4"), _pairs("s32", "b1")
_NARROW = (*_pairs("f32", "e4m3", "e5m2"), *_pairs("f16", "e4m3", "e5m2"))
_FLOATS = {
    "m8n8k4": _pairs("f64", "f64"),
    "m16n8k4": (*_pairs("f64", "f64"), *_pairs("f32", "tf32")),
    "m16n8k8": (*_pairs("f64", "f64"), *_pairs("f32", "tf32"), *_pairs("f32", "bf16"), *_HALF),
    "m16n8k16": (*_pairs("f64", "f64"), *_pairs("f32", "bf16"), *_HALF, *_NARROW),
    "m16n8k32": _NARROW,
}
_INTEGERS = {
    "m8n8k16": _BYTES,
    "m16n8k16": _BYTES,
    "m16n8k32": (*_BYTES, *_NIBBLES),
    "m8n8k32": _NIBBLES,
    "m16n8k64": _NIBBLES,
}
_COUNTED = {"m8n8k128": _BITS, "m16n8k128": _BITS, "m16n8k256": _BITS}


def _kind(element: str) -> Kind:
    if element == "f64":
        return Uniform("f8", -2, 2, edges=0)
    return "u32" if element[0] in "sub" and element != "bf16" else Factors(element)


def _sizes(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def _case(name: str, kinds: list[tuple[str, int]], out: tuple[str, int], block: int) -> Case:
    """`kinds`: the elements of each input and its words (doubles) over all blocks."""
    rows = _QUARTERS if isinstance(_kind(kinds[0][0]), Factors) else ()
    grid = _THREADS // block
    arguments: list[Argument] = [In(_kind(element), n) for element, n in kinds]
    return Case(name, "matrix", (*arguments, Out(*out)), grid, block, rows=rows)


def _lists(registers: list[int]) -> str:
    """Asm operands in braces, for D, A, B and C."""
    ends = itertools.accumulate(registers)
    return ", ".join(
        "{" + ", ".join(f"%{k}" for k in range(end - n, end)) + "}"
        for end, n in zip(ends, registers, strict=True)
    )


def _product(
    instruction: str, types: str, registers: list[int], selector: int | None = None
) -> tuple[str, Case]:
    """A kernel that gives each thread's registers to an `mma`.

    With a selector it is an `mma.sp`, whose metadata are made of random words: valid, and in order.
    """
    d, a, b, c = types.split(".")
    kind, constraint = ("double", "d") if d == "f64" else ("unsigned", "r")
    name = instruction.replace(".sync.aligned", "").replace("::", "_").replace(".", "_")
    lists = _lists(registers)
    results = ", ".join(f'"={constraint}"(d[{k}])' for k in range(registers[0]))
    sources = [
        f'"{constraint}"({name}[{k}])'
        for name, n in zip("abc", registers[1:], strict=True)
        for k in range(n)
    ]
    parameters = f"const {kind}* a, const {kind}* b, const {kind}* c, {kind}* d"
    before = "".join(f" {x} += i * {n};" for x, n in zip("dabc", registers, strict=True))
    if selector is not None:
        name += f"_{selector}"
        lists += f", %{sum(registers)}, {selector}"
        sources.append('"r"(word)')
        parameters += ", const unsigned* e"
        before += f"\n  unsigned word = metadata(e[i], {_CHOICES[a == 'tf32']});"
    text = (
        f'extern "C" __global__ void {name}({parameters}) {{\n'
        f"  int i = blockIdx.x * blockDim.x + threadIdx.x;{before}\n"
        f'  asm volatile("{instruction} {lists};" : {results} : {", ".join(sources)});\n}}\n'
    )
    kinds = [(x, n * _THREADS) for x, n in zip((a, b, c), registers[1:], strict=True)]
    case = _case(name, kinds, ("f8" if d == "f64" else "u4", registers[0] * _THREADS), 128)
    if selector is not None:
        case = replace(case, arguments=(*case.arguments, In("u32", _THREADS)))
    return text, case


# The nibbles of metadata, which name two of four elements, or of two of tf32 one.
_CHOICES = ("0xed9c84", "0xe4e4e4")


_SPARSE = (
    ("m16n8k8", _pairs("f32", "tf32"), 4),
    ("m16n8k16", _pairs("f32", "tf32"), 2),
    ("m16n8k16", (*_HALF, *_pairs("f32", "bf16")), 4),
    ("m16n8k32", (*_HALF, *_pairs("f32", "bf16"), *_BYTES), 2),
    ("m16n8k64", (*_BYTES, *_pairs("f32", "e4m3", "e5m2")), 1),
    ("m16n8k64", _NIBBLES, 2),
    ("m16n8k128", _NIBBLES, 1),
)
"""Shapes, types, and how many selectors there are."""


def _sparse_products() -> list[tuple[str, Case]]:
    found = []
    for shape, forms, selectors in _SPARSE:
        for number, types in enumerate(forms):
            registers = _registers(shape, types)
            registers[1] //= 2
            for k, kind in enumerate(("sp", "sp::ordered_metadata")):
                instruction = f"mma.{kind}.sync.aligned.{shape}.row.col.{types}"
                found.append(_product(instruction, types, registers, (number + k) % selectors))
    return found


def _registers(shape: str, types: str) -> list[int]:
    m, n, k = _sizes(shape)
    sizes = (m * n, m * k, k * n, m * n)
    words = [size * _WIDTHS[x] // 1024 for size, x in zip(sizes, types.split("."), strict=True)]
    return [word // 2 for word in words] if types.startswith("f64") else words


def _products() -> list[tuple[str, Case]]:
    found = []
    for shape, forms in (*_FLOATS.items(), *_INTEGERS.items()):
        for types in forms:
            name = f"mma.sync.aligned.{shape}.row.col"
            found.append(_product(f"{name}.{types}", types, _registers(shape, types)))
            if types.startswith("s32") and shape[1] == "1":
                saturating = f"{name}.satfinite.{types}"
                found.append(_product(saturating, types, _registers(shape, types)))
    for shape, forms in _COUNTED.items():
        for types, op in itertools.product(forms, ("xor", "and")):
            instruction = f"mma.sync.aligned.{shape}.row.col.{types}.{op}.popc"
            found.append(_product(instruction, types, _registers(shape, types)))
    for types, a, b in itertools.product(
        (*_HALF, "f32.f16.f16.f16"), ("row", "col"), ("row", "col")
    ):
        d, _, _, c = types.split(".")
        registers = [8 if d == "f32" else 4, 2, 2, 8 if c == "f32" else 4]
        found.append(_product(f"mma.sync.aligned.m8n8k4.{a}.{b}.{types}", types, registers))
    return found


# The fragment's type in mma.h, the type in memory, and NumPy's of a result.
_CPP = {
    "f16": ("half", "half", "u2"), "bf16": ("__nv_bfloat16", "__nv_bfloat16", ""),
    "tf32": ("precision::tf32", "float", ""), "f32": ("float", "float", "u4"),
    "f64": ("double", "double", "f8"), "s8": ("signed char", "signed char", ""),
    "u8": ("unsigned char", "unsigned char", ""), "s32": ("int", "int", "u4"),
    "s4": ("experimental::precision::s4", "unsigned", ""),
    "u4": ("experimental::precision::u4", "unsigned", ""),
    "b1": ("experimental::precision::b1", "unsigned", ""),
}  # fmt: skip
_LARGE = ("m16n16k16", "m8n32k16", "m32n8k16")
_OPAQUE = (
    *itertools.product(
        _LARGE,
        ("f32.f16.f16.f32", "f16.f16.f16.f16", "f32.bf16.bf16.f32", "s32.s8.s8.s32",
         "s32.u8.u8.s32"),
        (("row", "col"), ("col", "row")),
    ),
    *(("m16n16k16", types, orders) for types in ("f32.f16.f16.f16", "f16.f16.f16.f32")
      for orders in (("row", "row"), ("col", "col"))),
    *(("m16n16k8", "f32.tf32.tf32.f32", orders) for orders in (("row", "col"), ("col", "row"))),
    *(("m8n8k4", "f64.f64.f64.f64", orders) for orders in (("row", "col"), ("col", "row"))),
    *((shape, types, ("row", "col")) for shape, types in (
        ("m8n8k32", "s32.s4.s4.s32"), ("m8n8k32", "s32.u4.u4.s32"), ("m8n8k128", "s32.b1.b1.s32"))),
)  # fmt: skip


def _opaque(shape: str, types: str, orders: tuple[str, str]) -> tuple[str, Case]:
    """A kernel of mma.h: each warp multiplies matrices of its own, C and D in the order of A."""
    d, a, b, c = types.split(".")
    m, n, k = _sizes(shape)
    sizes = {"a": m * k, "b": k * n, "c": m * n, "d": m * n}
    lines = {"a": (k, m), "b": (n, k), "c": (n, m), "d": (n, m)}
    order = {"a": orders[0], "b": orders[1], "c": orders[0], "d": orders[0]}
    stride = {x: lines[x][0 if order[x] == "row" else 1] for x in "abcd"}
    role = {"a": "matrix_a", "b": "matrix_b", "c": "accumulator", "d": "accumulator"}
    elements = {"a": a, "b": b, "c": c, "d": d}
    warps = _THREADS // 32
    name = f"wmma_{shape}_{types}_{'_'.join(orders)}".replace(".", "_")
    parameters = ", ".join(
        f"{'' if x == 'd' else 'const '}{_CPP[elements[x]][1]}* {x}" for x in "abcd"
    )
    body = ["  int w = blockIdx.x;"]
    for x in "abcd":
        packed = 32 // _WIDTHS[elements[x]] if _WIDTHS[elements[x]] < 8 else 1
        shown = f", {order[x]}_major" if x in "ab" else ""
        body.append(
            f"  fragment<{role[x]}, {m}, {n}, {k}, {_CPP[elements[x]][0]}{shown}> f{x};"
            f" {x} += w * {sizes[x] // packed};"
        )
    body += [
        f"  load_matrix_sync(fa, a, {stride['a']});",
        f"  load_matrix_sync(fb, b, {stride['b']});",
        f"  load_matrix_sync(fc, c, {stride['c']}, mem_{order['c']}_major);",
        f"  {'b' if a == 'b1' else ''}mma_sync(fd, fa, fb, fc);",
        f"  store_matrix_sync(d, fd, {stride['d']}, mem_{order['d']}_major);",
    ]
    text = (
        f'extern "C" __global__ void {name}({parameters}) {{\n  using namespace nvcuda::wmma;\n'
        + "\n".join(body)
        + "\n}\n"
    )
    kinds = []
    for x in "abc":
        bits = sizes[x] * warps * _WIDTHS[elements[x]]
        kinds.append((elements[x], bits // (64 if elements[x] == "f64" else 32)))
    return text, _case(name, kinds, (_CPP[d][2], sizes["d"] * warps), 32)


def _moves() -> tuple[Case, ...]:
    n = 128
    words = In("u32", 4 * n)

    def case(name: str, out: int, *more: In) -> Case:
        return Case(name, "matrix", (words, *more, Out("u4", out)), 2, 64)

    return (
        case("load_rows", 14 * n),
        case("store_rows", 6 * 4 * n),
        case("transpose_rows", n),
        case("fragment_arithmetic", n // 32 * 256, In("u32", 4 * n)),
    )


def source() -> Source:
    """One source of all."""
    made = [*_products(), *_sparse_products(), *(_opaque(*form) for form in _OPAQUE)]
    text = Path(__file__).with_name("matrix.cu").read_text()
    return Source(
        "matrix",
        text + "".join(each for each, _ in made),
        (*(case for _, case in made), *_moves()),
    )
