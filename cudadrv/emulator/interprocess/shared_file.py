"""`SharedFile`: a file in memory, which processes of one host share and nobody has to remove.

It has no name in any folder: another process of the same user is given its descriptor, or opens
it by the number that it has in the process that made it (proc(5), /proc/PID/fd). So it is gone when
the last process that has it open or mapped has closed it or has ended, however it ended.
"""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass
from typing import Final

_PREFIX: Final = "cudadrv"
_NAME: Final = re.compile(rf"/memfd:{_PREFIX}-(\w+)-([0-9a-f]{{32}})-([0-9a-f]{{32}})\b")


@dataclass(frozen=True, slots=True)
class FileName:
    """What a file is called, so that another file is not taken for it.

    Attributes:
        kind: what it is for: "pool", "memory", "mapped" or "event".
        token: no other file has it.
        device: the UUID of the device that it is of.
    """

    kind: str
    token: bytes
    device: bytes

    @classmethod
    def new(cls, kind: str, device: bytes) -> FileName:
        """A name that no other file has."""
        return cls(kind, secrets.token_bytes(16), device)

    @classmethod
    def read(cls, link: str) -> FileName | None:
        """The name of what a link of /proc points to; None where it is no such file."""
        found = _NAME.match(link)
        if found is None:
            return None
        kind, token, device = found.groups()
        return cls(kind, bytes.fromhex(token), bytes.fromhex(device))

    def __str__(self) -> str:
        return f"{_PREFIX}-{self.kind}-{self.token.hex()}-{self.device.hex()}"


class SharedFile:
    """An open file.

    Attributes:
        name: what it is called.
        number: its descriptor in this process; -1 once it is closed.
    """

    def __init__(self, name: FileName, number: int) -> None:
        self.name: FileName = name
        self.number: int = number

    @classmethod
    def made(cls, kind: str, device: bytes, nbytes: int = 0) -> SharedFile:
        """A new file, whose pages are there when they are first written.

        Raises:
            OSError: the system has no more files.
        """
        name = FileName.new(kind, device)
        self = cls(name, os.memfd_create(str(name)))
        os.ftruncate(self.number, nbytes)
        return self

    @classmethod
    def of_descriptor(cls, number: int, kind: str) -> SharedFile | None:
        """The file of a descriptor, which stays its owner's; None if it is no such file."""
        return cls._opened(f"/proc/self/fd/{number}", kind)

    @classmethod
    def of_process(cls, process: int, number: int, kind: str, token: bytes) -> SharedFile | None:
        """A file of another process; None if that has ended or closed it."""
        found = cls._opened(f"/proc/{process}/fd/{number}", kind)
        return found if found is not None and found.name.token == token else None

    @classmethod
    def _opened(cls, path: str, kind: str) -> SharedFile | None:
        try:
            number = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        # The name of what was opened: another file may have had the number since.
        name = FileName.read(os.readlink(f"/proc/self/fd/{number}"))
        if name is None or name.kind != kind:
            os.close(number)
            return None
        return cls(name, number)

    @property
    def nbytes(self) -> int:
        """Its size."""
        return os.fstat(self.number).st_size

    def duplicate(self) -> int:
        """One more descriptor, which is the caller's."""
        return os.dup(self.number)

    def close(self) -> None:
        """Close it here; what is mapped stays. Idempotent."""
        number, self.number = self.number, -1
        if number >= 0:
            os.close(number)

    def __del__(self) -> None:
        self.close()
