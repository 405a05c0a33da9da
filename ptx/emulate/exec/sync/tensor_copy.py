"""Copies of a tensor's boxes between global and shared memory. PTX ISA, "cp.async.bulk.tensor".

A copy consists of pieces: which tensor map, where in memory, and how much. Tensor maps are read
when a copy is issued. When its memory is accessed is up to the instruction that issues it.

PTX ISA, "Tensors": "Bounding Box", "Traversal Stride", "Out of Boundary Access", "Im2col Mode",
"Swizzling Modes". CUDA Programming Guide, "Tensor Memory Access".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from copy import copy
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.access.memory_access import load_vector, store
from ptx.emulate.exec.sync.bulk_copy import Pointer, deliver, ranks_named
from ptx.emulate.exec.sync.issued_copies import note_pieces
from ptx.emulate.ieee import Rounding, to_tf32
from ptx.emulate.memory.generic_addresses import in_window, is_mixed
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index, addresses_in
from ptx.emulate.model.errors import (
    InvalidTensorMap,
    Misaligned,
    MisalignedCoordinate,
    NegativeCoordinate,
)
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.tensor_map import (
    NBYTES,
    SWIZZLE_ATOMS,
    SWIZZLE_SPANS,
    BadTensorMap,
    TensorLayout,
)
from ptx.emulate.model.types import Scalar
from ptx.emulate.threads.fibre import Fibre

Words = NDArray[np.int64]
Bools = NDArray[np.bool_]
PIECE: Final = 16
"""Bytes that stay together in every swizzle; boxes begin at a multiple of them."""


class TensorBoxes(NamedTuple):
    """The pieces of some boxes of one tensor, in the order in which they lie in shared memory.

    Attributes:
        unit: bytes of a piece: whole elements, and no piece is partly out of bounds.
        outside: (boxes, pieces) addresses in global memory; of no use out of bounds.
        inside: (pieces,) offsets in shared memory, before they are swizzled.
        is_within: (boxes, pieces) whether a piece is within the tensor.
    """

    unit: int
    outside: Words
    inside: Words
    is_within: Bools


def boxes_at(
    layout: TensorLayout, coordinates: Words, offsets: Words, unit: int = 0
) -> TensorBoxes:
    """The boxes at some coordinates.

    Args:
        layout: the tensor.
        coordinates: (boxes, rank), innermost first, which is a multiple of `PIECE` bytes.
        offsets: (boxes, at least rank - 2) of `im2col`; of no use for tiles.
        unit: the bytes of a piece; 0: as many as can be.

    Raises:
        BadTensorMap: `im2col` begins before the first position of its filter or after the last.
    """
    nbytes = layout.type.nbytes
    first = coordinates[:, 0] * nbytes
    row = layout.counts[0] * nbytes
    if not unit:
        unit = math.gcd(PIECE, layout.extents[0] * nbytes)
    along_row = first[:, None] + np.arange(0, row, unit)
    in_row = (along_row >= 0) & (along_row < layout.extents[0] * nbytes)
    if layout.pixels is None:
        rows, is_row = _tile_rows(layout, coordinates)
    else:
        rows, is_row = _pixel_rows(layout, coordinates, offsets)
    count = len(coordinates)
    outside = layout.address + rows[:, :, None] + along_row[:, None, :]
    is_within = is_row[:, :, None] & in_row[:, None, :]
    starts = np.arange(rows.shape[1], dtype=np.int64) * layout.pitch
    inside = (starts[:, None] + np.arange(0, row, unit)).reshape(-1)
    return TensorBoxes(unit, outside.reshape(count, -1), inside, is_within.reshape(count, -1))


def _tile_rows(layout: TensorLayout, coordinates: Words) -> tuple[Words, Bools]:
    """(boxes, rows) the offset of each row of the boxes, and whether it is within the tensor."""
    count = len(coordinates)
    rows, is_row = np.zeros((count, 1), np.int64), np.ones((count, 1), np.bool_)
    counts, steps = layout.counts, layout.steps
    for dimension in range(1, layout.rank):
        index = coordinates[:, dimension, None] + np.arange(counts[dimension]) * steps[dimension]
        is_in = (index >= 0) & (index < layout.extents[dimension])
        row_offsets = index * layout.strides[dimension - 1]
        rows = (row_offsets[:, :, None] + rows[:, None, :]).reshape(count, -1)
        is_row = (is_in[:, :, None] & is_row[:, None, :]).reshape(count, -1)
    return rows, is_row


def _pixel_rows(layout: TensorLayout, coordinates: Words, offsets: Words) -> tuple[Words, Bools]:
    """Return the same for `im2col`: pixels at positions of the filter, one after the other.

    A position advances by the element stride to the last one that the upper corner allows. Then the
    next dimension advances, and after all of them the next image. The first run begins at the
    coordinate, later ones at the lower corner: measured on an H200.
    """
    pixels = layout.pixels
    assert pixels is not None
    number = np.broadcast_to(np.arange(pixels.pixels), (len(coordinates), pixels.pixels))
    is_row = np.ones(number.shape, np.bool_)
    rows = np.zeros(number.shape, np.int64)
    for d, (lower, upper) in enumerate(zip(pixels.lower, pixels.upper, strict=True), 1):
        step = layout.steps[d]
        start, last = coordinates[:, d, None], layout.extents[d] - 1 + upper
        if (start < lower).any() or (start > last).any():
            raise BadTensorMap(
                f"is read by im2col from {coordinates[:, d].tolist()} in dimension {d}, which is "
                f"no position of a filter between {lower} and {last}"
            )
        count = (last - lower) // step + 1
        later = number - ((last - start) // step + 1)
        is_first = later < 0
        index = np.where(is_first, start + number * step, lower + later % count * step)
        index = index + offsets[:, d - 1, None]
        number = np.where(is_first, 0, later // count + 1)
        is_row &= (index >= 0) & (index < layout.extents[d])
        rows += index * layout.strides[d - 1]
    if layout.interleave:
        slices = coordinates[:, -2, None]
        is_row &= (slices >= 0) & (slices < layout.extents[-2])
        rows += slices * layout.strides[-2]
    images = coordinates[:, -1, None] + number
    is_row &= (images >= 0) & (images < layout.extents[-1])
    return rows + images * layout.strides[-1], is_row


def swizzled(addresses: Words, layout: TensorLayout) -> Words:
    """The places in shared memory where a tensor's swizzle puts pieces of at most 16 bytes.

    Of each address the bits that number an atom within the span are changed by those of the row of
    128 bytes that it lies in.
    """
    span, atom = SWIZZLE_SPANS[layout.swizzle], SWIZZLE_ATOMS[layout.atomicity]
    if not span:
        return addresses
    return addresses ^ (addresses >> 7 & span // atom - 1) * atom


Sites = Mapping[int, Site]
"""The accesses of one instruction to one memory, by the bytes of a piece: a power of 2 up to 16."""
_ALIGNMENT: Final = 128  # of boxes in shared memory
_HALF: Final = NBYTES // 2


class Tensor:
    """A tensor operand: the place of its map, the coordinates, and the accesses to its memory.

    Attributes:
        map: where the threads' tensor maps lie; they are read in two halves.
        coordinates: innermost first.
        offsets: of `im2col`, empty where they are 0; None for tiles.
        sites: the accesses to global memory.
    """

    __slots__ = ("coordinates", "map", "offsets", "sites")

    def __init__(
        self,
        tensor_map: Pointer,
        coordinates: tuple[Value, ...],
        offsets: tuple[Value, ...] | None,
        sites: Sites,
    ) -> None:
        self.map: Pointer = tensor_map
        self.coordinates: tuple[Value, ...] = coordinates
        self.offsets: tuple[Value, ...] | None = offsets
        self.sites: Sites = sites

    def part(self, count: int, positions: Index) -> Tensor:
        """Return the tensors that some of `count` threads name."""
        return Tensor(
            self.map.part(count, positions),
            _chosen(self.coordinates, positions),
            None if self.offsets is None else _chosen(self.offsets, positions),
            self.sites,
        )


class TensorPieces:
    """The pieces that some threads copy with the same tensor map.

    Attributes:
        positions: the threads, among those of the instruction.
        fibre: these threads.
        layout: the map's layout, with slices of channels as a dimension.
        unit: bytes of a piece.
        thread: (pieces,) the thread of each, a position in `fibre`.
        outside: (pieces,) addresses in global memory.
        inside: (pieces,) addresses in shared memory.
        is_within: (pieces,) whether a piece is within the tensor.
    """

    def __init__(
        self, fibre: Fibre, positions: Index, layout: TensorLayout, tensor: Tensor, unit: int = 0
    ) -> None:
        self.positions: Index = positions
        self.fibre: Fibre = fibre.subset(positions, ())
        self.layout: TensorLayout = layout.with_slices()
        self._corners = coordinates = _columns(tensor.coordinates, fibre.n)[positions]
        offsets = _columns(tensor.offsets or (0,) * layout.rank, fibre.n)[positions]
        self._instruction = tensor.map.site.instruction
        if layout.interleave:  # boxes begin with the first channel of their slices
            coordinates = np.insert(coordinates, 0, 0, axis=1)
        else:
            self._check_start(coordinates[:, 0], tensor)
        try:
            boxes = boxes_at(self.layout, coordinates, offsets, unit)
        except BadTensorMap as error:
            raise _fault(self.fibre, 0, tensor, str(error)) from None
        count = len(boxes.inside)
        self.unit: int = boxes.unit
        self.thread: Index = np.repeat(np.arange(len(positions), dtype=np.intp), count)
        self.outside: Words = boxes.outside.reshape(-1)
        self.inside: Words = np.tile(boxes.inside, len(positions))
        self.is_within: Bools = boxes.is_within.reshape(-1)

    def _check_start(self, innermost: Words, tensor: Tensor) -> None:
        """Raise where an H200 ends the kernel with CUDA_ERROR_ILLEGAL_INSTRUCTION.

        Raises:
            MisalignedCoordinate: a box begins between two pieces of a row.
        """
        element = self.layout.type
        wrong = innermost * element.nbytes % PIECE != 0
        if not wrong.any():
            return
        position = int(np.argmax(wrong))
        start = int(innermost[position])
        raise MisalignedCoordinate(
            f"the innermost coordinate is {start}, {start * element.nbytes} bytes of "
            f"{element.name}, no multiple of {PIECE} bytes: a GPU ends the kernel by an illegal "
            f"instruction\n  begin the box at a multiple of {PIECE // element.nbytes} elements, "
            "outside of the tensor too, and make it wide enough; other coordinates are free",
            self.fibre.where(position, tensor.map.site.instruction),
        )

    def require_writable(self) -> None:
        """Raise if a box to be written begins before the tensor, as an H200 does.

        CUDA Programming Guide, "Tensor Memory Access". Of pixels, all positions count.

        Raises:
            NegativeCoordinate: one does.
        """
        pixels = self.layout.pixels
        wrong = (self._corners < 0).any(axis=1)
        wrong |= pixels is not None and min(pixels.lower) < 0
        if not wrong.any():
            return
        position = int(np.argmax(wrong))
        raise NegativeCoordinate(
            f"a box is written from {tuple(self._corners[position].tolist())} on: a GPU ends the "
            "kernel by an illegal instruction\n  begin it within the tensor; it may end outside, "
            "and loads may begin there",
            self.fibre.where(position, self._instruction),
        )

    def place(self, starts: NDArray[np.int64], site: Site) -> None:
        """Lay the boxes at some addresses in shared memory.

        Raises:
            Misaligned: one is no multiple of 128.
        """
        wrong = starts % _ALIGNMENT != 0
        if wrong.any():
            position = int(np.argmax(wrong))
            address = int(starts[position])
            raise Misaligned(
                f"a box of a tensor at shared address {address:#x}, no multiple of {_ALIGNMENT}",
                self.fibre.where(position, site.instruction),
                address=address,
                nbytes=self.layout.nbytes,
                space="shared",
            )
        self.inside = swizzled(starts[self.thread] + self.inside, self.layout)

    @property
    def nbytes(self) -> NDArray[np.int64]:
        """(threads,) the bytes of each one's box."""
        return np.full(self.fibre.n, self.layout.nbytes, dtype=np.int64)

    def part(self, positions: Index | None) -> TensorPieces:
        """Return the pieces of some of the threads; None: of all."""
        if positions is None:
            return self
        pieces = copy(self)
        number = np.full(self.fibre.n, -1, dtype=np.intp)
        number[positions] = np.arange(len(positions))
        thread = number[self.thread]
        stays = thread >= 0
        pieces.positions, pieces.fibre = self.positions[positions], self.fibre.subset(positions, ())
        pieces.thread, pieces.is_within = thread[stays], self.is_within[stays]
        pieces.outside, pieces.inside = self.outside[stays], self.inside[stays]
        return pieces

    def within(self) -> Index:
        """The pieces that are within the tensor."""
        return np.asarray(self.is_within.nonzero()[0], dtype=np.intp)

    def access(
        self, addresses: NDArray[np.int64], chosen: Index | None = None
    ) -> tuple[Fibre, Addresses]:
        """The threads of some pieces, each for one of them, and their addresses."""
        thread = self.thread if chosen is None else self.thread[chosen]
        selected = addresses if chosen is None else addresses[chosen]
        return self.fibre.subset(thread, ()), addresses_in(selected)


