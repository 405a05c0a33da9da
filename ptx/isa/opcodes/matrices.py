"""Rows of products of matrices. PTX ISA, "mma", "mma.sp", "wmma", "wgmma", "tcgen05".

`...` are any operands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ptx.isa.opcodes.opcode_row import RECENT, Chapter

_WARP: Final = 32
_BITS: Final = {
    "f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "f32": 32, "s32": 32, "u8": 8, "s8": 8, "u4": 4,
    "s4": 4, "b1": 1, "e4m3": 8, "e5m2": 8,
}  # fmt: skip
_HALF: Final = ["f16.f16.f16.f16", "f32.f16.f16.f32"]
_BYTES: Final = [f"s32.{a}.{b}.s32" for a in ("u8", "s8") for b in ("u8", "s8")]
_NIBBLES: Final = [f"s32.{a}.{b}.s32" for a in ("u4", "s4") for b in ("u4", "s4")]
_MINI: Final = [
    f"{d}.{a}.{b}.{d}" for d in ("f16", "f32") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")
]
_BF16: Final = ["f32.bf16.bf16.f32"]
_TF32: Final = ["f32.tf32.tf32.f32"]
_F64: Final = ["f64.f64.f64.f64"]

# Shapes with the modifiers that they may have, and their types.
_DENSE: Final = (
    ("m16n8k8", "", [*_HALF, *_BF16, *_TF32]), ("m16n8k16", "", [*_HALF, *_BF16]),
    ("m16n8k4", "", _TF32), ("m16n8k16", "", _MINI), ("m16n8k32", "", _MINI),
    ("m8n8k16", "[satfinite]", _BYTES), ("m16n8k16", "[satfinite]", _BYTES),
    ("m16n8k32", "[satfinite]", [*_BYTES, *_NIBBLES]), ("m8n8k32", "[satfinite]", _NIBBLES),
    ("m16n8k64", "[satfinite]", _NIBBLES),
)  # fmt: skip
_SPARSE: Final = (
    ("m16n8k16", "", [*_HALF, *_BF16]), ("m16n8k32", "", [*_HALF, *_BF16]),
    ("m16n8k8", "", _TF32), ("m16n8k16", "", _TF32), ("m16n8k64", "", _MINI),
    ("m16n8k32", "[satfinite]", _BYTES), ("m16n8k64", "[satfinite]", [*_BYTES, *_NIBBLES]),
    ("m16n8k128", "[satfinite]", _NIBBLES),
)  # fmt: skip
_ROUND: Final = "[rn/rz/rm/rp]"


def _fragment(elements: int, kind: str, letter: str) -> str:
    """The registers of one thread for a matrix."""
    bits = _BITS[kind]
    if kind == "f64":
        return f"{{{elements // _WARP}{letter}:b64}}"  # as ptxas, which takes integers as well
    held = {"f32": f"{letter}:f32", "f16": f"{letter}:f16x2"}.get(kind, "N")
    return f"{{{elements * bits // 32 // _WARP}{held}}}"


def _packed(elements: int, kind: str) -> str:
    """The same of a factor, whose elements are packed into registers of 32 bits."""
    held = {"f16": "r:f16x2", "bf16": "r:bf16x2", "tf32": "r:tf32"}.get(kind, "r:b32")
    return f"{{{elements * _BITS[kind] // 32 // _WARP}{held}}}"


def _selector(kind: str, k: int) -> str:
    """The metadata, and which threads have it: fewer may, the more elements a row has."""
    most = 512 // (_BITS[kind] * k) * (2 if _BITS[kind] > 8 else 1) - 1
    return f"r:b32 =0..{most}"


def _sizes(shape: str) -> tuple[int, int, int]:
    m, rest = shape[1:].split("n")
    n, k = rest.split("k")
    return int(m), int(n), int(k)


def _factors(m: int, n: int, k: int, types: str, *, a_part: int = 1) -> str:
    """D, A, B and C, of whose A the registers have one of `a_part` elements."""
    d, a, b, c = types.split(".")
    left, right = _packed(m * k // a_part, a), _packed(n * k, b)
    return f"{_fragment(m * n, d, 'd')} {left} {right} {_fragment(m * n, c, 'r')}"


def _products() -> Iterator[str]:
    for shape, words, sequences in _DENSE:
        m, n, k = _sizes(shape)
        for types in sequences:
            operands = _factors(m, n, k, types)
            if shape == "m8n8k16":  # its registers are integers
                operands = operands.replace("r:b32", "N")
            yield f"mma | sync aligned {shape} row col {words} | {types} | {operands}"
    for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"):
        m, n, k = _sizes(shape)
        d, a, b = (_fragment(size, "f64", "d") for size in (m * n, m * k, n * k))
        yield f"mma | sync aligned {shape} row col {_ROUND} | f64.f64.f64.f64 | {d} {a} {b} {d}"
    for types in (*_HALF, "f32.f16.f16.f16"):
        of_d = "{4d:f16x2}" if types.startswith("f16") else "{8d:f32}"
        of_c = "{4r:f16x2}" if types.endswith("f16") else "{8r:f32}"
        operands = f"{of_d} {{2r:f16x2}} {{2r:f16x2}} {of_c}"
        yield f"mma | sync aligned m8n8k4 row/col row/col | {types} | {operands}"
    for shape in ("m8n8k128", "m16n8k128", "m16n8k256"):
        m, n, k = _sizes(shape)
        sums = _fragment(m * n, "s32", "r")
        operands = f"{sums} {_packed(m * k, 'b1')} {_packed(n * k, 'b1')} {sums}"
        yield f"mma | sync aligned {shape} row col xor/and popc | s32.b1.b1.s32 | {operands}"


def _sparse_products() -> Iterator[str]:
    for shape, words, sequences in _SPARSE:
        m, n, k = _sizes(shape)
        for types in sequences:
            d, a, *_ = types.split(".")
            operands = f"{_factors(m, n, k, types, a_part=2)} {_selector(a, k)}"
            if d == "f32" and _BITS[a] > 8:  # as ptxas, which takes any type of 32 bits
                operands = re.sub("f32|bf16x2|tf32", "b32", operands)
            # Of 8-bit floats with sums of 16 bits, only the target sm_120a has sparse products.
            is_ordered = d == "f16" and a not in ("f16", "bf16")
            for sparse in ("mma.sp", "mma.sp::ordered_metadata")[is_ordered:]:
                yield f"{sparse} | sync aligned {shape} row col {words} | {types} | {operands}"


_SMALL: Final = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")


def _scaled_products() -> Iterator[str]:
    """Products of Blackwell's types, with factors for blocks of elements or without."""
    pairs = [(a, b) for a in _SMALL for b in _SMALL]
    plain = " ".join(f"{d}.{a}.{b}.{d}" for d in ("f16", "f32") for a, b in pairs)
    scaled = " ".join(f"f32.{a}.{b}.f32.ue8m0" for a, b in pairs)
    for name, shapes in (("mma", "m16n8k32"), ("mma.sp::ordered_metadata", "m16n8k64")):
        head = f"{name} | sync aligned {shapes} row col"
        yield f"{head} kind::f8f6f4 | {plain} | ..."
        yield f"{head} kind::mxf8f6f4 block_scale [scale_vec::1X] | {scaled} | ..."
    fours = "f32.e2m1.e2m1.f32.ue8m0 f32.e2m1.e2m1.f32.ue4m3"
    for name, shapes in (("mma", "m16n8k64"), ("mma.sp::ordered_metadata", "m16n8k128")):
        head = f"{name} | sync aligned {shapes} row col"
        yield f"{head} kind::mxf4 block_scale [scale_vec::2X] | {fours.split()[0]} | ..."
        yield f"{head} kind::mxf4nvf4 block_scale scale_vec::2X/scale_vec::4X | {fours} | ..."


