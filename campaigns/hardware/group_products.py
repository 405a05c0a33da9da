"""`wgmma` with every number of columns, and every type of its factors and sums, whole and sparse.

A product has up to 64 KiB of sums. So each thread stores one word that depends on all bits of its
own sums, in their order.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from .case import Buffer, Case

CASES: Final = 64
_THREADS: Final = 128
_STAGED: Final = 65536
_RIGHT: Final = 32768
_ALIGNMENT: Final = {0: 16, 1: 1024, 2: 512, 3: 256}
"""Of a matrix in shared memory, by its swizzle."""
_HALVES: Final = ("f16.f16.f16", "f32.f16.f16", "f32.bf16.bf16")
_NARROW: Final = tuple(
    f"{d}.{a}.{b}" for d in ("f32", "f16") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")
)
_BYTES: Final = tuple(f"s32.{a}.{b}" for a in ("s8", "u8") for b in ("s8", "u8"))
_INTEGER_COLUMNS: Final = (8, 16, 24, *range(32, 257, 16))
_KINDS: Final = ("f16", "bf16", "tf32", "e4m3", "e5m2", "b32")
_FOLD: Final = "0x9E3779B1"


@dataclass(frozen=True, slots=True)
class _Product:
    """One instruction.

    Attributes:
        k: the length of its sums.
        types: of the sums and both factors.
        modifiers: those after the shape.
    """

    columns: int
    k: int
    types: str
    is_sparse: bool
    modifiers: str = ""

    @property
    def name(self) -> str:
        """The instruction without its operands."""
        sparse = ".sp" * self.is_sparse
        k = self.k * (2 if self.is_sparse else 1)
        shape = f"m64n{self.columns}k{k}"
        tail = f"{self.types}{self.modifiers}"
        return f"wgmma.mma_async{sparse}.sync.aligned.{shape}.{tail}"

    @property
    def sums(self) -> str:
        """The type of the sums."""
        return self.types.partition(".")[0]

    @property
    def factors(self) -> tuple[str, str]:
        """The formats of A and B."""
        found = self.types.split(".")[1:]
        return tuple(each if each in _KINDS else "b32" for each in found)  # type: ignore[return-value]  # two types follow the sums'

    @property
    def registers(self) -> int:
        """The registers of a thread's sums."""
        return self.columns // (4 if self.sums == "f16" else 2)


def _products(columns: int, is_sparse: bool) -> Iterator[_Product]:
    kinds = [(16, _HALVES, ""), (8, ("f32.tf32.tf32",), ""), (32, _NARROW, "")]
    if columns in _INTEGER_COLUMNS:
        kinds += [(32, _BYTES, ""), (32, _BYTES[:1], ".satfinite")]
        kinds += [] if is_sparse else [(256, ("s32.b1.b1",), ".and.popc")]
    for k, types, modifiers in kinds:
        # The word stands before the types: `.satfinite` after the shape's types is PTX's order.
        for each in types:
            yield _Product(columns, k, each, is_sparse, modifiers)


