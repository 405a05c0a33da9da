"""Memory and semaphores of other interfaces, as the emulator imports them."""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass, field
from typing import Final

from .call_error import invalid_value
from .shared_file import SharedFile

_COUNT: Final = re.compile(r"eventfd-count:\s*([0-9a-f]+)")


@dataclass(eq=False, repr=False, slots=True)
class ExternalMemory:
    """Memory of another interface.

    Attributes:
        file: its file.
        nbytes: its size, as the importer gave it.
    """

    file: SharedFile
    nbytes: int


@dataclass(eq=False, repr=False, slots=True)
class ExternalSemaphore:
    """A semaphore of another interface.

    Attributes:
        descriptor: its eventfd.
        is_timeline: whether it counts up, and is not binary.
    """

    descriptor: int
    is_timeline: bool
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def close(self) -> None:
        """Close the eventfd. Idempotent."""
        number, self.descriptor = self.descriptor, -1
        if number >= 0:
            os.close(number)

    def __del__(self) -> None:
        self.close()

    def count(self) -> int:
        """Return the count of the eventfd, without changing it."""
        with open(f"/proc/self/fdinfo/{self.descriptor}") as info:
            match = _COUNT.search(info.read())
        return int(match[1], 16) if match else 0

    def signal(self, value: int) -> None:
        """Signal it; a timeline semaphore gets a higher value."""
        with self._lock:
            increment = value - self.count() if self.is_timeline else 1
            if increment < 1:
                raise invalid_value(f"signalling {value}, and the semaphore has {self.count()}")
            os.eventfd_write(self.descriptor, increment)

    def take(self, value: int) -> bool:
        """Return whether it is signalled; a binary semaphore is not any more then."""
        with self._lock:
            if self.is_timeline:
                return self.count() >= value
            if not self.count():
                return False
            os.eventfd_read(self.descriptor)
            return True
