"""One memory instruction, and what its accesses remember of the allocation table."""

from __future__ import annotations

import numpy as np

from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.host_memory import MappedHostMemory
from ptx.emulate.model.types import NUMPY
from ptx.isa.model import Instruction

Memory = DeviceMemory | MappedHostMemory


class Site:
    """One memory instruction: what it accesses, and the bounds of the allocation that it hit last.

    Attributes:
        kind: of one element; `nbytes` its size, `total` that of all `count` elements of a vector.
        space: "global", "shared", "local", "param" or "generic".
        bounds: start and end of the allocation that the last access was in, the version of the
            device's allocation table then, and the memory that it is in; replaced as a whole, as
            several threads may launch the kernel at once.
    """

    __slots__ = (
        "bounds", "count", "dtype", "instruction", "kind", "nbytes", "shift", "space", "total",
        "writes",
    )  # fmt: skip

    def __init__(
        self, instruction: Instruction, space: str, kind: str, count: int, *, writes: bool
    ) -> None:
        self.instruction = instruction
        self.space = space
        self.kind = kind
        self.dtype = NUMPY[kind]
        self.nbytes = np.dtype(self.dtype).itemsize
        self.shift = self.nbytes.bit_length() - 1
        self.count = count
        self.total = self.nbytes * count
        self.writes = writes
        self.bounds: tuple[int, int, int, Memory | None] = (0, 0, -1, None)
