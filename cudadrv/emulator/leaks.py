"""Leaks: objects that exist at the end of a session, and the calls that made them.

Objects that the library caches for itself, as long as the driver is in use, are not leaks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from ptx.emulate.check.findings import Place

from .call_site import PACKAGE, host_place, shown_call_site, user_call_site
from .device_state import Owner, Piece

if TYPE_CHECKING:
    from .host_memory import HostPiece

_T = TypeVar("_T")
# Files of the library, or functions in them, that make objects for the library itself. Such are
# events for waiting, pinned buffers and kernels for copies, default streams, modules and streams
# cached by device.
LIBRARYS_OWN: Final = (
    ("driver/stream_handle.py", "take_event"),
    ("memory/staging.py", ""),
    ("memory/pinned.py", "_wait"),
    ("memory/copy_kernel.py", "_load"),
    ("interop/ordering.py", ""),
    ("stream/context_and_stream.py", "default_stream"),
    ("runtime/", ""),
    ("client/cuda_client.py", "_open"),
    ("client/cuda_client.py", "module"),
    ("client/cuda_client.py", "preload_modules"),
    ("client/sobol.py", ""),
    ("blas/", ""),
)


# Other objects are destroyed with their array or graph.
_OF_USERS: Final = (Owner.PLAIN, Owner.POOL, Owner.OPENED, Owner.EXTERNAL)


@dataclass(frozen=True, slots=True)
class Leak:
    """An object that still exists at the end of a session.

    Attributes:
        what: "device memory", "stream", "event", "module" and so on.
        nbytes: the size of memory, else 0.
        handle: its address or handle.
        made_at: the file and line of the call that made it.
    """

    what: str
    nbytes: int
    handle: int
    made_at: str
    check: ClassVar[str] = "leak"
    kernel: ClassVar[str] = ""
    variable: ClassVar[str] = ""
    benign: ClassVar[str] = ""
    is_told: ClassVar[bool] = False

    @property
    def places(self) -> tuple[Place, ...]:
        """The place of the call that made it."""
        return (host_place("made", self.made_at),)

    def __str__(self) -> str:
        size = f"{self.nbytes} bytes of " if self.nbytes else ""
        return (
            f"leak: {size}{self.what} at {self.handle:#x}, still there at the end\n"
            f"  made at {shown_call_site(self.made_at)}\n"
            "  close it, use it in a `with` block, or let no variable hold it any more"
        )


class MadeAt(dict[int, _T]):
    """A table of objects by handle, which records the caller when an object is added.

    Attributes:
        places: the call that made each; None for the library's own objects.
    """

    def __init__(self, table: dict[int, _T]) -> None:
        super().__init__(table)
        self.places: dict[int, str | None] = {}

    def __setitem__(self, handle: int, item: _T) -> None:
        super().__setitem__(handle, item)
        self.places[handle] = None if _is_librarys() else user_call_site()

    def left(self) -> Iterator[tuple[int, _T, str]]:
        """Yield existing objects that the program made, in the order of their making."""
        for handle, call_site in self.places.copy().items():
            item = self.get(handle)
            if item is not None and call_site is not None:
                yield handle, item, call_site


def _is_librarys() -> bool:
    """Return whether an object made now belongs to the library itself."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        code = frame.f_code
        if code.co_filename.startswith(PACKAGE):
            file = code.co_filename[len(PACKAGE) :].replace(os.sep, "/")
            for folder, name in LIBRARYS_OWN:
                if file.startswith(folder) and name in ("", code.co_name):
                    return True
    return False


class LeakWatch:
    """The tables of an emulator, watched from its beginning."""

    def __init__(self) -> None:
        self._handles: list[tuple[str, MadeAt[Any]]] = []  # each with objects of its own type
        self._memory: list[MadeAt[Piece]] = []
        self._host: list[MadeAt[HostPiece]] = []

    def handles(self, kind: str, table: dict[int, _T]) -> dict[int, _T]:
        """Return the table, watched."""
        watched = MadeAt(table)
        self._handles.append((kind, watched))
        return watched

    def memory(self, pieces: dict[int, Piece]) -> dict[int, Piece]:
        """Return the allocations of a device, watched."""
        self._memory.append(MadeAt(pieces))
        return self._memory[-1]

    def host_memory(self, pieces: dict[int, HostPiece]) -> dict[int, HostPiece]:
        """Return the allocations of host memory, watched."""
        self._host.append(MadeAt(pieces))
        return self._host[-1]

    def left(self) -> Iterator[Leak]:
        """Yield existing objects as leaks."""
        for pieces in self._memory:
            for address, piece, call_site in pieces.left():
                if piece.owner in _OF_USERS:
                    yield Leak("device memory", piece.nbytes, address, call_site)
        for allocations in self._host:
            for address, host, call_site in allocations.left():
                kind = "managed memory" if host.managed else "pinned memory"
                yield Leak(kind, host.nbytes, address, call_site)
        for kind, table in self._handles:
            for handle, _, call_site in table.left():
                yield Leak(kind, 0, handle, call_site)
