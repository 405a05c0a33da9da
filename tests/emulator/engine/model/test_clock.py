"""A device's clocks go on with the wall's, and skip what nobody has to wait for."""

from __future__ import annotations

import time

from ptx.emulate.model.clock import Clock


def test_time_is_that_of_the_day_until_some_is_skipped() -> None:
    clock = Clock(1_000_000)
    assert abs(clock.nanoseconds() - time.time_ns()) < 10**9
    before = clock.nanoseconds()
    clock.skip_to(before + 10**12)
    assert 0 <= clock.nanoseconds() - (before + 10**12) < 10**11
    clock.skip_to(before)
    assert clock.nanoseconds() >= before + 10**12


def test_ticks_follow_the_rate() -> None:
    clock = Clock(2_000_000)  # two a nanosecond
    ticks, nanoseconds = clock.ticks(), clock.nanoseconds()
    clock.skip_to(nanoseconds + 10**15)
    assert 0 <= clock.ticks() - ticks - 2 * 10**15 < 10**12
