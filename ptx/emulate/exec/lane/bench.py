"""What the code of single threads has at hand: the memories of their chunk as Python sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import NUMPY
from ptx.emulate.threads.rows import LANE, Row, column

if TYPE_CHECKING:
    from ptx.emulate.exec.launch import Launch
    from ptx.emulate.memory.device_memory import DeviceMemory
    from ptx.emulate.threads.resident_blocks import ResidentBlocks


class LaneParameters(dict[tuple[str, int], Any]):
    """Kernel parameters by kind and offset, as a row holds them; read when first asked for."""

    def __init__(self, launch: Launch) -> None:
        super().__init__()
        self._params = launch.params

    def __missing__(self, key: tuple[str, int]) -> Any:
        value: Value = self._params[key]
        found = self[key] = column(value, 1)[0]
        return found


class Bench:
    """The memories of one chunk; `shared_u32` is its shared memory as such elements.

    Attributes:
        F, I: one float32 and its bits; D, Q: one float64 and its bits.
        memory: the device's; params: of the kernel; shared_bytes: of a block; local_bytes: of a
            thread.
    """

    def __init__(self, blocks: ResidentBlocks) -> None:
        word, long = np.zeros(1, np.uint32), np.zeros(1, np.uint64)
        self.F, self.I = word.view(np.float32).data, word.data
        self.D, self.Q = long.view(np.float64).data, long.data
        self.memory: DeviceMemory = blocks.launch.memory
        self.params: LaneParameters = LaneParameters(blocks.launch)
        self.shared_bytes: int = blocks.launch.shared_bytes
        self.local_bytes: int = blocks.local_stride
        self._blocks = blocks

    def __getattr__(self, name: str) -> memoryview:
        """A memory as elements of a kind, made when first asked for."""
        space, _, kind = name.partition("_")
        if space not in ("shared", "local") or kind not in NUMPY:
            raise AttributeError(name)
        data = self._blocks.shared if space == "shared" else self._blocks.local
        found = data.view(NUMPY[kind]).data
        setattr(self, name, found)
        return found

    def special(self, name: str, row: Row) -> int:
        """A special register of one thread, but for those that tell a time."""
        value = self._blocks.special(name)
        return int(value.item(row[LANE]) if value.ndim else value)
