"""`BumpArena`: addresses in one buffer, each handed out once; what a captured graph allocates from.

Whole-number arithmetic, without a driver. After numr's capture arena: a free never rewinds it, or
two kernels that are baked into one graph would share an address.
"""

from __future__ import annotations

import threading
from typing import Final

from ...errors import InvalidValueError, OutOfMemoryError

ALIGNMENT: Final = 256  # what cuMemAllocAsync gives, and what every vector access is content with


class BumpArena:
    """A pointer that only moves up, over `nbytes` bytes at `base`.

    Args:
        base: the first address; addresses handed out are multiples of 256.
        nbytes: how many bytes there are.

    Attributes:
        given: how many addresses were given back.
    """

    __slots__ = ("_lock", "_next", "base", "given", "nbytes")

    def __init__(self, base: int, nbytes: int) -> None:
        if base <= 0 or nbytes < 0:
            raise InvalidValueError(f"an arena of {nbytes} bytes at {base:#x}: both are positive")
        self.base: int = base
        self.nbytes: int = nbytes
        self.given: int = 0
        self._next = _aligned(base)
        self._lock = threading.RLock()

    def __contains__(self, address: int) -> bool:
        return self.base <= address < self.base + self.nbytes

    @property
    def used_bytes(self) -> int:
        """Bytes that are gone, alignment included."""
        return min(self._next - self.base, self.nbytes)

    @property
    def remaining_bytes(self) -> int:
        """The largest request that still fits."""
        return max(self.base + self.nbytes - self._next, 0)

    def take(self, nbytes: int) -> int:
        """The address of `nbytes` bytes that nobody had before and nobody gets again.

        Raises:
            OutOfMemoryError: they do not fit what is left.
        """
        end = self.base + self.nbytes
        size = _aligned(max(nbytes, 1))  # a request of no bytes moves on too: no two are equal
        with self._lock:
            fits = self._next + nbytes <= end
            if fits:
                # In one step, as a finalizer may take some between two.
                address, self._next = self._next, self._next + size
                fits = address + nbytes <= end
            if not fits:
                raise OutOfMemoryError(
                    f"allocating {nbytes} bytes from the capture arena of {self.nbytes} bytes, "
                    f"which has {self.remaining_bytes} left; give the capture a larger arena"
                )
        return address

    def give(self, address: int) -> None:
        """Note that an address is no longer used; it is not handed out again.

        Raises:
            InvalidValueError: it was never handed out.
        """
        with self._lock:
            if not _aligned(self.base) <= address < self._next:
                raise InvalidValueError(f"the capture arena never handed out {address:#x}")
            self.given += 1

    def overlaps(self, other: BumpArena) -> bool:
        """Whether the two share an address."""
        return self.base < other.base + other.nbytes and other.base < self.base + self.nbytes


def _aligned(address: int) -> int:
    return -(-address // ALIGNMENT) * ALIGNMENT
