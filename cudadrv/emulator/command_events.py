"""What happened in the processes of one `emulate`, for the command that started them.

`emulate` names a folder in the environment where it needs to know. Each kind of event makes one
file there, at once, as a process may end without another step of Python.
"""

from __future__ import annotations

import os
from ast import literal_eval
from contextlib import suppress
from enum import Enum, nonmember
from pathlib import Path
from typing import Final


class Event(Enum):
    """A kind of event; the value is the name of its file.

    Attributes:
        FOLDER: the variable that names the folder.
    """

    FOLDER: Final = nonmember("CUDADRV_EMULATE_EVENTS")
    KERNEL = "kernel"
    FINDING = "finding"
    FAULT = "fault"

    def note(self, check: str = "", text: str = "") -> None:
        """Note that the event has happened, if a command needs it.

        Args:
            check: the check of a finding.
            text: the report of a finding or a fault.
        """
        folder = os.environ.get(self.FOLDER)
        if folder:
            with suppress(OSError):  # it may be gone, as for a process that outlives `emulate`
                Path(folder, self.value).touch()
                if text:
                    own = Path(folder, f"{self.value}.{os.getpid()}")
                    with open(own, "a", encoding="utf-8", errors="replace") as file:
                        file.write(f"{(check, text)!r}\n")

    def reports(self, folder: Path) -> list[tuple[str, str]]:
        """Return the check and the text of each report, a process after the other."""
        files = sorted(folder.glob(f"{self.value}.*"))
        lines = [line for file in files for line in file.read_text("utf-8").split("\n") if line]
        return list(dict.fromkeys(map(literal_eval, lines)))

    def happened(self, folder: Path) -> bool:
        """Return whether a process has noted the event."""
        return (folder / self.value).exists()
