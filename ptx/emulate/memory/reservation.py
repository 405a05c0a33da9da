"""A range of addresses that is reserved, into which memory is mapped piece by piece."""

from __future__ import annotations

from ptx.emulate.memory.device_memory import DeviceMemory


class Reservation:
    """A reserved range. Mapped pieces that follow each other are one allocation.

    Attributes:
        address: where it begins.
        nbytes: its size.
        pieces: what is mapped, by address: the size, and whether it may be accessed.
    """

    def __init__(self, memory: DeviceMemory, nbytes: int, alignment: int) -> None:
        self._memory = memory
        self.address: int = memory.reserve(nbytes, alignment)
        self.nbytes: int = nbytes
        self.pieces: dict[int, tuple[int, bool]] = {}
        self._shown: dict[int, int] = {}

    def holds(self, address: int, nbytes: int) -> bool:
        """Whether some bytes are all in the range."""
        return self.address <= address and address + nbytes <= self.address + self.nbytes

    def map(self, address: int, nbytes: int) -> bool:
        """Map a piece, which cannot be accessed yet; False where something is mapped already."""
        if any(
            address < start + size and start < address + nbytes
            for start, (size, _) in self.pieces.items()
        ):
            return False
        self.pieces[address] = nbytes, False
        written = self._memory.written
        if written is not None:
            written.begin(address - self._memory.base, nbytes)
        return True

    def piece_at(self, address: int) -> tuple[int, int] | None:
        """The address and size of the piece that has a byte; None where nothing is mapped."""
        for start, (nbytes, _) in self.pieces.items():
            if start <= address < start + nbytes:
                return start, nbytes
        return None

    def within(self, address: int, nbytes: int) -> list[int] | None:
        """The pieces that some bytes are made up of; None where they are not whole pieces."""
        found, at = [], address
        while at < address + nbytes:
            if at not in self.pieces:
                return None
            found.append(at)
            at += self.pieces[at][0]
        return found if at == address + nbytes else None

    def open(self, pieces: list[int], *, is_open: bool) -> None:
        """Let pieces be accessed, or not."""
        for at in pieces:
            self.pieces[at] = self.pieces[at][0], is_open
        self._show()

    def unmap(self, pieces: list[int]) -> None:
        """Take pieces away."""
        for at in pieces:
            del self.pieces[at]
        self._show()

    def free(self) -> None:
        """Give the range back, in which nothing is mapped."""
        self._memory.unreserve(self.address, self.nbytes)

    def _show(self) -> None:
        """Make allocations of what may be accessed."""
        runs: dict[int, int] = {}
        start, end = 0, -1
        for at, (nbytes, is_open) in sorted(self.pieces.items()):
            if is_open and at == end:
                runs[start] += nbytes
            elif is_open:
                start, runs[at] = at, nbytes
            end = at + nbytes if is_open else -1
        for at in [at for at, nbytes in self._shown.items() if runs.get(at) != nbytes]:
            self._memory.hide(at)
            del self._shown[at]
        for at, nbytes in runs.items():
            if at not in self._shown:
                self._memory.show(at, nbytes, "cuMemMap")
                self._shown[at] = nbytes
