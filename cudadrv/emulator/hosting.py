"""Functions for a process that runs on an emulator: what sessions and commands set and read.

They are beside the methods of `Emulator`, which are for its users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from .calls.call import state_of
from .emulator import Emulator
from .timeline.operation_log import OperationLog
from .timeline.queues import State

_MOST_SHOWN: Final = 8


def report_after_calls(emulator: Emulator, function: Callable[[], object]) -> None:
    """Call a function after each driver call."""
    state_of(emulator).process.reporter = function


def note_kernels(emulator: Emulator, function: Callable[[], None]) -> None:
    """Call a function before the first kernel of each device."""
    for device in state_of(emulator).devices.visible:
        device.note_kernel = function


def log_operations(emulator: Emulator) -> OperationLog:
    """Return a log that records the operations of streams from now on."""
    log = OperationLog()
    state_of(emulator).operations.queue.log = log
    return log


def work_of(emulator: Emulator) -> list[dict[str, object]]:
    """Return the operations that have not ended, in the order of their calls.

    Each has its kind, number, stream, the place of its call, and whether it runs now.
    """
    return [
        {
            "kind": operation.kind.value,
            "number": operation.number,
            "stream": operation.stream.number,
            "call": operation.call_site,
            "is_running": operation.state is State.RUNNING,
        }
        for operation in state_of(emulator).operations.queue.pending()
    ]


def is_broken(emulator: Emulator) -> bool:
    """Return whether a fault has broken a device."""
    return any(device.fault for device in state_of(emulator).devices.visible)


def keep_no_faults(emulator: Emulator) -> None:
    """Let a kernel's fault end its own call alone; the device works on."""
    for device in state_of(emulator).devices.visible:
        device.keeps_faults = False


def clear_faults(emulator: Emulator) -> None:
    """Let broken devices work again."""
    for device in state_of(emulator).devices.visible:
        device.fault = None


def still_queued(queued: Sequence[str], when: str) -> str:
    """Return `Emulator.queued` as lines for an error that a missing wait may explain, or "".

    Copies to the host come first, as their destinations look like wrong values.
    """
    if not queued:
        return ""
    order = sorted(queued, key=lambda text: "\n" not in text)
    lines = [f"  {text}".replace("\n", "\n  ") for text in order[:_MOST_SHOWN]]
    hidden_count = len(order) - len(lines)
    lines += [f"  and {hidden_count} more"] if hidden_count else []
    return "\n".join([f"{when}, this work was queued and had not run. Is a wait missing?", *lines])
