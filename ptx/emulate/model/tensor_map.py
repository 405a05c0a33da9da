"""Tensor maps and their 128 bytes. PTX ISA, "Tensors", "tensormap.replace".

CUDA leaves the layout open, and GPUs use another one. The emulator's is, from byte 0 on,
little-endian:

| bytes | what |
|---|---|
| 0 to 3 | a mark |
| 4 to 7 | rank - 1, type of elements, interleave, swizzle; one byte each |
| 8 to 15 | address |
| 16 to 35 | extents, innermost first; four bytes each |
| 36 to 39 | mode, what fills elements out of bounds, swizzle atomicity, L2 promotion |
| 40 to 71 | strides in bytes of all but the innermost dimension; eight bytes each |
| 72 to 81 | box; two bytes each |
| 82 to 86 | element strides; one byte each |
| 88 to 103 | of im2col: lower and upper corner, two bytes a dimension; channels, pixels |

Types and modes are numbered as `tensormap.replace` numbers them. Every field lies at a multiple of
its size, so that one store replaces it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final, NamedTuple

NBYTES: Final = 128
MOST_DIMENSIONS: Final = 5
_MARK: Final = 0x70616D74
_HEAD: Final = struct.Struct("<I4BQ5I4B4Q5H5BB")
_CORNERS: Final = struct.Struct("<3h3h2H")
_TILE, _IM2COL = 0, 1


class ElementType(NamedTuple):
    """A type of elements: its name in PTX, the bits of a NaN, and its size.

    `nan` fills elements out of bounds, as on an H200; 0 for types without a NaN.
    """

    name: str
    nbytes: int
    nan: int = 0

    @property
    def is_rounded(self) -> bool:
        """True if loads round to the bits that tensor cores read; stores and sums do not."""
        return self.name.startswith("tf32")

    @property
    def sums_as(self) -> str:
        """The type that sums are of."""
        return self.name.removeprefix("t").removesuffix(".ftz")

    @property
    def flushes(self) -> bool:
        """True if sums make subnormals zero; loads and stores do not, on an H200."""
        return self.name.endswith(".ftz")


ELEMENT_TYPES: Final = {
    0: ElementType("u8", 1), 1: ElementType("u16", 2), 2: ElementType("u32", 4),
    3: ElementType("s32", 4), 4: ElementType("u64", 8), 5: ElementType("s64", 8),
    6: ElementType("f16", 2, 0x7FF7), 7: ElementType("f32", 4, 0x7FF77FF7),
    8: ElementType("f32.ftz", 4, 0x7FF77FF7), 9: ElementType("f64", 8, 0x7FF77FF77FF77FF7),
    10: ElementType("bf16", 2, 0x7FF7), 11: ElementType("tf32", 4, 0x7FF77FF7),
    12: ElementType("tf32.ftz", 4, 0x7FF77FF7),
}  # fmt: skip
"""By their numbers in PTX; those that the emulator does not copy are left out."""
SWIZZLE_SPANS: Final = {0: 0, 1: 32, 2: 64, 3: 128}
"""The bytes within which pieces change places, by the number of the mode."""
SWIZZLE_ATOMS: Final = {0: 16, 1: 32, 3: 64}
"""The bytes of such a piece, by the number of the atomicity; 2, which also flips halves, is left
out. Those above 16 go with the widest span alone."""
_WIDEST: Final = 3
_WIDEST_SLICE: Final = 2
SLICE: Final = 16
"""The bytes of a slice of channels, for each of its mode's number."""


class Field(NamedTuple):
    """A field that `tensormap.replace` writes: its first byte, and the type of an element."""

    at: int
    kind: str
    places: int = 1


FIELDS: Final = {
    "global_address": Field(8, "u64"), "rank": Field(4, "u8"), "elemtype": Field(5, "u8"),
    "interleave_layout": Field(6, "u8"), "swizzle_mode": Field(7, "u8"),
    "fill_mode": Field(37, "u8"), "swizzle_atomicity": Field(38, "u8"),
    "global_dim": Field(16, "u32", 5), "global_stride": Field(40, "u64", 4),
    "box_dim": Field(72, "u16", 5), "element_stride": Field(82, "u8", 5),
}  # fmt: skip