def tensor_pieces(fibre: Fibre, tensor: Tensor, *, by_element: bool = False) -> list[TensorPieces]:
    """Return the pieces that the threads of a fibre copy, for each tensor map that they name.

    `by_element`: the pieces are elements, as a reduction needs them.

    Raises:
        InvalidTensorMap: a map is none, or does not fit the instruction.
        MisalignedCoordinate: a box begins between two pieces of a row.
    """
    pieces: list[TensorPieces] = []
    for positions, data in _maps(fibre, tensor):
        try:
            layout = TensorLayout.decode(data)
        except BadTensorMap as error:
            raise _fault(fibre, int(positions[0]), tensor, str(error)) from None
        _check_fit(fibre, int(positions[0]), tensor, layout)
        unit = layout.type.nbytes if by_element else 0
        pieces.append(TensorPieces(fibre, positions, layout, tensor, unit))
    return pieces


def _maps(fibre: Fibre, tensor: Tensor) -> Iterator[tuple[Index, bytes]]:
    """Return the tensor maps that the threads name, and the threads of each."""
    pointer = tensor.map
    _note_maps(fibre, pointer)
    words = [
        word
        for half in (0, _HALF)
        for word in load_vector(fibre, pointer.addresses, pointer.offset + half, pointer.site)
    ]
    if all(word.ndim == 0 for word in words):
        yield np.arange(fibre.n, dtype=np.intp), np.array(words, dtype="<u8").tobytes()
        return
    rows = _columns(tuple(words), fibre.n, np.uint64)
    different, of = np.unique(rows, axis=0, return_inverse=True)
    for number, row in enumerate(different):
        yield (of.reshape(-1) == number).nonzero()[0], row.astype("<u8").tobytes()


