"""The operations that run now, each in the thread of a call."""

from __future__ import annotations

import threading
from typing import Final

from ..thread import CallingThread
from .operation import Operation, State

# The end of an operation may come before the wait for it begins.
_LOOK_AGAIN_S: Final = 0.02


class UnderWay:
    """What runs now; whoever asks or tells holds the timeline's lock.

    Args:
        lock: that of the timeline.
        thread: what the driver keeps for the calling thread.
    """

    def __init__(self, lock: threading.RLock, thread: CallingThread) -> None:
        self._changed = threading.Condition(lock)
        self._thread = thread
        self._operations: list[Operation] = []

    def begin(self, operation: Operation, depth: int = 0) -> Operation:
        """The calling thread runs an operation from now on, or has begun it at a `depth`."""
        operation.state, operation.thread = State.RUNNING, threading.get_ident()
        operation.depth = depth or self._thread.depth
        self._operations.append(operation)
        return operation

    def end(self, operation: Operation, state: State) -> None:
        """It is done, or waits for its next turn."""
        operation.state = state
        self._operations.remove(operation)
        self._changed.notify_all()

    def wait(self) -> bool:
        """Wait until another thread may have ended one; False where this one must wait for nobody.

        A nested call may hold what the others need.
        """
        if self._thread.is_nested or self.of_this_thread():
            return False
        self._changed.wait(_LOOK_AGAIN_S)
        return True

    def interrupted(self) -> list[Operation]:
        """What an interrupt broke off in this thread; not what is still under way below."""
        depth = self._thread.depth
        return [each for each in self.of_this_thread() if depth <= each.depth]

    def of_this_thread(self) -> list[Operation]:
        """What the calling thread runs, or was to run when an interrupt came."""
        own = threading.get_ident()
        return [each for each in self._operations if each.thread == own]
