"""A device's clock: the host's time, plus the time that was skipped while all threads slept."""

from __future__ import annotations

import time

_COUNTED_FROM_NS = 1_700_000_000_000_000_000  # since the epoch
_UPTIME_NS = 3_600_000_000_000  # of a device whose clock begins: its 32 low bits are not all
_LEAST_STEP_NS, _LONGEST_STEP_NS = 50, 1_000_000
_STEP_SHIFT = 6  # a reading adds a 64th of a launch's time so far


class Clock:
    """The clock of `%clock` and `%globaltimer`.

    If all threads sleep, time is skipped without waiting; the device's clocks are then later than
    the host's.
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
        return (self.nanoseconds() - self._started_ns) * self._khz // 1_000_000

    def skip_to(self, nanoseconds: int) -> None:
        """Advance the time to at least this."""
        self._skipped_ns += max(0, nanoseconds - self.nanoseconds())


class CountedClock(Clock):
    """A clock that advances only when it is read, so that a launch can be repeated.

    Each reading adds a part of the launch's time so far, so that a kernel which waits for a time
    does not read for ever.
    """

    def __init__(self, khz: int) -> None:
        super().__init__(khz)
        self._started_ns = _COUNTED_FROM_NS
        self._skipped_ns = self._began_ns = _UPTIME_NS

    def begin(self) -> None:
        """A launch begins."""
        self._began_ns = self._skipped_ns

    def nanoseconds(self) -> int:
        """Nanoseconds since the epoch, which never go back."""
        so_far = self._skipped_ns - self._began_ns
        self._skipped_ns += min(_LEAST_STEP_NS + (so_far >> _STEP_SHIFT), _LONGEST_STEP_NS)
        return self._started_ns + self._skipped_ns