def _note_maps(fibre: Fibre, pointer: Pointer) -> None:
    """Report tensor maps in global memory, which the kernel may write."""
    observers = fibre.blocks.order_observers
    if observers and not is_mixed(pointer.addresses, pointer.offset):
        space, addresses = in_window(pointer.addresses, pointer.offset)
        for observer in observers if space == "global" else ():
            for half in (0, _HALF):
                observer.read_map(fibre, addresses, pointer.offset + half, pointer.site)


def _check_fit(fibre: Fibre, position: int, tensor: Tensor, layout: TensorLayout) -> None:
    coordinate_count = len(tensor.coordinates)
    if layout.rank != coordinate_count:
        raise _fault(
            fibre,
            position,
            tensor,
            f"holds a tensor map of {layout.rank} dimensions, but the instruction is for "
            f"{coordinate_count}",
        )
    if (layout.pixels is None) != (tensor.offsets is None):
        kinds = ("im2col", "tiles") if tensor.offsets is None else ("tiles", "im2col")
        raise _fault(
            fibre,
            position,
            tensor,
            f"holds a tensor map for {kinds[0]}, but the instruction is for {kinds[1]}",
        )


def _fault(fibre: Fibre, position: int, tensor: Tensor, reason: str) -> InvalidTensorMap:
    address = int(tensor.map.every(fibre.n)[position])
    instruction = tensor.map.site.instruction
    return InvalidTensorMap(
        f"the address {address:#x} {reason}", fibre.where(position, instruction)
    )


