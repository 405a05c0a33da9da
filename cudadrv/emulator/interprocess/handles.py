"""The 64 bytes that name memory or an event of an emulator for another process."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, Self

from ..shared_file import SharedFile

_MAGIC: Final = b"cudadrv1"
_OF_PROCESS: Final = struct.Struct("<8sII16s16sQQ")
_IN_POOL: Final = struct.Struct("<8s16sQQ24x")


@dataclass(frozen=True, slots=True)
class ProcessHandle:
    """A file of a process that lives: CUipcMemHandle, CUipcEventHandle.

    Attributes:
        process: who made it.
        number: the file's descriptor there.
        token: that of the file's name.
        device: the UUID of the device.
        nbytes: of memory.
        offset: where that is in the file.
    """

    process: int
    number: int
    token: bytes
    device: bytes
    nbytes: int = 0
    offset: int = 0

    @property
    def packed(self) -> bytes:
        """The bytes."""
        values = (self.process, self.number, self.token, self.device, self.nbytes, self.offset)
        return _OF_PROCESS.pack(_MAGIC, *values)

    @classmethod
    def read(cls, packed: bytes) -> Self | None:
        """What some bytes say; None where they are no such handle."""
        magic, *values = _OF_PROCESS.unpack(packed)
        return cls(*values) if magic == _MAGIC else None

    def opened(self, kind: str) -> SharedFile | None:
        """The file; None if that process has ended or closed it."""
        return SharedFile.of_process(self.process, self.number, kind, self.token)


@dataclass(frozen=True, slots=True)
class PoolPointer:
    """Memory of a pool whose file another process has: CUmemPoolPtrExportData.

    Attributes:
        token: that of the name of the pool's file.
        offset: where it lies in the file.
        nbytes: its size.
    """

    token: bytes
    offset: int
    nbytes: int

    @property
    def packed(self) -> bytes:
        """The bytes."""
        return _IN_POOL.pack(_MAGIC, self.token, self.offset, self.nbytes)

    @classmethod
    def read(cls, packed: bytes) -> Self | None:
        """What some bytes say; None where they are no such pointer."""
        magic, *values = _IN_POOL.unpack(packed)
        return cls(*values) if magic == _MAGIC else None