def group_products_case(number: int) -> Case:
    """Return the case of one number of columns, below `CASES`: even whole, odd sparse products."""
    columns, is_sparse = 8 * (number // 2 + 1), bool(number % 2)
    chance = random.Random(f"products {number}")
    products = list(_products(columns, is_sparse))
    names = [*(f"I{k}" for k in range(len(_KINDS) + 2)), *(f"O{k}" for k in range(len(products)))]
    lines = [
        ".version 9.0", ".target sm_90a", ".address_size 64",
        ".extern .shared .align 1024 .b8 sm[];",
        f".visible .entry K({','.join(f'.param .u64 {name}' for name in names)})", "{",
        ".reg .b64 x,da,db,s; .reg .b32 t,z,h,ee,w<4>,a<4>,sa; .reg .pred p,q;",
        "mov.u32 t,%tid.x; mov.u32 sa,sm;",
        f"ld.param.u64 x,[I{len(_KINDS) + 1}]; mad.wide.u32 x,t,4,x; ld.global.b32 ee,[x];",
        # Two bits a pair of elements that all types allow: 0 and 1, or 2 and 3.
        "and.b32 ee,ee,0x88888888; shr.b32 z,ee,2; or.b32 ee,ee,z; or.b32 ee,ee,0x44444444;",
    ]  # fmt: skip
    for index, product in enumerate(products):
        lines += _text(chance, product, index)
    buffers = [
        *(Buffer(kind, _STAGED) for kind in _KINDS),
        Buffer("f32 c", _THREADS * 512),
        Buffer("b32", _THREADS * 4),
        *(Buffer("zero", _THREADS * 4, "u4") for _ in products),
    ]
    text = "\n".join((*lines, "ret;", "}", ""))
    return Case(
        f"products{number:02d}",
        text,
        tuple(buffers),
        tuple(each.name for each in products),
        threads=_THREADS,
        shared_bytes=_STAGED,
    )


def _text(chance: random.Random, product: _Product, index: int) -> list[str]:
    """Return the lines that load the factors, multiply, and store a word of each thread."""
    in_registers = chance.random() < 0.25
    each = range(product.registers)
    register = "f32" if product.sums == "f32" else "b32"
    (place_a, a), (place_b, b) = (
        _descriptor(chance, place, product.is_sparse) for place in (0, _RIGHT)
    )
    a_text = "{a0,a1,a2,a3}" if in_registers else "da"
    sums = ",".join(f"d{k}" for k in each)
    sparse = f",ee,{chance.choice((0, 1))}" if product.is_sparse and _has_pairs(product) else ""
    if product.is_sparse and not sparse:
        sparse = ",ee,0"
    left, right = (_KINDS.index(kind) for kind in product.factors)
    flags = _flags(chance, product, in_registers)
    return [
        f"{{.reg .{register} d<{product.registers}>;",
        *_staged(index, left, 0),
        *_staged(index, right, _RIGHT, "R"),
        *_sums(product, register),
        f"ld.param.u64 x,[I{left}]; mad.wide.u32 x,t,16,x; "
        "ld.global.v4.b32 {a0,a1,a2,a3},[x+4096];",
        "fence.proxy.async; bar.sync 0;",
        f"add.u32 z,sa,{place_a}; shr.u32 z,z,4; cvt.u64.u32 s,z; mov.b64 da,{a}; or.b64 da,da,s;",
        f"add.u32 z,sa,{place_b}; shr.u32 z,z,4; cvt.u64.u32 s,z; mov.b64 db,{b}; or.b64 db,db,s;",
        f"setp.{chance.choice(('ne', 'ne', 'eq'))}.u32 p,sa,4294967295; wgmma.fence.sync.aligned;",
        f"{product.name} {{{sums}}},{a_text},db{sparse},p{flags};",
        "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; mov.b32 h,0;",
        *(f"mov.b32 z,d{k}; mad.lo.u32 h,h,{_FOLD},z;" for k in each),
        f"ld.param.u64 x,[O{index}]; mad.wide.u32 x,t,4,x; st.global.b32 [x],h; bar.sync 0;}}",
    ]


def _has_pairs(product: _Product) -> bool:
    """Return whether two groups of threads can have the metadata, so that a number chooses one."""
    return product.factors[0] in ("f16", "bf16", "tf32")


def _staged(index: int, buffer: int, place: int, label: str = "L") -> list[str]:
    """Return the loop that copies half of a buffer to shared memory."""
    name = f"{label}{index}"
    return [
        f"ld.param.u64 x,[I{buffer}]; mad.wide.u32 x,t,16,x; mad.lo.u32 z,t,16,sa; mov.u32 a0,0;",
        f"add.u64 x,x,{place}; add.u32 z,z,{place};",
        f"{name}: ld.global.v4.b32 {{w0,w1,w2,w3}},[x]; st.shared.v4.b32 [z],{{w0,w1,w2,w3}};",
        "add.u64 x,x,2048; add.u32 z,z,2048; add.u32 a0,a0,1; "
        f"setp.lt.u32 q,a0,{_RIGHT // 2048}; @q bra {name};",
    ]


def _sums(product: _Product, register: str) -> list[str]:
    """Return the loads of the first sums: numbers of about 1; small integers are as good."""
    source = len(_KINDS) if product.sums == "f32" else 0
    pairs = range(0, product.registers, 2)
    return [
        f"ld.param.u64 x,[I{source}]; mad.wide.u32 x,t,{4 * product.registers},x;",
        *(f"ld.global.v2.{register} {{d{k},d{k + 1}}},[x+{4 * k}];" for k in pairs),
    ]


def _descriptor(chance: random.Random, place: int, is_sparse: bool) -> tuple[int, int]:
    """Return the place of a matrix in shared memory, and its descriptor without the place."""
    # The emulator rejects 64 bytes along k in rows that are swizzled by 32 bytes.
    swizzle = chance.choice((0, 0, 1, 2) if is_sparse else (0, 0, 1, 2, 3))
    if swizzle:
        leading, stride = chance.choice((16, 1024, 2048)), _ALIGNMENT[swizzle]
    else:
        leading, stride = chance.choice((128, 256, 512, 1024)), chance.choice((128, 256, 512))
    return place, leading >> 4 << 16 | stride >> 4 << 32 | swizzle << 62


def _flags(chance: random.Random, product: _Product, in_registers: bool) -> str:
    """Return the signs and transpositions of a product."""
    if product.sums == "s32":
        return ""
    numbers: Sequence[int] = [chance.choice((1, 1, -1)) for _ in range(2)]
    if product.k == 16:
        numbers = [*numbers, *(chance.choice((0, 0, 1)) for _ in range(1 if in_registers else 2))]
    return "".join(f",{number}" for number in numbers)