_PLACES: Final = (
    ("", "m:word"),
    ("global", "m:globalword"),
    ("shared/shared::cta", "m:sharedword"),
)
_OPAQUE_SHAPES: Final = ("m16n16k16", "m8n32k16", "m32n8k16")


_HELD: Final = {
    "f64": "d:f64", "f32": "d:f32", "f16": "d:f16x2", "bf16": "d:bf16x2", "tf32": "d:tf32",
    "s32": "N", "u8": "N", "s8": "N",
}  # fmt: skip


def _opaque(number: int, kind: str) -> str:
    """The registers of an opaque fragment."""
    letter = _HELD.get(kind, "d:b32")
    return f"{{{number}{letter}}}"


def _opaque_factors() -> Iterator[tuple[str, str, int, int]]:
    """The shapes and types of factors, and the registers of A and of B."""
    for shape in _OPAQUE_SHAPES:
        m, n, _ = _sizes(shape)
        yield shape, "f16", 8, 8
        yield shape, "bf16", m // 4, n // 4
        for kind in ("u8", "s8"):
            yield shape, kind, m // 8, n // 8
    yield "m16n16k8", "tf32", 4, 4
    yield "m8n8k4", "f64", 1, 1
    for kind in ("u4", "s4"):
        yield "m8n8k32", kind, 1, 1
    yield "m8n8k128", "b1", 1, 1


