"""One memory instruction, and the part of the allocation table that its accesses cache."""

from __future__ import annotations

import numpy as np

from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.mapped_memory import MappedHostMemory, PeerMemory
from ptx.emulate.model.types import NUMPY, Scalar
from ptx.isa.instruction_facts import InstructionFacts, InstructionKind
from ptx.isa.model import Instruction

Memory = DeviceMemory | PeerMemory | MappedHostMemory
Window = tuple[int, int, int, int, memoryview, memoryview]
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_WIDEST = 8  # bytes of an element that Python has a number for
_CLOSED: Window = (1, 0, -1, 0, memoryview(b""), memoryview(b""))


def used_bytes_of(instruction: Instruction, total: int) -> tuple[int, ...]:
    """Which of the `total` bytes that an instruction names it uses.

    PTX ISA, "Pragma Strings: used_bytes_mask": the others of a load may lie in no memory.
    """
    is_load = instruction.facts.kind is InstructionKind.LOAD
    mask = (instruction.used_bytes or 0) if is_load else 0
    used = tuple([byte for byte in range(total) if mask >> byte & 1])
    return used or tuple(range(total))


def used_elements(instruction: Instruction, nbytes: int, count: int) -> tuple[int, ...]:
    """Which of the `count` elements of `nbytes` each have a byte that the instruction uses."""
    return tuple(sorted({byte // nbytes for byte in used_bytes_of(instruction, nbytes * count)}))


class Site:
    """One memory instruction: its access, and the bounds of the allocation that it accessed last.

    Attributes:
        facts: of the instruction.
        kind: of one element; `nbytes` its size, `total` that of all `count` elements of a vector.
        parts: the elements that are used; `first` and `end` enclose their used bytes.
        space: "global", "shared", "local", "param" or "generic".
        bounds: where an access lies wholly in the allocation that the last one was in, the version
            of the device's allocation table then, and the memory that it is in; replaced as a
            whole, as several threads may launch the kernel at once.
        is_padding: whether it loads bytes of which none is used.
        neighbours: later loads of its basic block from the same addresses at other offsets, if
            nothing writes memory between: offset and site of each.
        is_elsewhere: whether an access reached another device's memory, or the host's.
        window: the same bounds for code of single threads: least and greatest address, version,
            address of the first element in units of elements, the elements, and their bits.
    """

    __slots__ = (
        "bounds", "count", "dtype", "end", "facts", "first", "instruction", "is_elsewhere",
        "is_padding", "kind", "nbytes", "neighbours", "parts", "shift", "space", "total", "window",
        "writes",
    )  # fmt: skip

    def __init__(
        self, instruction: Instruction, space: str, kind: str, count: int, *, writes: bool
    ) -> None:
        self.instruction: Instruction = instruction
        self.facts: InstructionFacts = instruction.facts
        self.space: str = space
        self.kind: str = kind
        self.dtype: Scalar = NUMPY[kind]
        self.nbytes: int = np.dtype(self.dtype).itemsize
        self.shift: int = self.nbytes.bit_length() - 1
        self.count: int = count
        self.total: int = self.nbytes * count
        is_load = instruction.facts.kind is InstructionKind.LOAD
        self.is_padding: bool = is_load and instruction.used_bytes == 0
        used = used_bytes_of(instruction, self.total)
        self.first: int = used[0]
        self.end: int = used[-1] + 1
        self.parts: tuple[int, ...] = used_elements(instruction, self.nbytes, count)
        self.writes: bool = writes
        self.bounds: tuple[int, int, int, Memory | None] = (0, 0, -1, None)
        self.is_elsewhere: bool = False
        self.window: Window = _CLOSED
        self.neighbours: list[tuple[int, Site]] = []

    @property
    def is_of_team(self) -> bool:
        """Whether it accesses the memory of each device that is bound to a multicast object."""
        return self.instruction.opcode == "multimem"

    def open_window(self) -> None:
        """Give single threads direct access to the memory of the last access, if it is known."""
        least, end, version, memory = self.bounds
        greatest = end - self.total
        if memory is None or self.window[:3] == (least, greatest, version):
            return
        elements = memory.view(self.dtype)
        bits = elements.view(_UNSIGNED[self.nbytes]) if self.nbytes <= _WIDEST else elements
        first = memory.base >> self.shift
        self.window = (least, greatest, version, first, elements.data, bits.data)
