"""A kernel's generated code: the facts of its basic blocks, and the functions that execute them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ptx.emulate.exec.lane.lane_code import LaneCode
from ptx.emulate.kernel_facts import KernelFacts
from ptx.emulate.model.threads import Registers
from ptx.emulate.threads.fibre import Fibre

BlockFunction = Callable[[Fibre, Registers], int]
_LINES = 500  # compiled at once: fewer calls of the compiler against lines that never run


class BlockFunctions(list[BlockFunction]):
    """The function of each block; until one of its group is called, a stand-in that compiles them.

    Python's compiler takes longer than everything before it, and much of a large kernel never runs.

    Attributes:
        kernel: the kernel's name.
        names: what the code names; the functions' global variables.
    """

    def __init__(self, kernel: str, names: dict[str, object]) -> None:
        super().__init__()
        self.names = names
        self.kernel = kernel
        self._groups: list[list[str]] = []
        self._group: list[str] = []
        self._first = 0

    def add(self, lines: Sequence[str]) -> None:
        """Take the next block's code."""
        if not self._group:
            self._first = len(self)
            self._groups.append(self._group)
        self._group.append(f"def b{len(self)}(f, R):\n    " + "\n    ".join(lines))
        self.append(self._stand_in(len(self), len(self._groups) - 1, self._first))
        if sum(map(len, self._group)) > _LINES * 40:
            self._group = []

    @property
    def source(self) -> str:
        """All of the code."""
        return "\n".join("\n".join(group) for group in self._groups)

    def _stand_in(self, number: int, group: int, first: int) -> BlockFunction:
        def compile_and_run(fibre: Fibre, registers: Registers) -> int:
            self._compile(group, first)
            return self[number](fibre, registers)

        return compile_and_run

    def _compile(self, group: int, first: int) -> None:
        """Make a group's functions; two threads that do it at once make the same."""
        sources = self._groups[group]
        exec(compile("\n".join(sources), f"<ptx {self.kernel}>", "exec"), self.names)
        for number in range(first, first + len(sources)):
            function: BlockFunction = self.names[f"b{number}"]  # type: ignore[assignment]  # made
            self[number] = function


@dataclass(slots=True)
class ChunkHistory:
    """What earlier launches showed of a kernel's chunks.

    Attributes:
        were_dependent: whether chunks of a launch depended on each other, or may have.
    """

    were_dependent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCode(KernelFacts):
    """The code of a kernel and of the functions that it calls.

    Attributes:
        blocks: the Python function of each block.
        lanes: the same for few threads, where there is such code.
        chunks: what earlier launches showed.
    """

    blocks: BlockFunctions
    lanes: LaneCode | None
    chunks: ChunkHistory = field(default_factory=ChunkHistory)