def _opaque_sums() -> Iterator[tuple[str, str, int]]:
    """The shapes and types of C and D, and their registers."""
    for shape in _OPAQUE_SHAPES:
        yield from ((shape, "f16", 4), (shape, "f32", 8), (shape, "s32", 8))
    yield from (("m16n16k8", "f32", 8), ("m8n8k4", "f64", 2))
    yield from (("m8n8k32", "s32", 2), ("m8n8k128", "s32", 2))


def _opaque_products() -> Iterator[str]:
    """The forms of `wmma`."""
    factors = {(shape, kind): (a, b) for shape, kind, a, b in _opaque_factors()}
    for space, place in _PLACES:
        for (shape, kind), (a, b) in factors.items():
            of_a, of_b = ("row", "col") if _BITS[kind] < 8 else ("row/col", "row/col")
            for letter, number, order in (("a", a, of_a), ("b", b, of_b)):
                head = f"wmma.load.{letter} | sync aligned {order} {shape} {space} | {kind} |"
                operands = f"{_opaque(number, kind)} {place}"
                yield f"{head} {operands} ; {operands} n"
        for shape, kind, number in _opaque_sums():
            registers = _opaque(number, kind)
            words = f"sync aligned row/col {shape} {space} | {kind} |"
            yield f"wmma.load.c | {words} {registers} {place} ; {registers} {place} n"
            yield f"wmma.store.d | {words} {place} {registers} ; {place} {registers} n"
    sums = {(shape, kind): number for shape, kind, number in _opaque_sums()}
    for (shape, kind), (a, b) in factors.items():
        if kind == "f16":
            products = [(d, c, f"{d}.{c}") for d in ("f16", "f32") for c in ("f16", "f32")]
        else:
            d = "f64" if kind == "f64" else "s32" if kind[0] in "us" or kind == "b1" else "f32"
            products = [(d, d, f"{d}.{kind}.{kind}.{d}")]
        word_of = {"f64": "[rn/rz/rm/rp]", "b1": "xor/and popc"}
        word = word_of.get(kind, "[satfinite]" if kind[0] in "us" else "")
        orders = "row col" if _BITS[kind] < 8 else "row/col row/col"
        for d, c, types in products:
            of_d, of_c = (
                _opaque(sums[shape, each], each).replace("d:f64", "d:b64") for each in (d, c)
            )
            operands = f"{of_d} {_opaque(a, kind)} {_opaque(b, kind)} {of_c}".replace("d:b32", "N")
            yield (f"wmma.mma | sync aligned {orders} {shape} {word} | {types} | {operands}")


_GROUP_FLOATS: Final = (
    # k, the types, what A has in registers, the numbers behind the scale of D
    (16, "f32.f16.f16", "f16x2", True),
    (16, "f16.f16.f16", "f16x2", True),
    (16, "f32.bf16.bf16", "bf16x2", True),
    (8, "f32.tf32.tf32", "tf32", False),
    *(
        (32, f"{d}.{a}.{b}", "bf16x2", False)
        for d in ("f16", "f32")
        for a in ("e4m3", "e5m2")
        for b in ("e4m3", "e5m2")
    ),
)
_SIGN: Final = "=-1/=1"