def _chosen(values: tuple[Value, ...], positions: Index) -> tuple[Value, ...]:
    return tuple(value[positions] if value.ndim else value for value in values)


def _columns(
    values: tuple[Value | int, ...], count: int, dtype: type[np.generic] = np.int64
) -> NDArray[np.int64]:
    """(count, values) each thread's values."""
    columns = np.empty((count, len(values)), dtype=dtype)
    for number, value in enumerate(values):
        columns[:, number] = value
    return columns


class TensorLoad:
    """Boxes for shared memory; an mbarrier object counts all their bytes.

    Attributes:
        fibre: the threads.
        barrier: their objects.
    """

    def __init__(
        self,
        pieces: TensorPieces,
        target: Pointer,
        targets: Sites,
        sources: Sites,
        barrier: Pointer,
    ) -> None:
        pieces.place(target.addresses.every(pieces.fibre.n) + target.offset, target.site)
        self.fibre: Fibre = pieces.fibre
        self.barrier: Pointer = barrier
        self._pieces = pieces
        self._target = targets[pieces.unit]
        self._source = sources[pieces.unit]

    def note(self) -> None:
        """Report the accesses to the race check."""
        pieces = self._pieces
        chosen = pieces.within()
        source = pieces.access(pieces.outside, chosen)
        target = pieces.access(pieces.inside)
        sides = [(*target, self._target, pieces.thread)]
        if len(chosen):
            sides.insert(0, (*source, self._source, pieces.thread[chosen]))
        note_pieces(self.fibre, sides, self.barrier)

    def copy(self) -> None:
        """Do it."""
        pieces, chosen = self._pieces, self._pieces.within()
        fill = _filling(pieces, self._target.dtype)
        words = [np.full(len(pieces.thread), fill) for _ in self._target.parts]
        if len(chosen):
            part, addresses = pieces.access(pieces.outside, chosen)
            for word, value in zip(
                words, load_vector(part, addresses, 0, self._source), strict=True
            ):
                word[chosen] = _converted(pieces, value)
        part, addresses = pieces.access(pieces.inside)
        store(part, addresses, 0, self._target, *words)

    def deliver(self) -> None:
        """Have the objects count the bytes."""
        deliver(self.fibre, self.barrier, self._pieces.nbytes)


