"""Interrupts at random moments, one or a storm of them, by signals and from another thread."""

from __future__ import annotations

import ctypes
import faulthandler
import random
import signal
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType
from typing import Final

import cudadrv

from ..report import Report
from .operations import LONG
from .place import Act
from .points import Interrupted, is_in_driver
from .systematic import Lab, laboratory

_HANG_SECONDS: Final = 120.0
_MOST_THREADS: Final = 64
MOST_FAILURES: Final = 10
"""The failures after which the campaign stops. Each ends its lab, and a new one follows."""
_AGAIN_SECONDS: Final = 0.0001
"""After which an interrupt comes again that met the driver: a driver of C returns first."""
_LATE_SECONDS: Final = 0.02
_STORM_SECONDS: Final = 0.0005
"""The time between two interrupts of a storm."""


def _raise(number: int, frame: FrameType | None) -> None:
    if is_in_driver(frame):
        _, interval = signal.getitimer(signal.ITIMER_REAL)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS, interval)
    else:
        raise Interrupted


# CPython gives a new thread the number of the one that starts it, for a moment. An exception set
# into the one may come into the other, whose starter then waits for ever (PyThreadState_SetAsyncExc
# and thread_PyThread_start_new_thread in CPython 3.11).
_starting: Final = threading.RLock()
_start: Final = threading.Thread.start


def _start_undisturbed(thread: threading.Thread) -> None:
    with _starting:
        _start(thread)


class Moment:
    """Interrupts what the main thread does from some moment on, until it is told to stop.

    Args:
        delay: the seconds until the first interrupt.
        is_storm: whether others follow.
    """

    def __init__(self, delay: float, *, is_storm: bool) -> None:
        self.delay = delay
        self.is_storm = is_storm

    def start(self) -> None:
        """Begin to wait."""
        raise NotImplementedError

    def stop(self) -> None:
        """Interrupt no more; one may be on its way."""
        raise NotImplementedError


class Timer(Moment):
    """By a timer of the system, whose signal interrupts what waits as well."""

    def start(self) -> None:
        interval = _STORM_SECONDS if self.is_storm else 0.0
        signal.setitimer(signal.ITIMER_REAL, self.delay, interval)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


class Thrown(Moment):
    """From another thread: set into the main thread, or as Ctrl-C."""

    def __init__(self, delay: float, *, is_storm: bool, is_set: bool) -> None:
        super().__init__(delay, is_storm=is_storm)
        self._is_set = is_set
        # Lists, as an interrupt in an `Event` may leave its lock taken.
        self._stopped: list[bool] = []
        self._ended: list[bool] = []
        self._thread = threading.Thread(target=self._throw, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.append(True)
        while self._thread.ident is not None and not self._ended:
            time.sleep(_AGAIN_SECONDS)

    def _throw(self) -> None:
        try:
            self._throw_until_stopped()
        finally:
            self._ended.append(True)

    def _throw_until_stopped(self) -> None:
        delay = self.delay
        while True:
            time.sleep(delay)
            if self._stopped:
                return
            if not self._is_set:
                signal.raise_signal(signal.SIGINT)
            elif not _set():
                delay = _AGAIN_SECONDS
                continue
            if not self.is_storm:
                return
            delay = _STORM_SECONDS


def _set() -> bool:
    """Set an interrupt into the main thread, unless it is in a call of the driver.

    It is raised where the thread is now: it does not run in between.
    """
    main = threading.main_thread().ident or 0
    with _starting:
        if is_in_driver(sys._current_frames().get(main)):
            return False
        error = ctypes.py_object(Interrupted)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), error)
        return True


