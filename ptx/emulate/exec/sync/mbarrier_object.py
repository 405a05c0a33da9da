"""What the 64 bits of an mbarrier object hold. PTX ISA, "Contents of the mbarrier object".

PTX leaves them open. Here: 20 bits of expected and 20 of pending arrivals, 21 of the tx-count plus
2**20, two of the phase's number. No object is all zeros.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import Value

Words = NDArray[np.int64]
Bools = NDArray[np.bool_]

MOST_ARRIVALS = (1 << 20) - 1
MOST_BYTES = (1 << 20) - 1  # of the tx-count, of either sign
_PENDING, _BYTES, _PHASE = 20, 40, 61
_BIAS = 1 << 20
_BYTES_MASK = (1 << 21) - 1


def pending_count(state: Value) -> Value:
    """`mbarrier.pending_count`: the pending arrivals of a state that an arrival gave."""
    count: Value = (state >> np.uint64(_PENDING) & np.uint64(MOST_ARRIVALS)).astype(np.uint32)
    return count


def fresh(counts: Words) -> Words:
    """The bits of objects in phase 0 that expect so many arrivals."""
    return counts | counts << _PENDING | _BIAS << _BYTES


def phase_of(words: Words) -> Words:
    """The numbers of objects' phases, modulo 4."""
    return words >> _PHASE


def is_state(words: Words) -> Bools:
    """Whether bits may be a state that an arrival gave."""
    found: Bools = (words >> _BYTES & _BYTES_MASK) != 0
    return found


def reduced(words: Words, counts: Words) -> Words:
    """Objects with so many fewer pending arrivals; they must have them."""
    return words - (counts << _PENDING)


class Objects:
    """The fields of some mbarrier objects, (k,) int64 each."""

    __slots__ = ("expected", "pending", "phase", "tx")

    def __init__(self, words: Words) -> None:
        self.expected: Words = words & MOST_ARRIVALS
        self.pending: Words = words >> _PENDING & MOST_ARRIVALS
        self.tx: Words = (words >> _BYTES & _BYTES_MASK) - _BIAS
        self.phase: Words = words >> _PHASE

    def words(self) -> Words:
        """The objects' bits."""
        counts = self.expected | self.pending << _PENDING
        return counts | (self.tx + _BIAS) << _BYTES | self.phase << _PHASE

    def are_complete(self) -> Bools:
        """(k,) whether they wait for nothing any more."""
        found: Bools = (self.pending == 0) & (self.tx == 0)
        return found

    def complete(self) -> None:
        """Begin the next phase of those that wait for nothing any more."""
        done = self.are_complete()
        self.phase = np.where(done, (self.phase + 1) & 3, self.phase)
        self.pending = np.where(done, self.expected, self.pending)


class Awaited:
    """Phases that threads wait for: objects, and the bits of their phases that must change."""

    __slots__ = ("at", "bits", "mask")

    def __init__(self, at: Index, bits: Words, mask: int) -> None:
        self.at: Index = at
        self.bits: Words = bits
        self.mask: int = mask

    def part(self, positions: Index) -> Awaited:
        """The same for some of the threads."""
        return Awaited(self.at[positions], self.bits[positions], self.mask)