class TensorWrite:
    """Boxes in shared memory that are written to a tensor; elements out of bounds are left out.

    Attributes:
        fibre: the threads.
        pieces: the written pieces.
        source: the access to shared memory.
        target: the access to the tensor.
    """

    def __init__(self, pieces: TensorPieces, pointer: Pointer, source: Site, target: Site) -> None:
        pieces.require_writable()
        pieces.place(pointer.addresses.every(pieces.fibre.n) + pointer.offset, pointer.site)
        self.fibre: Fibre = pieces.fibre
        self.pieces: TensorPieces = pieces
        self.source: Site = source
        self.target: Site = target

    def note(self) -> None:
        """Report the accesses to the race check."""
        pieces, chosen = self.pieces, self.pieces.within()
        if len(chosen):
            thread = pieces.thread[chosen]
            source = pieces.access(pieces.inside, chosen)
            target = pieces.access(pieces.outside, chosen)
            sides = [(*source, self.source, thread), (*target, self.target, thread)]
            note_pieces(self.fibre, sides, None)


class TensorStore(TensorWrite):
    """Boxes that are written as they are."""

    def __init__(
        self, pieces: TensorPieces, pointer: Pointer, sources: Sites, targets: Sites
    ) -> None:
        super().__init__(pieces, pointer, sources[pieces.unit], targets[pieces.unit])
        self._words: list[NDArray[np.generic]] = []

    def part(self, positions: Index | None) -> TensorStore:
        """Return the copy of some of the threads, before it is read; None: of all."""
        store = copy(self)
        store.pieces = self.pieces.part(positions)
        store.fibre = store.pieces.fibre
        return store

    def read(self) -> None:
        """Read the data to be written."""
        pieces, chosen = self.pieces, self.pieces.within()
        if len(chosen):
            part, addresses = pieces.access(pieces.inside, chosen)
            words = load_vector(part, addresses, 0, self.source)
            self._words = [part.spread(word) for word in words]

    def write(self) -> None:
        """Write it."""
        if self._words:
            pieces = self.pieces
            part, addresses = pieces.access(pieces.outside, pieces.within())
            store(part, addresses, 0, self.target, *self._words)


