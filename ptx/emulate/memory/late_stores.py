"""Stores that blocks elsewhere do not see yet. PTX ISA, "Memory Consistency Model".

A weak store is seen by other blocks for certain only after a fence or a releasing operation of
enough scope, or at the end of the launch. While the blocks of a chunk run, memory is as they see
it: their stores are in it. When their turn ends, what stood there before comes back, until their
next turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.addresses import Index

Words = NDArray[np.int64]
_WORD_SHIFT = 2  # stores are distinguished by words of four bytes


@dataclass(slots=True)
class _Store:
    """Elements that were stored to, and what stands in the other of two views: old or new."""

    elements: NDArray[Any]
    index: Index
    other: NDArray[Any]

    def exchange(self) -> None:
        """Show the other view."""
        now = self.elements[self.index]
        self.elements[self.index] = self.other
        self.other = now

    def lay_over(self, address: int, visible: bytearray) -> None:
        """Put the other view's elements over bytes from an address of this process on."""
        size = self.elements.itemsize
        starts = self.elements.ctypes.data + self.index * size - address
        for index in np.flatnonzero((starts > -size) & (starts < len(visible))).tolist():
            start, data = int(starts[index]), self.other[index : index + 1].tobytes()
            for byte in range(max(start, 0), min(start + size, len(visible))):
                visible[byte] = data[byte - start]

    def without(self, words: Words) -> _Store | None:
        """The store less what lies in some words."""
        stays = ~_lies_in(self.elements, self.index, words)
        if stays.all():
            return self
        if not stays.any():
            return None
        return _Store(self.elements, self.index[stays], self.other[stays])


class LateStores:
    """The stores of one chunk that others do not see yet."""

    def __init__(self) -> None:
        self._stores: list[_Store] = []
        self._hidden_turns = 0

    def __bool__(self) -> bool:
        return bool(self._stores)

    def note(self, elements: NDArray[Any], index: Index | int, count: int) -> None:
        """A store to the elements at `index`, of vectors of `count`, is about to happen."""
        indices = np.atleast_1d(np.asarray(index, dtype=np.intp))
        for k in range(count):
            self._stores.append(_Store(elements, indices + k, elements[indices + k]))

    def lay_over(self, address: int, visible: bytearray) -> None:
        """Write the hidden stores over visible bytes, from an address of this process on."""
        for store in self._stores:
            store.lay_over(address, visible)

    def publish(self) -> None:
        """Make all deferred stores visible to all blocks."""
        self._stores.clear()
        self._hidden_turns = 0

    def publish_at(self, elements: NDArray[Any], index: Index | int, count: int) -> None:
        """Make stores to some elements visible, before an atomic or strong access to them."""
        if not self._stores:
            return
        indices = np.atleast_1d(np.asarray(index, dtype=np.intp))
        words = [words_of(elements, indices + k) for k in range(count)]
        published = np.unique(np.concatenate(words))
        remaining = [store.without(published) for store in self._stores]
        self._stores = [store for store in remaining if store is not None]

    def hide(self) -> int:
        """The turn ends: others see what stood there; how many turns it has been so."""
        for store in reversed(self._stores):
            store.exchange()
        self._hidden_turns += bool(self._stores)
        return self._hidden_turns

    def show(self) -> None:
        """Begin a turn, or end the launch."""
        for store in self._stores:
            store.exchange()


def words_of(elements: NDArray[Any], index: Index) -> Words:
    """The words of four bytes that elements lie in, by their addresses in this process."""
    size = elements.itemsize
    first = elements.ctypes.data + index.astype(np.int64) * size
    return (first[:, None] + np.arange(0, size, 4) >> _WORD_SHIFT).reshape(-1)


def _lies_in(elements: NDArray[Any], index: Index, words: Words) -> NDArray[np.bool_]:
    """Return whether each element has a part in one of the words."""
    words_of_elements = words_of(elements, index).reshape(len(index), -1)
    return np.asarray(np.isin(words_of_elements, words).any(axis=1), dtype=np.bool_)
