"""Copies of a tensor's boxes between global and shared memory. PTX ISA, "cp.async.bulk.tensor".

A copy is what it is when it is issued; when its memory is accessed is up to who issues it.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.access.memory_access import load_vector, store
from ptx.emulate.exec.sync.bulk_copy import Place, deliver, ranks_named
from ptx.emulate.exec.sync.issued_copies import note_pieces
from ptx.emulate.exec.sync.tensor_pieces import Sites, Tensor, TensorPieces, tensor_pieces
from ptx.emulate.ieee import Rounding, to_tf32
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import Scalar
from ptx.emulate.threads.fibre import Fibre


class TensorLoad:
    """Boxes for shared memory; an mbarrier object counts all their bytes.

    Attributes:
        fibre: the threads.
        barrier: their objects.
    """

    def __init__(
        self, pieces: TensorPieces, target: Place, targets: Sites, sources: Sites, barrier: Place
    ) -> None:
        pieces.place(target.where.every(pieces.fibre.n) + target.offset, target.site)
        self.fibre: Fibre = pieces.fibre
        self.barrier: Place = barrier
        self._pieces = pieces
        self._target = targets[pieces.unit]
        self._source = sources[pieces.unit]

    def note(self) -> None:
        """Tell what looks for races."""
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
            part, where = pieces.access(pieces.outside, chosen)
            for word, value in zip(words, load_vector(part, where, 0, self._source), strict=True):
                word[chosen] = _converted(pieces, value)
        part, where = pieces.access(pieces.inside)
        store(part, where, 0, self._target, *words)

    def tell(self) -> None:
        """Let the objects count the bytes."""
        deliver(self.fibre, self.barrier, self._pieces.nbytes)


class TensorWrite:
    """Boxes in shared memory that go into a tensor; what is out of bounds is left out.

    Attributes:
        fibre: the threads.
        pieces: what they write.
        source: the access to shared memory.
        target: the access to the tensor.
    """

    def __init__(self, pieces: TensorPieces, place: Place, source: Site, target: Site) -> None:
        pieces.require_writable()
        pieces.place(place.where.every(pieces.fibre.n) + place.offset, place.site)
        self.fibre: Fibre = pieces.fibre
        self.pieces: TensorPieces = pieces
        self.source: Site = source
        self.target: Site = target

    def note(self) -> None:
        """Tell what looks for races."""
        pieces, chosen = self.pieces, self.pieces.within()
        if len(chosen):
            thread = pieces.thread[chosen]
            source = pieces.access(pieces.inside, chosen)
            target = pieces.access(pieces.outside, chosen)
            sides = [(*source, self.source, thread), (*target, self.target, thread)]
            note_pieces(self.fibre, sides, None)


class TensorStore(TensorWrite):
    """Boxes that are written as they are."""

    def __init__(self, pieces: TensorPieces, place: Place, sources: Sites, targets: Sites) -> None:
        super().__init__(pieces, place, sources[pieces.unit], targets[pieces.unit])
        self._words: list[NDArray[np.generic]] = []

    def part(self, positions: Index | None) -> TensorStore:
        """The same for some of the threads, before it is read; None: for all."""
        found = copy(self)
        found.pieces = self.pieces.part(positions)
        found.fibre = found.pieces.fibre
        return found

    def read(self) -> None:
        """Read what is to be written."""
        pieces, chosen = self.pieces, self.pieces.within()
        if len(chosen):
            part, where = pieces.access(pieces.inside, chosen)
            found = load_vector(part, where, 0, self.source)
            self._words = [part.spread(word) for word in found]

    def write(self) -> None:
        """Write it."""
        if self._words:
            pieces = self.pieces
            part, where = pieces.access(pieces.outside, pieces.within())
            store(part, where, 0, self.target, *self._words)


def tensor_loads(
    fibre: Fibre, tensor: Tensor, target: Place, targets: Sites, barrier: Place,
    ranks: Value | None = None,
) -> Iterator[TensorLoad]:  # fmt: skip
    """The loads that an instruction issues; `ranks`: for the blocks of a cluster that it names.

    In each of them the box lies at the same place, and the object at the same place counts it.
    """
    if ranks is not None:
        for rank, chosen in ranks_named(fibre, ranks):
            to, signal = (each.in_block(fibre.n, chosen, rank) for each in (target, barrier))
            part = fibre.subset(chosen, ())
            yield from tensor_loads(part, tensor.part(fibre.n, chosen), to, targets, signal)
        return
    for pieces in tensor_pieces(fibre, tensor):
        to, signal = (each.part(fibre.n, pieces.positions) for each in (target, barrier))
        yield TensorLoad(pieces, to, targets, tensor.sites, signal)


def tensor_stores(
    fibre: Fibre, tensor: Tensor, source: Place, sources: Sites
) -> Iterator[TensorStore]:
    """The stores that an instruction issues."""
    for pieces in tensor_pieces(fibre, tensor):
        of = source.part(fibre.n, pieces.positions)
        yield TensorStore(pieces, of, sources, tensor.sites)


def _converted(pieces: TensorPieces, value: Value) -> Value:
    """What loads make of elements: of two nearest tf32 the even one, and one NaN, as an H200."""
    if not pieces.layout.type.is_rounded:
        return value
    given = np.atleast_1d(value).view(np.float32)
    found: Value = to_tf32(given, rounding=Rounding.RN).view(value.dtype)
    return found if value.ndim else found[0]


def _filling(pieces: TensorPieces, dtype: Scalar) -> np.generic:
    """What stands for an element out of bounds, as many as make a number of this type."""
    element = pieces.layout.type
    nan = element.nan if pieces.layout.fills_nan else 0
    count = max(np.dtype(dtype).itemsize // element.nbytes, 1)
    found: np.generic = np.full(count, nan, dtype=f"<u{element.nbytes}").view(dtype)[0]
    return found
