"""Random products of `wgmma`: shapes, types, descriptors, swizzles, transposed operands."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from .case import Buffer, Case

_THREADS: Final = 128
_STAGED: Final = 65536
_HEAD: Final = """\
.version 9.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 sm[];
.visible .entry K(.param .u64 A,.param .u64 C,.param .u64 O)
{
.reg .b64 x,da,db,s; .reg .b32 t,z,w<4>,a<4>,sa; .reg .pred p,q;
mov.u32 t,%tid.x; mov.u32 sa,sm; ld.param.u64 x,[A]; mad.wide.u32 x,t,16,x; mad.lo.u32 z,t,16,sa;
mov.u32 a0,0;
LP: ld.global.v4.b32 {w0,w1,w2,w3},[x]; st.shared.v4.b32 [z],{w0,w1,w2,w3};
add.u64 x,x,2048; add.u32 z,z,2048; add.u32 a0,a0,1; setp.lt.u32 q,a0,32; @q bra LP;"""
_COLUMNS: Final = (8, 16, 24, 64, 96, 128, 256)
_ALIGNMENT: Final = {0: 16, 1: 1024, 2: 512, 3: 256}
"""Of a matrix in shared memory, by its swizzle."""


@dataclass(frozen=True, slots=True)
class _Product:
    """The kind of a product.

    Attributes:
        k: the length of its sums.
        types: of the factors.
        factor: the format of the contents of shared memory.
        sums: the types that a sum may have.
    """

    k: int
    types: str
    factor: str
    sums: tuple[str, ...]


def warpgroup_case(number: int, seed: int) -> Case:
    """Return a random program with `wgmma`; its number and the seed choose it."""
    chance = random.Random(f"wgmma {seed} {number}")
    product = _product(chance)
    columns, total = chance.choice(_COLUMNS), chance.choice(product.sums)
    registers = columns // (4 if total == "f16" else 2)
    register = "f32" if total == "f32" else "b32"
    from_registers = chance.random() < 0.25
    (place_a, a), (place_b, b) = (
        _descriptor(chance, (0, 2048), 64),
        _descriptor(chance, (16384, 20480), columns),
    )
    nbytes = _THREADS * registers * 4
    sums = ",".join(f"d{k}" for k in range(registers))
    factor_a = "{a0,a1,a2,a3}" if from_registers else "da"
    op = f"wgmma.mma_async.sync.aligned.m64n{columns}k{product.k}.{total}.{product.types}"
    if total == "s32":
        op += chance.choice(("", ".satfinite"))
    mul = f"{op} {{{sums}}},{factor_a},db,p{_flags(chance, product, from_registers)};"
    is_added = chance.choice(("ne", "ne", "eq"))
    each = range(registers)
    text = "\n".join((
        _HEAD, f".reg .{register} d<{registers}>;",
        f"ld.param.u64 x,[C]; mad.wide.u32 x,t,{registers * 4},x;",
        *(f"ld.global.{register} d{k},[x+{4 * k}];" for k in each),
        "ld.param.u64 x,[A]; mad.wide.u32 x,t,16,x; ld.global.v4.b32 {a0,a1,a2,a3},[x+4096];",
        "fence.proxy.async; bar.sync 0;",
        f"add.u32 z,sa,{place_a}; shr.u32 z,z,4; cvt.u64.u32 s,z; mov.b64 da,{a}; or.b64 da,da,s;",
        f"add.u32 z,sa,{place_b}; shr.u32 z,z,4; cvt.u64.u32 s,z; mov.b64 db,{b}; or.b64 db,db,s;",
        f"setp.{is_added}.u32 p,sa,4294967295; wgmma.fence.sync.aligned;",
        *([mul] * chance.choice((1, 2))),
        "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
        f"ld.param.u64 x,[O]; mad.wide.u32 x,t,{registers * 4},x;",
        *(f"st.global.{register} [x+{4 * k}],d{k};" for k in each), "ret;", "}", "",
    ))  # fmt: skip
    addend = {"f32": "f32 c", "f16": "f16 c", "s32": "b32 c"}[total]
    dtype = {"f32": "f4", "f16": "f2", "s32": "u4"}[total]
    buffers = Buffer(product.factor, _STAGED), Buffer(addend, nbytes), Buffer("zero", nbytes, dtype)
    return Case(
        f"wgmma{seed}.{number}", text, buffers, threads=_THREADS, shared_bytes=_STAGED, seed=number
    )


def _product(chance: random.Random) -> _Product:
    match chance.choice(("f16", "f16", "bf16", "tf32", "fp8", "int8")):
        case "f16":
            return _Product(16, "f16.f16", "f16", ("f32", "f16"))
        case "bf16":
            return _Product(16, "bf16.bf16", "bf16", ("f32",))
        case "tf32":
            return _Product(8, "tf32.tf32", "tf32", ("f32",))
        case "fp8":
            types = [chance.choice(("e4m3", "e5m2")) for _ in range(2)]
            return _Product(32, ".".join(types), types[0], ("f32", "f16"))
        case _:
            types = [chance.choice(("s8", "u8")) for _ in range(2)]
            return _Product(32, ".".join(types), "b32", ("s32",))


def _descriptor(chance: random.Random, places: tuple[int, ...], rows: int) -> tuple[int, int]:
    """Return the place of a matrix in shared memory, and its descriptor without the place."""
    swizzle = chance.choice((0, 0, 1, 2, 3))
    place = chance.choice(places) // _ALIGNMENT[swizzle] * _ALIGNMENT[swizzle]
    if swizzle:
        leading = chance.choice((16, 1024, 2048, 4096))
        # 256 rows in steps of 2048 bytes would pass the end of shared memory.
        stride = _ALIGNMENT[swizzle] * min(chance.choice((1, 1, 2)), 256 // rows)
    else:
        leading = chance.choice((128, 256, 512, 1024, 2048))
        stride = chance.choice((128, 256, 512, 1024))
    return place, leading >> 4 << 16 | stride >> 4 << 32 | swizzle << 62


def _flags(chance: random.Random, product: _Product, from_registers: bool) -> str:
    """Return the signs and transpositions of a product."""
    if product.sums == ("s32",):
        return ""
    text = f",{chance.choice((1, 1, -1))},{chance.choice((1, 1, -1))}"
    if product.k == 16:
        a, b = chance.choice((0, 0, 1)), chance.choice((0, 0, 1))
        text += f",{b}" if from_registers else f",{a},{b}"
    return text
