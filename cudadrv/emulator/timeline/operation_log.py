"""The operations of an emulator in the order in which they ran, with what each waited for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..node_kind import NodeKind

if TYPE_CHECKING:
    from .queues import QueuedOperation


@dataclass(frozen=True, slots=True)
class LoggedOperation:
    """One operation of a stream.

    Attributes:
        number: counts the operations in the order of their calls, from 1.
        kind: as `NodeKind` names it.
        stream: the number of its stream, from 1 in the order of first use.
        begins, ends: steps of the emulator; two operations whose steps overlap alternated. None if
            it did not run.
        waits_for: the numbers of operations of other streams that it came after.
        place: file and line of the call, or "".
    """

    number: int
    kind: str
    stream: int
    begins: int | None
    ends: int | None
    waits_for: tuple[int, ...]
    place: str

    @property
    def is_kernel(self) -> bool:
        """Whether it is the launch of a kernel."""
        return self.kind == NodeKind.KERNEL.value


class OperationLog:
    """Records operations; the timeline calls it under its lock."""

    def __init__(self) -> None:
        self._before: dict[QueuedOperation, tuple[QueuedOperation, ...]] = {}
        self._began: dict[QueuedOperation, int] = {}
        self._ended: dict[QueuedOperation, int] = {}

    def queued(self, operation: QueuedOperation, before: Iterable[QueuedOperation]) -> None:
        """Record that a call queued an operation after others."""
        self._before[operation] = tuple(dict.fromkeys(before))

    def began(self, operation: QueuedOperation) -> None:
        """Record that an operation begins, or continues."""
        self._began.setdefault(operation, len(self._began))

    def ended(self, operation: QueuedOperation) -> None:
        """Record that an operation is done."""
        if operation in self._began:
            self._ended[operation] = len(self._began)

    @property
    def operations(self) -> list[LoggedOperation]:
        """The operations in the order of their calls."""
        numbers = {operation: number for number, operation in enumerate(self._before, 1)}
        streams = {
            stream: number
            for number, stream in enumerate(
                dict.fromkeys(operation.stream for operation in numbers), 1
            )
        }
        return [
            LoggedOperation(
                number,
                operation.kind.value,
                streams[operation.stream],
                self._began.get(operation),
                self._ended.get(operation),
                tuple(
                    numbers[other]
                    for other in self._before[operation]
                    if other in numbers and other.stream is not operation.stream
                ),
                operation.call_site,
            )
            for operation, number in numbers.items()
        ]
