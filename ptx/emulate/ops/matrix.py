"""Matrices of the tensor cores: elements, fragments, shared memory, and A * B + C.

PTX ISA, "mma.sync" data types, "mma.sync" and "wmma" fragments, "wgmma" and "tcgen05" descriptors.

**Elements.** Floats of 6 and 4 bits take a byte each; those of 4 bits use its middle four. "e2m1x8"
are eight in a word.

**Fragments.** A lane has a group (lane / 4) and a place in it (lane % 4). A 32-bit register holds e
= 32 / width adjacent elements of one row of A (of one column of B). A 64-bit register holds one
element. A register is a tile of 8 rows (columns of B) by 4 * e elements. The registers of a lane
follow in this order:

- A: the two halves of 16 rows, then further tiles along k, then the next 16 rows.
- B: tiles along k, then the next 8 columns.
- C: a group holds a row, a place two columns. The tile 8 rows further comes next, then the tiles of
  the next columns, then the next 16 rows.

The ISA leaves the fragments of `wmma` open; here they are those of an H100. They are the same as
above, with copies in the remaining registers, and all transposed for 8 rows by 32 columns. The
fragments of `mma.m8n8k4` with f16 are those of Volta: four products of eight lanes each.

**Arithmetic.** Integers are exact, and float64 is a chain of fused multiply-adds along k. For f32
and f16 results the ISA requires about the precision of the result and leaves order and rounding
open. Here they equal the results measured on an H100 (capability 9.0), bit for bit. Other
architectures truncate elsewhere and differ in the last bits.

- Products are exact. The exponent of a product is the sum of its factors' exponents.
- Products and C are truncated to multiples of 2**-25 of the greatest of their exponents.
- Their exact sum is rounded towards zero to f32, or to the nearest f16.

Two kinds of products are different:

- Products of 8-bit floats are two such sums, of the lower and the upper two bytes of each word, to
  which C is added.
- `mma.m8n8k4` of f16, which only Volta has, is done in steps of f32.

`wgmma` is the same, except for 8-bit floats: one sum, truncated to multiples of 2**-13. Subnormal
factors and C have the least exponent of their formats there, and an f32 result has 13 bits of the
fraction.

**Shared memory.** A matrix is rows of A (columns of B) by 32 bytes along k; the B of a sparse
product has 64. A K-major matrix has 16 bytes of a row side by side. An MN-major one has 8 or 16
rows of one k side by side; its elements have 16 bits, or for `tcgen05` also 8. These 16 bytes lie

- without swizzling: 8 of them in a line, which is 8 rows of the first half of k (or k 0 to 7 of as
  many rows). Lines follow by the leading and the stride offset.
- with swizzling: in rows of 32, 64 or 128 bytes, eight of which are a pattern. Bits of the address
  from 4 on are exclusive-ored with those from 7 on, less the base offset.

A descriptor has its fields from these bits: 0 the address, 16 the leading offset, 32 the stride
offset, each of 14 bits and in units of 16 bytes. Bit 49: the base offset, 3 bits. Bit 62
(`tcgen05`: 61): the swizzling. Layouts that the ISA defines by figures alone follow an H100. The
ISA does not define the second half of 64 bytes along k in rows of 32; such descriptors are
rejected.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate import ieee
from ptx.emulate.access.memory_access import load_vector
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Index, addresses_in
from ptx.emulate.model.errors import EmulationFault
from ptx.emulate.model.geometry import WARP
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction

WIDTHS = {
    "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "e4m3": 8, "e5m2": 8,
    "s32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
    "e2m3": 8, "e3m2": 8, "e2m1": 8, "e2m1x8": 4,
}  # fmt: skip
"""Bits of an element."""
_BYTES = np.arange(256, dtype=np.uint8)
_FORMATS = {
    "e4m3": (ieee.E4M3, _BYTES),
    "e5m2": (ieee.E5M2, _BYTES),
    "e2m3": (ieee.E2M3, _BYTES & 63),
    "e3m2": (ieee.E3M2, _BYTES & 63),
    "e2m1": (ieee.E2M1, _BYTES >> 2 & 15),
    "e2m1x8": (ieee.E2M1, _BYTES & 15),
}
"""Narrow floats, and the bits of each byte that are one."""
_TF32 = np.uint32(0xFFFFE000)  # the bits of a float32 that count
_CANONICAL = {"f32": 0x7FFFFFFF, "f16": 0x7FFF}


def held(element: str) -> str:
    """The PTX type of a register that holds elements of a type."""
    return "f64" if element == "f64" else "b32"


def plain_words(i: Instruction) -> tuple[str, ...]:
    """The modifiers but for types: as the table's name has them, and then the others."""
    return i.facts.words