def _group_products() -> Iterator[str]:
    """The forms of `wgmma`."""
    yield "wgmma.fence wgmma.commit_group | sync [aligned] | - |"
    yield "wgmma.wait_group | sync [aligned] | - | =0..2147483647"
    for n in range(8, 257, 8):
        for k, types, held, is_turned in _GROUP_FLOATS:
            d = f"{{{n // 2}d:f32}}" if types.startswith("f32") else f"{{{n // 4}d:f16x2}}"
            of_a, of_b = ("=0..1 =0..1", "=0..1") if is_turned else ("", "")
            for sparse, metadata in ((False, ""), (True, _selector(types.split(".")[1], 2 * k))):
                shape = f"m64n{n}k{2 * k if sparse else k}"
                tail = f"h {metadata} P/=0..1 {_SIGN} {_SIGN}"
                yield (
                    f"wgmma.mma_async | {'sp ' * sparse}sync [aligned] {shape} | {types} | "
                    f"{d} h {tail} {of_a} ; {d} {{4r:{held}}} {tail} {of_b}"
                )
        if n % 16 and n > 24:
            continue
        d = f"{{{n // 2}N}}"
        for sparse, k, metadata in ((False, 32, ""), (True, 64, "r:b32 =0")):
            yield (
                f"wgmma.mma_async | {'sp ' * sparse}sync [aligned] m64n{n}k{k} [satfinite] | "
                f"s32.u8.u8 s32.u8.s8 s32.s8.u8 s32.s8.s8 | "
                f"{d} h h {metadata} P/=0..1 ; {d} {{4r:b32}} h {metadata} P/=0..1"
            )
        yield (
            f"wgmma.mma_async | sync [aligned] m64n{n}k256 and popc | s32.b1.b1 | "
            f"{d} h h P/=0..1 ; {d} {{4r:b32}} h P/=0..1"
        )


def _all_products() -> Iterator[str]:
    """Yield the forms of `mma`."""
    yield from _products()
    yield from _sparse_products()
    yield from _scaled_products()


OPCODES: Final = Chapter(
    f"""
opcode mma | matrix | mma | - | -
needs m8n8k4 f16 | sm_70 6.4
needs m16n8k8 f16 | sm_75 6.5
needs m8n8k16/m8n8k32 | sm_75 6.5
needs m8n8k128 | sm_75 7.0
needs m8n8k4 f64 | sm_80 7.0
needs m16n8k4/m16n8k8 tf32/bf16 | sm_80 7.0
needs m16n8k16/m16n8k32/m16n8k64/m16n8k128/m16n8k256 | sm_80 7.0
needs m16n8k4/m16n8k8/m16n8k16 f64 | sm_90 7.8
needs and.popc/and | sm_80 7.1
needs sp | sm_80 7.1
needs sp::ordered_metadata | sm_80 8.5
needs e4m3/e5m2 | sm_89 8.4
needs e4m3/e5m2 m16n8k16/f16 | sm_89 8.7
needs sp/sp::ordered_metadata e4m3/e5m2 f16 !kind::f8f6f4 | sm_120a 8.7, sm_120f 8.8
needs kind::f8f6f4 | {RECENT} 8.6
needs kind::f8f6f4 e2m1/e2m3/e3m2 | sm_120f 8.7
needs block_scale | sm_120f 8.7
needs scale_vec::4X ue8m0 | sm_120f 9.1
forms products

opcode wmma | matrix, load=load matrix, store=store matrix, has_two_words | wmma | - | sm_70 6.0
needs aligned | sm_70 6.3
needs shared::cta | sm_70 7.8
needs s8/u8/s32 | sm_72 6.3
needs m8n8k32/m8n8k128 | sm_75 6.3
needs bf16/tf32/f64/m16n16k8 | sm_80 7.0
needs b1 and | sm_80 7.1
forms opaque_products

opcode wgmma | matrix, may_be_late | wgmma | - | sm_90a 8.0
needs sp | sm_90a 8.2
needs s8.u8/u8.s8 | sm_90a 8.4
forms group_products

opcode tcgen05 | matrix, may_be_late | tcgen05 tcgen05_mma | - | sm_100f sm_110f 8.6
needs kind::i8 | sm_100a sm_110a 8.6
needs shift | sm_100a sm_103a sm_110a 8.6, sm_107a 9.4
needs scale_vec::* | sm_100a sm_103a sm_110a 8.6, sm_107a 9.4
needs block16/block32 | sm_100f sm_110f 8.8
needs block_scale !scale_vec::* | sm_100a 8.6, sm_100f sm_110f 8.8
needs sp kind::mxf4/kind::mxf4nvf4 | sm_100a sm_103a sm_110a 8.6, sm_107a 9.4
unchecked the operation checks its operands where a kernel is taken from its module
""",
    {
        "products": _all_products,
        "opaque_products": _opaque_products,
        "group_products": _group_products,
    },
)
