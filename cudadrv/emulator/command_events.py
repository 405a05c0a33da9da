"""What happened in the processes of one `emulate`, for the command that started them.

`emulate` names a folder in the environment where it needs to know. Each kind of event makes one
file there, at once, as a process may end without another step of Python.
"""

from __future__ import annotations

import os
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Final

FOLDER: Final = "CUDADRV_EMULATE_EVENTS"


class Event(Enum):
    """A kind of event; the value is the name of its file."""

    KERNEL = "kernel"
    FINDING = "finding"
    FAULT = "fault"


def note(event: Event) -> None:
    """Note that an event has happened, if someone needs to know."""
    folder = os.environ.get(FOLDER)
    if folder:
        with suppress(OSError):  # the folder may be gone, as for a process that outlives `emulate`
            Path(folder, event.value).touch()


def happened(folder: Path, event: Event) -> bool:
    """Return whether a process has noted an event."""
    return (folder / event.value).exists()
