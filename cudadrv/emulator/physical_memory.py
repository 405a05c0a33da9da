"""Device memory that has no address of its own until it is mapped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.device_memory import DeviceMemory

from .interprocess.shared_file import SharedFile


@dataclass(slots=True)
class PhysicalMemory:
    """What cuMemCreate gives.

    Attributes:
        mapped_at: where it is mapped; 0 where it is not.
        references: how many have its handle; without one it goes once it is mapped nowhere.
        content: its bytes while it is mapped nowhere and was before; a file has them itself.
        file: where it is, if other processes may have it.
        is_foreign: whether it is another process's, and takes none of this device's memory.
    """

    nbytes: int
    mapped_at: int = 0
    references: int = 1
    content: NDArray[np.uint8] | None = None
    file: SharedFile | None = None
    is_foreign: bool = False

    def map(self, memory: DeviceMemory, address: int) -> None:
        """Be there."""
        self.mapped_at = address
        if self.content is not None:
            memory.data[address - memory.base :][: self.nbytes] = self.content
            memory.mark_written(address, self.nbytes)
            self.content = None

    def unmap(self, memory: DeviceMemory) -> None:
        """Be there no more."""
        if self.references and self.file is None:
            self.content = memory.data[self.mapped_at - memory.base :][: self.nbytes].copy()
        self.mapped_at = 0

    def settle(self, memory: DeviceMemory) -> bool:
        """Give it back to its device if nobody has it; whether nobody does."""
        if self.references or self.mapped_at:
            return False
        if not self.is_foreign:
            memory.used_bytes -= self.nbytes
        if self.file is not None:
            self.file.close()
        return True