def element_types(i: Instruction) -> tuple[str, ...]:
    """The types of elements among the modifiers, in order."""
    return tuple(word for word in i.modifiers if word in WIDTHS)


def separate(words: NDArray[Any], element: str) -> NDArray[Any]:
    """The elements of words in order, each in the smallest unsigned integer that holds its bits."""
    words = np.ascontiguousarray(words)
    width = WIDTHS[element]
    if width == 64:
        return words
    if width >= 8:
        return words.view(f"u{width // 8}")
    octets = words.view(np.uint8)
    if width == 1:
        return np.unpackbits(octets, axis=-1, bitorder="little")
    return np.stack([octets & 15, octets >> 4], axis=-1)


@lru_cache(maxsize=6)  # by format
def _narrow_values(element: str) -> NDArray[np.float64]:
    """(256,) the value of each byte."""
    kind, bits = _FORMATS[element]
    halves = ieee.from_narrow(bits, source=kind)
    return np.asarray(halves).view(np.float16).astype(np.float64)


def decoded(bits: NDArray[Any], element: str) -> NDArray[Any]:
    """The numbers that bits mean, exactly: float64, but int64 for s32."""
    numbers: NDArray[Any]
    if element in ("f64", "u8", "u4", "b1"):
        numbers = bits
    elif element in ("f32", "f16"):
        numbers = bits.view(f"f{bits.itemsize}")
    elif element == "bf16":
        numbers = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    elif element == "tf32":
        numbers = (bits & _TF32).view(np.float32)
    elif element in _FORMATS:
        numbers = _narrow_values(element).take(bits)
    elif element == "s4":
        numbers = (bits << np.uint8(4)).view(np.int8) >> 4
    else:
        numbers = bits.view(f"i{bits.itemsize}")
    return numbers.astype(np.int64 if element == "s32" else np.float64, copy=False)


def encoded(values: NDArray[Any], element: str) -> NDArray[Any]:
    """Numbers rounded once to nearest, a NaN canonical, integers modulo 2**32.

    The last axis is packed into words, or left away where a word holds one element.
    """
    if element in ("f64", "s32"):
        return (values if element == "f64" else values.astype(np.uint32))[..., 0]
    narrow = values.astype(np.float32 if element == "f32" else np.float16)
    bits = narrow.view(np.uint32 if element == "f32" else np.uint16)
    bits[np.isnan(values)] = _CANONICAL[element]
    packed: NDArray[np.uint32] = np.ascontiguousarray(bits).view(np.uint32)[..., 0]
    return packed


Words = NDArray[Any]  # (warps, 32, registers) of uint32 or float64
Matrices = NDArray[Any]  # (warps * count, rows, columns) of float64 or int64
Places = tuple[Index, Index]  # (32, registers, e): row and column of each lane's elements


class MatrixShape(NamedTuple):
    """An `mma` multiplies an (m, k) matrix by an (k, n) one."""

    m: int
    n: int
    k: int


@lru_cache(maxsize=64)  # by the modifiers that PTX has
def shape_of(word: str) -> MatrixShape:
    """The shape that a modifier such as "m16n8k16" names."""
    m, extents = word[1:].split("n")
    n, k = extents.split("k")
    return MatrixShape(int(m), int(n), int(k))


class Fragment:
    """The distribution of a matrix over a warp's registers, or of `count` matrices of one shape.

    Attributes:
        row, column: (32, registers, e) of each lane's elements.
        spots: (32 * registers * e,) those places as one number over all matrices.
        homes: (count * rows * columns,) where each element lies among all lanes' elements, the
            first place if it has several.
    """

    __slots__ = ("column", "columns", "count", "element", "homes", "row", "rows", "spots")

    def __init__(
        self, rows: int, columns: int, element: str, positions: Places, matrix: Index | None = None
    ) -> None:
        self.rows: int = rows
        self.columns: int = columns
        self.element: str = element
        self.row: Index = positions[0]
        self.column: Index = positions[1]
        spot = self.row * columns + self.column
        self.count: int = 1
        if matrix is not None:
            self.count = int(np.max(matrix)) + 1
            spot = spot + matrix * (rows * columns)
        self.spots: Index = spot.reshape(-1)
        self.homes: Index = np.empty(self.count * rows * columns, dtype=np.intp)
        self.homes[self.spots[::-1]] = np.arange(self.spots.size - 1, -1, -1)

    @property
    def registers(self) -> int:
        """Number of registers that it takes in each lane."""
        return int(self.row.shape[1])

    def gathered(self, words: Words) -> Matrices:
        """The matrices that the warps' registers hold, those of a warp one after another."""
        elements = separate(words, self.element).reshape(len(words), -1)
        values = decoded(elements.take(self.homes, axis=1), self.element)
        return values.reshape(-1, self.rows, self.columns)

    def spread(self, values: Matrices) -> Words:
        """The registers that hold results, rounded to the type."""
        flat = values.reshape(-1, self.homes.size).take(self.spots, axis=1)
        return encoded(flat.reshape(-1, *self.row.shape), self.element)


