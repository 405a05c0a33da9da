"""One operation in the queue of a stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from ..node_kind import NodeKind

if TYPE_CHECKING:
    from ptx.emulate.exec.order.ordered_launch import Turns
    from ptx.emulate.model.grid_dependency import GridDependency

    from ..host_memory import HostRange
    from ..node_kind import Run
    from ..streams import Stream


_MANY_TURNS: Final = 8


class State(Enum):
    """How far an operation is."""

    QUEUED = 0
    RUNNING = 1
    DONE = 2


@dataclass(eq=False, slots=True)
class Operation:
    """An operation that a call put into the queue of a stream.

    Attributes:
        number: counts the operations of an emulator in their order; 0 before it is in its queue.
        place: file and line of the call.
        before: what it waits for; empty once it is done, so that no chain of the past stays.
        after: what waits for it.
        missing: how many of `before` are not done.
        is_marker: it only says that others are done, and so runs as soon as they are.
        always: it runs on a broken device too.
        host: the host memory that it reads and writes, as far as that is known.
        thread: who runs it.
        turns: what is left of it, where it is done turn by turn.
        depth: of how many calls of its thread it was begun in.
        waits: how many of its turns have left blocks that may wait for what others write.
        ended_ns: host clock when it was done.
        dependency: of a kernel: what it and the launches beside it tell each other.
        early_behind: the kernel that it may begin before the end of, once that lets it go.
    """

    kind: NodeKind
    stream: Stream
    run: Run
    place: str
    is_marker: bool = False
    always: bool = False
    host: tuple[HostRange, ...] = ()
    number: int = 0
    state: State = State.QUEUED
    missing: int = 0
    thread: int = 0
    turns: Turns | None = None
    depth: int = 0
    waits: int = 0
    ended_ns: int | None = None
    before: tuple[Operation, ...] = ()
    after: list[Operation] = field(default_factory=list)
    dependency: GridDependency | None = None
    early_behind: Operation | None = None

    def __str__(self) -> str:
        where = f", queued at {self.place}" if self.place else ""
        return f"{self.kind.value} {self.number}{where}"

    @property
    def text(self) -> str:
        """The same, and what the host's memory holds that it is still to write."""
        lines = [str(self)]
        lines += [
            f"  its destination, {each.nbytes} bytes of host memory at {each.address:#x}, still "
            f"holds\n  {each.contents}"
            for each in self.host
            if each.is_written and each.piece is not None
        ]
        return "\n".join(lines)

    @property
    def seems_to_wait(self) -> bool:
        """Whether it has had many turns and still has blocks that may wait for others."""
        return self.waits >= _MANY_TURNS

    @property
    def is_done(self) -> bool:
        """Whether it ran, or was given up on a broken device."""
        return self.state is State.DONE


def nothing() -> None:
    """Do nothing: the function of a marker, and of an operation that is done."""
