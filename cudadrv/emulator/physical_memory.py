"""Device memory that has no address of its own until it is mapped."""

from __future__ import annotations

from dataclasses import dataclass

from ptx.emulate.memory.device_memory import DeviceMemory

from .interprocess.shared_file import SharedFile


@dataclass(slots=True)
class PhysicalMemory:
    """What cuMemCreate gives.

    Attributes:
        mapped_at: where it is mapped; 0 where it is not.
        is_released: whether its handle was given back; it goes once it is mapped nowhere.
        file: where it is, if other processes may have it.
        is_foreign: whether it is another process's, and takes none of this device's memory.
    """

    nbytes: int
    mapped_at: int = 0
    is_released: bool = False
    file: SharedFile | None = None
    is_foreign: bool = False

    def settle(self, memory: DeviceMemory) -> bool:
        """Give it back to its device if nobody has it; whether nobody does."""
        if not self.is_released or self.mapped_at:
            return False
        if not self.is_foreign:
            memory.used_bytes -= self.nbytes
        if self.file is not None:
            self.file.close()
        return True
