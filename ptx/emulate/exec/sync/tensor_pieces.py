"""The pieces that threads copy of tensors: which tensor map, where in memory, and how much.

PTX ISA, "Tensors", "cp.async.bulk.tensor". Tensor maps are read when a copy is issued.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.access.memory_access import load_vector
from ptx.emulate.exec.sync.bulk_copy import Place
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
from ptx.emulate.model.tensor_box import PIECE, Bools, Words, boxes_at, swizzled
from ptx.emulate.model.tensor_map import NBYTES, BadTensorMap, TensorLayout, decoded
from ptx.emulate.threads.fibre import Fibre

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
        self, tensor_map: Place, coordinates: tuple[Value, ...],
        offsets: tuple[Value, ...] | None, sites: Sites,
    ) -> None:  # fmt: skip
        self.map: Place = tensor_map
        self.coordinates: tuple[Value, ...] = coordinates
        self.offsets: tuple[Value, ...] | None = offsets
        self.sites: Sites = sites

    def part(self, count: int, positions: Index) -> Tensor:
        """What some of `count` threads name."""
        return Tensor(
            self.map.part(count, positions), _chosen(self.coordinates, positions),
            None if self.offsets is None else _chosen(self.offsets, positions), self.sites,
        )  # fmt: skip


class TensorPieces:
    """What some threads, whose tensor maps are the same, copy.

    Attributes:
        positions: the threads, among those of the instruction.
        fibre: these threads.
        layout: what the map says, with slices of channels as a dimension.
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
        """Refuse what an H200 does, which ends the kernel by CUDA_ERROR_ILLEGAL_INSTRUCTION.

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
        """Refuse boxes to be written that begin before the tensor, as an H200 does.

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
                address=address, nbytes=self.layout.nbytes, space="shared",
            )  # fmt: skip
        self.inside = swizzled(starts[self.thread] + self.inside, self.layout)

    @property
    def nbytes(self) -> NDArray[np.int64]:
        """(threads,) the bytes of each one's box."""
        return np.full(self.fibre.n, self.layout.nbytes, dtype=np.int64)

    def part(self, positions: Index | None) -> TensorPieces:
        """What some of the threads copy; None: all of them."""
        if positions is None:
            return self
        found = copy(self)
        number = np.full(self.fibre.n, -1, dtype=np.intp)
        number[positions] = np.arange(len(positions))
        thread = number[self.thread]
        stays = thread >= 0
        found.positions, found.fibre = self.positions[positions], self.fibre.subset(positions, ())
        found.thread, found.is_within = thread[stays], self.is_within[stays]
        found.outside, found.inside = self.outside[stays], self.inside[stays]
        return found

    def within(self) -> Index:
        """The pieces that are within the tensor."""
        return np.asarray(self.is_within.nonzero()[0], dtype=np.intp)

    def access(
        self, addresses: NDArray[np.int64], chosen: Index | None = None
    ) -> tuple[Fibre, Addresses]:
        """The threads of some pieces, each for one of them, and their addresses."""
        thread = self.thread if chosen is None else self.thread[chosen]
        where = addresses if chosen is None else addresses[chosen]
        return self.fibre.subset(thread, ()), addresses_in(where)


def tensor_pieces(fibre: Fibre, tensor: Tensor, *, by_element: bool = False) -> list[TensorPieces]:
    """What the threads of a fibre copy, for each tensor map that they name.

    `by_element`: the pieces are elements, as a reduction needs them.

    Raises:
        InvalidTensorMap: a map is none, or does not fit the instruction.
        MisalignedCoordinate: a box begins between two pieces of a row.
    """
    found: list[TensorPieces] = []
    for positions, data in _maps(fibre, tensor):
        try:
            layout = decoded(data)
        except BadTensorMap as error:
            raise _fault(fibre, int(positions[0]), tensor, str(error)) from None
        _check_fit(fibre, int(positions[0]), tensor, layout)
        unit = layout.type.nbytes if by_element else 0
        found.append(TensorPieces(fibre, positions, layout, tensor, unit))
    return found


def _maps(fibre: Fibre, tensor: Tensor) -> Iterator[tuple[Index, bytes]]:
    """The tensor maps that the threads name, and whose each is."""
    place = tensor.map
    _note_maps(fibre, place)
    words = [
        word
        for half in (0, _HALF)
        for word in load_vector(fibre, place.where, place.offset + half, place.site)
    ]
    if all(word.ndim == 0 for word in words):
        yield np.arange(fibre.n, dtype=np.intp), np.array(words, dtype="<u8").tobytes()
        return
    rows = _columns(tuple(words), fibre.n, np.uint64)
    different, of = np.unique(rows, axis=0, return_inverse=True)
    for number, row in enumerate(different):
        yield (of.reshape(-1) == number).nonzero()[0], row.astype("<u8").tobytes()


def _note_maps(fibre: Fibre, place: Place) -> None:
    """Tell what looks for races of tensor maps in global memory, which the kernel may write."""
    races = fibre.blocks.races
    if races is not None and not is_mixed(place.where, place.offset):
        space, where = in_window(place.where, place.offset)
        if space == "global":
            for half in (0, _HALF):
                races.read_map(fibre, where, place.offset + half, place.site)


def _check_fit(fibre: Fibre, position: int, tensor: Tensor, layout: TensorLayout) -> None:
    given = len(tensor.coordinates)
    if layout.rank != given:
        raise _fault(
            fibre, position, tensor,
            f"holds a tensor map of {layout.rank} dimensions, but the instruction is for {given}",
        )  # fmt: skip
    if (layout.pixels is None) != (tensor.offsets is None):
        kinds = ("im2col", "tiles") if tensor.offsets is None else ("tiles", "im2col")
        raise _fault(
            fibre, position, tensor,
            f"holds a tensor map for {kinds[0]}, but the instruction is for {kinds[1]}",
        )  # fmt: skip


def _fault(fibre: Fibre, position: int, tensor: Tensor, what: str) -> InvalidTensorMap:
    address = int(tensor.map.every(fibre.n)[position])
    instruction = tensor.map.site.instruction
    return InvalidTensorMap(f"the address {address:#x} {what}", fibre.where(position, instruction))


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