class PixelBox(NamedTuple):
    """The box of `im2col`: the corners of a filter's positions, innermost dimension first."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    channels: int
    pixels: int


class BadTensorMap(ValueError):
    """Bytes that are no tensor map which the emulator copies by."""


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """The contents of a tensor map; sequences are innermost first.

    Attributes:
        address: of the first element.
        element: the type of elements, by its number.
        extents: elements of each dimension.
        strides: bytes, of all dimensions but the innermost.
        box: elements that are traversed; none for `im2col`.
        steps: between elements that are copied; the innermost one counts as 1.
        swizzle: the number of the mode.
        atomicity: the number of the swizzle's.
        fills_nan: whether elements out of bounds are NaN instead of 0.
        pixels: of `im2col`.
        promotion: of the L2 cache, which changes no result.
        interleave: 0, or 1 or 2 where the channels lie in slices of 16 or 32 bytes.
        nbytes_of_map: the bytes of a map; `most_dimensions`: of a tensor.
        element_types: by their numbers; `swizzle_spans`: bytes, by the number of the mode.
    """

    address: int
    element: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: int = 0
    fills_nan: bool = False
    pixels: PixelBox | None = None
    promotion: int = 0
    atomicity: int = 0
    interleave: int = 0
    nbytes_of_map: ClassVar[int] = NBYTES
    most_dimensions: ClassVar[int] = MOST_DIMENSIONS
    element_types: ClassVar[Mapping[int, ElementType]] = ELEMENT_TYPES
    swizzle_spans: ClassVar[Mapping[int, int]] = SWIZZLE_SPANS

    @property
    def rank(self) -> int:
        """Dimensions."""
        return len(self.extents)

    @property
    def type(self) -> ElementType:
        """The type of elements."""
        return ELEMENT_TYPES[self.element]

    @property
    def counts(self) -> tuple[int, ...]:
        """Elements that one copy moves, along each dimension of the box in shared memory."""
        if self.pixels is not None:
            return self.pixels.channels, self.pixels.pixels
        steps = (1, *self.steps[1:])
        return tuple(-(-box // step) for box, step in zip(self.box, steps, strict=True))

    @property
    def pitch(self) -> int:
        """Bytes from one row in shared memory to the next: a swizzle's rows are as long as it.

        CUDA Programming Guide, "Shared Memory Bank Swizzling": there must be memory for the whole
        width of the swizzle. An H200 neither writes nor counts the rest of a shorter row.
        """
        if self.interleave:
            return self.interleave * SLICE
        return SWIZZLE_SPANS[self.swizzle] or self.counts[0] * self.type.nbytes

    @property
    def nbytes(self) -> int:
        """The bytes of one copy, those out of bounds among them."""
        total = self.type.nbytes
        for count in self.counts:
            total *= count
        return total

    @property
    def not_copied(self) -> str:
        """The reason why the emulator rejects it, "" if it copies by it.

        It rejects tensor maps whose copies were never measured on a GPU.
        """
        if not self.interleave:
            return ""
        if self.atomicity:
            return "interleaved tensors with swizzles of larger atoms than 16 bytes"
        pixels = self.pixels
        if pixels and pixels.channels * self.type.nbytes != self.interleave * SLICE:
            return "interleaved images, but one slice of channels at once"
        return ""

    @staticmethod
    def decode(data: bytes) -> TensorLayout:
        """Decode the 128 bytes of a tensor map.

        Raises:
            BadTensorMap: they are no tensor map, or one that cannot be copied by.
        """
        mark, rank, element, interleave, swizzle, address, *fields = _HEAD.unpack_from(data)
        if mark != _MARK:
            raise BadTensorMap("holds no tensor map")
        rank += 1
        extents, (mode, fill, atomicity, promotion), strides = fields[:5], fields[5:9], fields[9:13]
        box, steps = fields[13:18], fields[18:23]
        if rank > MOST_DIMENSIONS or element not in ELEMENT_TYPES or swizzle not in SWIZZLE_SPANS:
            raise BadTensorMap(
                f"holds a tensor map of rank {rank}, element type {element} and swizzle {swizzle}, "
                "by which the emulator does not copy"
            )
        if atomicity not in SWIZZLE_ATOMS or (atomicity and swizzle != _WIDEST):
            raise BadTensorMap(
                f"holds a tensor map of swizzle {swizzle} and swizzle atomicity {atomicity}, by "
                "which the emulator does not copy"
            )
        layout = TensorLayout(
            address,
            element,
            tuple(extents[:rank]),
            tuple(strides[: rank - 1]),
            () if mode else tuple(box[:rank]),
            tuple(steps[:rank]),
            swizzle,
            bool(fill),
            _pixels(data, rank) if mode else None,
            promotion,
            atomicity,
            interleave,
        )
        _check(layout)
        return layout

    def encode(self) -> bytes:
        """The 128 bytes."""
        pixels = self.pixels
        head = _HEAD.pack(
            _MARK,
            self.rank - 1,
            self.element,
            self.interleave,
            self.swizzle,
            self.address,
            *_filled(self.extents, 5),
            _TILE if pixels is None else _IM2COL,
            self.fills_nan,
            self.atomicity,
            self.promotion,
            *_filled(self.strides, 4),
            *_filled(self.box, 5),
            *_filled(self.steps, 5),
            0,
        )
        if pixels is not None:
            head += _CORNERS.pack(
                *_filled(pixels.lower, 3), *_filled(pixels.upper, 3), pixels.channels, pixels.pixels
            )
        return head.ljust(NBYTES, b"\0")

    def with_pixels(
        self, lower: tuple[int, ...], upper: tuple[int, ...], channels: int, pixels: int
    ) -> TensorLayout:
        """Return the layout of `im2col`, by the fields of a `PixelBox`."""
        return replace(self, pixels=PixelBox(lower, upper, channels, pixels))

    def with_slices(self) -> TensorLayout:
        """Return the layout with the channels of a slice as the innermost dimension.

        An interleaved tensor has the dimensions of NC/8DHWC8 without the last one. The first of
        them counts slices that lie side by side. A box always takes one slice of the last but one
        dimension, independently of its field. Measured on an H200.
        """
        if not self.interleave:
            return self
        nbytes = self.interleave * SLICE
        channels = nbytes // self.type.nbytes
        box = (channels, *self.box[:-2], 1, self.box[-1]) if self.pixels is None else ()
        return replace(
            self,
            extents=(channels, *self.extents),
            strides=(nbytes, *self.strides),
            box=box,
            steps=(1, *self.steps),
        )


def _pixels(data: bytes, rank: int) -> PixelBox:
    *corners, channels, pixels = _CORNERS.unpack_from(data, _HEAD.size)
    spatial = rank - 2
    return PixelBox(tuple(corners[:spatial]), tuple(corners[3 : 3 + spatial]), channels, pixels)


def _check(layout: TensorLayout) -> None:
    """Raise for invalid fields that `tensormap.replace` may have left.

    Raises:
        BadTensorMap: a field is out of its range, or the box is no multiple of 16 bytes.
    """
    if layout.address % 16 or any(stride % 16 or stride >> 40 for stride in layout.strides):
        raise BadTensorMap(
            f"holds a tensor map of address {layout.address:#x} and strides {layout.strides}, "
            "which are not all multiples of 16"
        )
    if layout.fills_nan and not layout.type.nan:
        raise BadTensorMap(f"holds a tensor map of {layout.type.name} that is filled with NaN")
    if not all(layout.extents) or not all(1 <= step <= 8 for step in layout.steps):
        raise BadTensorMap(
            f"holds a tensor map of extents {layout.extents} and element strides {layout.steps}"
        )
    if not all(1 <= box <= 256 for box in layout.box):
        raise BadTensorMap(f"holds a tensor map of box {layout.box}, not 1 to 256 elements each")
    row, span = layout.counts[0] * layout.type.nbytes, SWIZZLE_SPANS[layout.swizzle]
    if layout.interleave:
        _check_slices(layout)
        span = 0
    if row % 16 or (span and row > span):
        raise BadTensorMap(
            f"holds a tensor map whose box has rows of {row} bytes, not a multiple of 16"
            f"{f' up to the {span} of its swizzle' if span else ''}"
        )


def _check_slices(layout: TensorLayout) -> None:
    nbytes, addresses = layout.interleave * SLICE, (layout.address, *layout.strides)
    if (
        layout.interleave > _WIDEST_SLICE
        or layout.rank < 3
        or any(address % nbytes for address in addresses)
    ):
        raise BadTensorMap(
            f"holds a tensor map of interleave {layout.interleave}, rank {layout.rank}, address "
            f"{layout.address:#x} and strides {layout.strides}"
        )
    if layout.interleave == _WIDEST_SLICE and layout.swizzle != 1:
        raise BadTensorMap("holds a tensor map of slices of 32 bytes without the swizzle of 32")
    if unsupported := layout.not_copied:
        raise BadTensorMap(f"holds a tensor map of {unsupported}, which the emulator does not copy")


def _filled(values: tuple[int, ...], count: int) -> tuple[int, ...]:
    return (*values, *(0,) * (count - len(values)))