def _extent(shape: MatrixShape, role: str) -> tuple[int, int]:
    extents = {"a": (shape.m, shape.k), "b": (shape.k, shape.n), "c": (shape.m, shape.n)}
    return extents[role]


def _places(rows: int, columns: int, element: str, role: str) -> Places:
    """`role` is "a", "b" or "c"."""
    if role == "b":
        column, row = _places(columns, rows, element, "b transposed")
        return row, column
    width = WIDTHS[element]
    per_register = max(1, 32 // width)
    lane = np.arange(WARP)[:, None, None]
    register = np.arange(rows * columns // (WARP * per_register))[None, :, None]
    part = np.arange(per_register)[None, None, :]
    group, quad_lane = lane >> 2, lane & 3
    halves = 2 if rows > 8 and role != "b transposed" else 1
    if role == "c":
        number = register * per_register + part
        pair, tile, step = number & 1, number >> 1, 8
        along = 2 * quad_lane + pair
    else:
        tile, step = register + 0 * part, 4 * per_register
        along = quad_lane * per_register + part
    half, tile = tile % halves, tile // halves
    column = along + tile % (columns // step) * step
    row = group + 8 * (half + halves * (tile // (columns // step)))
    row, column = np.broadcast_arrays(row, column)
    return row.astype(np.intp), column.astype(np.intp)


@lru_cache(maxsize=256)  # by the shapes and types that PTX has
def fragment(shape: MatrixShape, element: str, role: str) -> Fragment:
    """The fragment of `mma` that the ISA describes."""
    rows, columns = _extent(shape, role)
    return Fragment(rows, columns, element, _places(rows, columns, element, role))


@lru_cache(maxsize=256)  # by the shapes and types that PTX has
def opaque_fragment(shape: MatrixShape, element: str, role: str) -> Fragment:
    """The fragment of `wmma`."""
    rows, columns = _extent(shape, role)
    if shape.m == 8 and shape.n == 32:
        other = {"a": "b", "b": "a", "c": "c"}[role]
        column, row = _places(columns, rows, element, other)
    else:
        row, column = _places(rows, columns, element, role)
    if element == "f16" and role != "c":
        copies = 8 // row.shape[1]
        row, column = np.tile(row, (1, copies, 1)), np.tile(column, (1, copies, 1))
    return Fragment(rows, columns, element, (row, column))


@lru_cache(maxsize=16)  # by the types and orders that PTX has
def quad_fragment(element: str, role: str, order: str) -> Fragment:
    """The fragment of `mma.m8n8k4` with f16: lanes 4q to 4q+3 and 16 more hold matrices q."""
    lane, number = np.broadcast_arrays(np.arange(WARP)[:, None], np.arange(8 if role == "c" else 4))
    quad, lower = (lane & 15) >> 2, 4 * (lane >> 4)
    if role == "c" and element == "f32":
        row = (lane & 1) + (number & 2) + lower
        column = (number & 4) + (lane & 2) + (number & 1)
    elif role == "c" or (role == "a") == (order == "row"):
        # Each lane holds a row, or a column of B.
        row, column = (lane & 3) + lower, number
    else:
        # Each lane holds a half of a column of A, or of a row of B.
        row, column = (number & 3) + lower, lane & 3
    if role == "b":
        row, column = column, row
    per_register = 32 // WIDTHS[element]
    row, column, quad = (
        x.reshape(WARP, -1, per_register).astype(np.intp) for x in (row, column, quad)
    )
    rows, columns = _extent(MatrixShape(8, 8, 4), role)
    return Fragment(rows, columns, element, (row, column), quad)


Types = tuple[str, str, str, str]  # of D, A, B and C
_KEPT_BITS = 25
_NARROW_KEPT_BITS = 13
_NO_TERM = -600  # an exponent below that of any product
_CACHED = 16384  # elements of D whose sums are worked on together
_NARROW_BITS = np.uint64(0xFFFFFF8000000000)  # 13 bits of a float64's fraction, and what is above
_F32_BITS = np.uint64(0xFFFFFFFFE0000000)  # what float32 has of a float64's bits
_LEAST_EXPONENT = {"f16": -14, "bf16": -126, "tf32": -126, "e4m3": -14, "e5m2": -14}
_NARROW_EXPONENT = {"e4m3": -6, "e5m2": -14, "f16": -14, "f32": -126}
_ROUNDINGS = {
    "rn": ieee.Rounding.RN,
    "rz": ieee.Rounding.RZ,
    "rm": ieee.Rounding.RM,
    "rp": ieee.Rounding.RP,
}
OPTIONS = ("satfinite", "xor", "and", *_ROUNDINGS)
"""The modifiers that change the result."""


def product(
    a: Matrices, b: Matrices, c: Matrices, types: Types, options: tuple[str, ...] = ()
) -> Matrices:
    """A * B + C.

    B may be (n, rows of A, k, columns): a matrix for each row of A.
    """
    element, left, right, addend = types
    if element == "s32":
        return _whole(a, b, c, options)
    if element == "f64":
        return _fused(a, b, c, _ROUNDINGS[options[0] if options else "rn"])
    if left not in ("e4m3", "e5m2"):
        # A sum with C of f32 is one of f32, which D may have as f16.
        return cut_sum(a, b, c, (left, right), addend if addend == "f32" else element)
    total = np.zeros_like(c)
    lower = np.arange(a.shape[2]) % 4 < 2
    for part in (lower, ~lower):
        total = cut_sum(a[:, :, part], b[..., part, :], total, (left, right), element)
    rounded: Matrices = (total + c).astype(element.replace("f", "float")).astype(np.float64)
    return rounded


def warpgroup_product(
    a: Matrices, b: Matrices, c: Matrices, types: Types, options: tuple[str, ...] = ()
) -> Matrices:
    """A * B + C of `wgmma`: as `product`, but that 8-bit floats have sums of their own."""
    element, left, right, _ = types
    if left not in ("e4m3", "e5m2"):
        return product(a, b, c, types, options)
    total = cut_sum(a, b, c, (left, right), element, narrow=True)
    if element == "f32":
        total = (total.view(np.uint64) & _NARROW_BITS).view(np.float64) + 0.0
    return total


def product_in_steps(
    a: Matrices, b: Matrices, c: Matrices, types: Types, options: tuple[str, ...] = ()
) -> Matrices:
    """A * B + C of `mma.m8n8k4` with f16: all products and then C to f32; to f16 C halfway."""
    if types[0] == "f32":
        sums = _sum_in_steps(a, b, 0.0) + c.astype(np.float32)
    else:
        sums = _sum_in_steps(a[:, :, :2], b[:, :2], -0.0) + c.astype(np.float32)
        sums += _sum_in_steps(a[:, :, 2:], b[:, 2:], -0.0)
    rounded: Matrices = sums.astype(np.float64)
    return rounded


def _sum_in_steps(a: Matrices, b: Matrices, start: float) -> NDArray[np.float32]:
    total: NDArray[np.float32] = np.full((*a.shape[:2], b.shape[2]), start, dtype=np.float32)
    for k in range(a.shape[2]):
        left, right = np.broadcast_arrays(a[:, :, k, None], b[:, None, k, :])
        total = ieee.fma(left.astype(np.float32), right.astype(np.float32), total)
    return total


def _whole(a: Matrices, b: Matrices, c: Matrices, options: tuple[str, ...]) -> Matrices:
    """Products of integers; of single bits, how many are set in both, or in exactly one."""
    # Exact in float64, as all sums are far below 2**53.
    sums = np.matmul(a, b) if b.ndim == 3 else np.matmul(a[:, :, None], b)[:, :, 0]
    if "xor" in options:
        sums = a.sum(axis=2)[:, :, None] + b.sum(axis=1)[:, None, :] - 2 * sums
    total: Matrices = sums.astype(np.int64) + c
    return np.clip(total, -(2**31), 2**31 - 1) if "satfinite" in options else total


def _fused(a: Matrices, b: Matrices, c: Matrices, rounding: ieee.Rounding) -> Matrices:
    for k in range(a.shape[2]):
        left, right = np.broadcast_arrays(a[:, :, k, None], b[:, None, k, :])
        c = ieee.fma(left.copy(), right.copy(), c, rounding=rounding)
    return c


def _exponents(values: Matrices, least: int) -> NDArray[np.int16]:
    """The exponents of values in the format; a zero's is below all others."""
    exponent = np.frexp(values)[1].astype(np.int16) - np.int16(1)
    return np.where(values == 0, np.int16(_NO_TERM), np.maximum(exponent, np.int16(least)))


def cut_sum(
    a: Matrices,
    b: Matrices,
    c: Matrices,
    factors: tuple[str, str],
    element: str,
    *,
    narrow: bool = False,
) -> Matrices:
    """The sum of all products and C as the tensor cores round it; a zero is always +0.

    `narrow`: as those of `wgmma` do for 8-bit floats.
    """
    least = _NARROW_EXPONENT if narrow else _LEAST_EXPONENT
    cut = _Cut(
        _NARROW_KEPT_BITS if narrow else _KEPT_BITS,
        least[factors[0]],
        least[factors[1]],
        least[element] if narrow else _NO_TERM,
    )
    total = np.empty_like(c)
    step = max(1, _CACHED // c[0].size)
    for start in range(0, len(c), step):
        part = slice(start, start + step)
        _cut_sums(a[part], b[part], c[part], cut, total[part])
    if not all(np.isfinite(matrix).all() for matrix in (a, b, c)):
        total = _with_infinities(total, a, b, c)
    rounded = total.astype(np.float16).astype(np.float64) if element == "f16" else to_f32(total)
    result: Matrices = rounded + 0.0
    return result


class _Cut(NamedTuple):
    """The bits of its terms that a sum retains, and their least exponents."""

    kept_bits: int
    least_of_a: int
    least_of_b: int
    least_of_c: int


def _cut_sums(a: Matrices, b: Matrices, c: Matrices, cut: _Cut, total: Matrices) -> None:
    """The exact sums of the truncated products and C.

    The matrices' number is the last axis here, so that NumPy's loops are long.
    """
    a, b, c = (np.ascontiguousarray(np.moveaxis(x, 0, -1)) for x in (a, b, c))
    of_a = _exponents(a, cut.least_of_a)
    of_b = _exponents(b, cut.least_of_b)
    greatest = _exponents(c, cut.least_of_c)
    for k in range(a.shape[1]):
        np.maximum(greatest, of_a[:, k, None] + of_b[..., k, :, :], out=greatest)
    np.maximum(greatest, _NO_TERM, out=greatest)
    # Every term is an integer multiple of the unit.
    scale = np.ldexp(1.0, cut.kept_bits - greatest.astype(np.intc))
    cut_sums = np.trunc(c * scale)
    term = np.empty_like(cut_sums)
    for k in range(a.shape[1]):
        np.multiply(a[:, k, None], b[..., k, :, :], out=term)
        term *= scale
        cut_sums += np.trunc(term, out=term)
    cut_sums /= scale
    total[:] = np.moveaxis(cut_sums, -1, 0)


def _with_infinities(total: Matrices, a: Matrices, b: Matrices, c: Matrices) -> Matrices:
    plain = c
    for k in range(a.shape[2]):
        right = b[:, None, k] if b.ndim == 3 else b[:, :, k]
        plain = plain + a[:, :, k, None] * right
    corrected: Matrices = np.where(np.isfinite(plain), total, plain)
    return corrected


def to_f32(values: Matrices) -> Matrices:
    """float64 rounded towards zero to values of float32; from 2**128 on infinite."""
    cut: Matrices = (values.view(np.uint64) & _F32_BITS).view(np.float64)
    sizes = np.abs(values)
    too_large = sizes >= 2.0**128
    if too_large.any():
        cut[too_large] = np.copysign(np.inf, values[too_large])
    too_small = sizes < 2.0**-126
    if too_small.any():
        cut[too_small] = np.trunc(values[too_small] * 2.0**149) * 2.0**-149
    return cut


Numbers = NDArray[np.int64]
_UNIT: Final = 16
_WIDTHS: Final = np.array([16, 128, 64, 32])  # by the field at bit 62: bytes of a pattern's row
_MASKS: Final = np.array([0, 7, 3, 1])  # which of three bits are swizzled


@dataclass(frozen=True, slots=True)
class SharedMatrix:
    """The layout by which an instruction reads one factor from shared memory.

    Attributes:
        element: the type; rows: how many each warp reads.
        transposed: whether it is MN-major.
        site: the access of 16 bytes.
        k_bytes: how much of a row it reads.
    """

    element: str
    rows: int
    transposed: bool
    site: Site
    k_bytes: int = 32

    def read(
        self, fibre: Fibre, threads: Index, descriptors: NDArray[np.uint64], first: Numbers
    ) -> Matrices:
        """(warps, rows, k): one thread's matrix of each warp; `first` is each warp's first row.

        Raises:
            MemoryFault: it reaches out of the block's shared memory.
        """
        words = self.load(fibre, threads, descriptors, first)
        elements = separate(words, self.element)
        if self.transposed:
            elements = np.ascontiguousarray(elements.swapaxes(1, 2))
        return decoded(elements.reshape(len(threads), self.rows, -1), self.element)

    def load(
        self, fibre: Fibre, threads: Index, descriptors: NDArray[np.uint64], first: Numbers
    ) -> NDArray[np.uint32]:
        """The matrix as words: (warps, rows, words of a row), or in memory order if MN-major.

        Raises:
            EmulationFault: the emulator does not support its layout.
        """
        fields = _DescriptorFields(descriptors)
        if not self.transposed and self.k_bytes > _WIDTHS[3] and (fields.width == _WIDTHS[3]).any():
            raise EmulationFault(
                f"{self.site.instruction.text} reads 64 bytes along k in rows that are swizzled by"
                " 32 bytes, which the emulator does not know: swizzle by 64 or 128 bytes",
                fibre.where(int(threads[0]), self.site.instruction),
            )
        pieces = self.pieces(descriptors, first)
        pieces_per_thread = pieces[0].size
        part = fibre.subset(np.repeat(threads, pieces_per_thread), ())
        loaded = load_vector(part, addresses_in(pieces.reshape(-1)), 0, self.site)
        words = np.stack([np.broadcast_to(word, (pieces.size,)) for word in loaded], axis=-1)
        return words.reshape(*pieces.shape[:2], -1)

    def pieces(self, descriptors: NDArray[np.uint64], first: Numbers) -> Numbers:
        """The address of each 16 bytes, for each warp, which begins with a row."""
        return self._addresses(_DescriptorFields(descriptors), first[:, None])

    def _addresses(self, d: _DescriptorFields, first: Numbers) -> Numbers:
        """Of each 16 bytes: (warps, rows, 2 or 4), or (warps, k, rows / 8 or 16) if MN-major."""
        if not self.transposed:
            row = first + np.arange(self.rows)
            half = np.arange(self.k_bytes // _UNIT)
            line = (row % 8 * d.width + row // 8 * d.stride)[..., None]
            along = np.where(d.plain, d.leading, _UNIT)[..., None] * half
            return d.swizzled(line + along)
        # The two offsets change their parts where nothing is swizzled.
        elements_per_unit = 8 * _UNIT // WIDTHS[self.element]
        k = np.arange(self.k_bytes * elements_per_unit // _UNIT)
        group = (
            first + elements_per_unit * np.arange(self.rows // elements_per_unit)
        ) // elements_per_unit
        line = k % 8 * d.width + k // 8 * np.where(d.plain, d.leading, d.stride)
        count = d.width // _UNIT
        along = group % count * _UNIT + group // count * np.where(d.plain, d.stride, d.leading)
        return d.swizzled(line[..., None] + along[:, None, :])


class _DescriptorFields:
    """The fields of descriptors, (warps, 1) each."""

    def __init__(self, descriptors: NDArray[np.uint64]) -> None:
        bits = descriptors[:, None].view(np.int64)
        self.start, self.leading, self.stride = (
            (bits >> first_bit & 0x3FFF) * _UNIT for first_bit in (0, 16, 32)
        )
        self.base = bits >> 49 & 7
        mode = bits >> 62 & 3
        self.plain = mode == 0
        self.width: Numbers = _WIDTHS[mode]
        self._mask: Numbers = _MASKS[mode]

    def swizzled(self, offsets: Numbers) -> Numbers:
        """The addresses at offsets, (warps, …, …)."""
        start, base, mask = (x[..., None] for x in (self.start, self.base, self._mask))
        address = start + offsets
        addresses: Numbers = address ^ ((address >> 7) - base & mask) << 4
        return addresses