def interrupt(act: Act, moment: Moment, lab: Lab) -> tuple[bool, str | None]:
    """Run something and interrupt it at a moment.

    Returns:
        Whether that came before its end, and what else it raised.
    """
    hit, swallowed = True, lab.swallowed
    raised: Exception | None = None
    try:
        moment.start()
        act()
        hit = False
    except Interrupted:
        pass
    except Exception as error:
        raised = error
    stopped = False
    while not stopped:  # what is on its way comes here
        try:
            moment.stop()
            for _ in range(10):
                time.sleep(0)
            stopped = True
        except Interrupted:
            continue
    # A finalizer that was interrupted freed nothing, and then the driver rejects what follows.
    if raised is None or (isinstance(raised, cudadrv.CudadrvError) and lab.swallowed > swallowed):
        return hit, None
    return hit, f"the call raises {type(raised).__name__}: {raised}"


def _moment(chosen: random.Random, seconds: float) -> Moment:
    delay = max(chosen.uniform(0, 1.1 * seconds), 1e-6)
    is_storm = chosen.random() < 0.25
    # A thread comes too late for what is quick.
    kind = chosen.randrange(3) if seconds > _LATE_SECONDS else 0
    if kind == 0:
        return Timer(delay, is_storm=is_storm)
    return Thrown(delay, is_storm=is_storm, is_set=kind == 1)


def attack_moments(
    outcome: Report, until: float, seed: int, *, names: Sequence[str] = (), most: int | None = None
) -> None:
    """Interrupt the long operations at moments of the seed's choice.

    Args:
        outcome: what is counted.
        until: when to stop, by `time.monotonic`.
        seed: of the choice.
        names: the operations; all of `LONG` if left out.
        most: interrupts after which to stop.
    """
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        outcome.skipped["random moments"] = "they need setitimer and the main thread"
        return
    chosen, left = random.Random(seed), [1 << 60 if most is None else most]
    former = {number: signal.signal(number, _raise) for number in (signal.SIGINT, signal.SIGALRM)}
    setattr(threading.Thread, "start", _start_undisturbed)  # noqa: B010  # a method, to the checker
    try:
        while time.monotonic() < until and left[0] > 0 and len(outcome.failures) < MOST_FAILURES:
            end = min(until, time.monotonic() + 30)
            try:
                with laboratory() as lab:
                    _attack(lab, outcome, chosen, end, names or tuple(LONG), left, seed)
            except cudadrv.CudadrvError as error:
                text = f"{type(error).__name__}: {error}"
                outcome.failures.append(f"seed {seed}, between two interrupts: {text}")
    finally:
        faulthandler.cancel_dump_traceback_later()
        for number, handler in former.items():
            signal.signal(number, handler)
        setattr(threading.Thread, "start", _start)  # noqa: B010


def _attack(
    lab: Lab,
    outcome: Report,
    chosen: random.Random,
    until: float,
    names: Sequence[str],
    left: list[int],
    seed: int,
) -> None:
    """Attack in one lab until something fails; `left` is how many interrupts are."""
    seconds = {name: _duration(lab, name) for name in names}
    threads = threading.active_count()
    while time.monotonic() < until and left[0] > 0:
        name = chosen.choice(names)
        moment = _moment(chosen, seconds[name])
        faulthandler.dump_traceback_later(_HANG_SECONDS, exit=True)
        place = lab.place()
        act, check = LONG[name](place)
        hit, fault = interrupt(act, moment, lab)
        left[0] -= hit
        outcome.count(f"{name}, {'interrupted' if hit else 'not interrupted in time'}")
        fault = fault or lab.fault_of(place, check, done=not hit)
        more = threading.active_count() - threads
        if fault is None and more > _MOST_THREADS:
            fault = f"{more} threads more"
        if fault is not None:
            how = f"{type(moment).__name__} after {moment.delay:.6f} s, storm: {moment.is_storm}"
            number = sum(outcome.cases.values())
            where = f"seed {seed}, case {number}"
            outcome.failures.append(f"{name} at a random moment ({where}; {how}): {fault}")
            return
        del act, check
        place.close()


def _duration(lab: Lab, name: str) -> float:
    """How long an operation takes that nobody interrupts."""
    times: list[float] = []
    for _ in range(3):
        place = lab.place()
        act, check = LONG[name](place)
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
        check(True)
        del act, check
        place.close()
    return sorted(times)[1]