def tensor_loads(
    fibre: Fibre,
    tensor: Tensor,
    target: Pointer,
    targets: Sites,
    barrier: Pointer,
    ranks: Value | None = None,
) -> Iterator[TensorLoad]:
    """The loads that an instruction issues; `ranks`: for the blocks of a cluster that it names.

    In each of them the box lies at the same place, and the object at the same place counts it.
    """
    if ranks is not None:
        for rank, chosen in ranks_named(fibre, ranks):
            to, signal = (pointer.in_block(fibre, chosen, rank) for pointer in (target, barrier))
            part = fibre.subset(chosen, ())
            yield from tensor_loads(part, tensor.part(fibre.n, chosen), to, targets, signal)
        return
    for pieces in tensor_pieces(fibre, tensor):
        to, signal = (pointer.part(fibre.n, pieces.positions) for pointer in (target, barrier))
        yield TensorLoad(pieces, to, targets, tensor.sites, signal)


def tensor_stores(
    fibre: Fibre, tensor: Tensor, source: Pointer, sources: Sites
) -> Iterator[TensorStore]:
    """The stores that an instruction issues."""
    for pieces in tensor_pieces(fibre, tensor):
        of = source.part(fibre.n, pieces.positions)
        yield TensorStore(pieces, of, sources, tensor.sites)


def _converted(pieces: TensorPieces, value: Value) -> Value:
    """Return elements as loads convert them: tf32 ties to even, and a single NaN, as on an H200."""
    if not pieces.layout.type.is_rounded:
        return value
    floats = np.atleast_1d(value).view(np.float32)
    converted: Value = to_tf32(floats, rounding=Rounding.RN).view(value.dtype)
    return converted if value.ndim else converted[0]


def _filling(pieces: TensorPieces, dtype: Scalar) -> np.generic:
    """Return the fill of elements out of bounds, repeated to a number of this type."""
    element = pieces.layout.type
    nan = element.nan if pieces.layout.fills_nan else 0
    count = max(np.dtype(dtype).itemsize // element.nbytes, 1)
    filling: np.generic = np.full(count, nan, dtype=f"<u{element.nbytes}").view(dtype)[0]
    return filling
