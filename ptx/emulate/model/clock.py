"""A device's clock: the host's time, plus the time that was skipped while all threads slept."""

from __future__ import annotations

import time


class Clock:
    """What `%clock` and `%globaltimer` count.

    Where all threads sleep, time is skipped, not waited for; the device's clocks stay ahead then.
    """

    def __init__(self, khz: int) -> None:
        self._khz = khz
        self._started_ns = time.time_ns() - time.perf_counter_ns()
        self._skipped_ns = 0

    def nanoseconds(self) -> int:
        """Nanoseconds since the epoch, which never go back."""
        return self._started_ns + time.perf_counter_ns() + self._skipped_ns

    def ticks(self) -> int:
        """Cycles of the device."""
        return (time.perf_counter_ns() + self._skipped_ns) * self._khz // 1_000_000

    def skip_to(self, nanoseconds: int) -> None:
        """Let time be at least this."""
        self._skipped_ns += max(0, nanoseconds - self.nanoseconds())
