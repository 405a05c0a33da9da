"""The threads that help a large copy."""

from __future__ import annotations

import ctypes
import gc
import itertools
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable

import pytest

from campaigns.interrupts.points import Interrupter
from cudadrv.driver.once_task import OnceTask
from cudadrv.memory import staging
from cudadrv.memory.staging import MOST_THREADS, usable_threads, work_together
from tests.patience import SECONDS
from tests.several_threads import all_at_once

two_processors = pytest.mark.skipif(usable_threads() < 2, reason="needs a second processor")


def with_all(threads: int, job: Callable[[], None]) -> Callable[[], None]:
    """A job that begins once all threads that can come are there."""
    barrier = threading.Barrier(min(threads, usable_threads()))

    def run() -> None:
        barrier.wait(SECONDS)
        job()

    return run


def set_exception(thread: int, kind: type[BaseException]) -> None:
    """Set an exception into a thread, as debuggers and time limits do."""
    number, error = ctypes.c_ulong(thread), ctypes.py_object(kind)
    assert ctypes.pythonapi.PyThreadState_SetAsyncExc(number, error) == 1


def helpers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "cudadrv-staging"]


@pytest.fixture(autouse=True)
def helpers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests count the helpers that they start."""
    monkeypatch.setattr(staging, "_helpers", staging._Helpers())


def test_every_piece_is_done_once_by_whoever_comes() -> None:
    numbers = itertools.count()
    done: list[int] = []

    def job() -> None:
        while (number := next(numbers)) < 1000:
            done.append(number)

    for _ in range(20):
        numbers = itertools.count()
        done.clear()
        work_together(job, MOST_THREADS)
        assert sorted(done) == list(range(1000))


def test_copies_that_end_at_once_do_not_start_a_thread_each() -> None:
    before = helpers()  # those of other tests among them, which nobody gives shares any more
    for _ in range(2000):  # each is over before a helper has begun
        work_together(lambda: None, MOST_THREADS)
    assert len(set(helpers()) - set(before)) <= 4 * len(os.sched_getaffinity(0))


def test_the_caller_helps_with_as_many_threads_as_there_are_processors() -> None:
    seen: set[int] = set()
    work_together(with_all(MOST_THREADS, lambda: seen.add(threading.get_ident())), 100)
    assert threading.get_ident() in seen
    assert len(seen) == usable_threads() <= MOST_THREADS


def test_an_error_in_any_thread_is_raised_once_all_are_done() -> None:
    caller = threading.get_ident()

    def fails_elsewhere() -> None:
        if threading.get_ident() != caller:
            raise ValueError("in a helper")

    def fails_here() -> None:
        if threading.get_ident() == caller:
            raise ValueError("in the caller")

    if usable_threads() > 1:
        with pytest.raises(ValueError, match="in a helper"):
            work_together(with_all(2, fails_elsewhere), 2)
    with pytest.raises(ValueError, match="in the caller"):
        work_together(fails_here, 2)
    work_together(lambda: None, 2)


@two_processors
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("has_begun", [False, True])
def test_a_helper_that_is_slow_keeps_nothing_of_a_job_that_is_over(
    fails: bool, has_begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver's objects of a copy go when the copy has ended, whatever its helpers do."""
    slow = staging._Helpers()
    monkeypatch.setattr(staging, "_helpers", slow)
    may_go_on = threading.Event()
    caller = threading.get_ident()

    def run_slowly(task: OnceTask[[]]) -> bool:
        ran = run(task)
        if threading.get_ident() != caller:
            may_go_on.wait(SECONDS)
        return ran

    run = OnceTask.run
    if has_begun:
        monkeypatch.setattr(OnceTask, "run", run_slowly)
    else:
        never = threading.Thread()
        slow.threads.append(never)  # it does not come for what it is given

    class Job:
        def __init__(self) -> None:
            self.run = with_all(2, self.fail) if has_begun else self.fail

        def fail(self) -> None:
            if fails:
                raise ValueError("the job failed")

    job = Job()
    gone = weakref.ref(job)
    try:
        work_together(job.run, 2)
    except ValueError as error:
        assert fails
        error.__traceback__ = None
    del job
    gc.collect()
    try:
        assert gone() is None
    finally:
        may_go_on.set()


def test_several_copies_at_once_have_helpers_of_their_own() -> None:
    barrier = threading.Barrier(4)
    counts: list[int] = []

    def copy() -> None:
        ran: list[int] = []
        barrier.wait()
        work_together(with_all(2, lambda: ran.append(1)), 2)
        counts.append(len(ran))

    all_at_once([copy] * 4)
    assert counts == [min(2, usable_threads())] * 4


@pytest.mark.skipif(
    usable_threads() < 2 or not hasattr(signal, "pthread_kill"),
    reason="needs a second processor and pthread_kill",
)
@pytest.mark.usefixtures("interruptible")
def test_helpers_are_awaited_through_interrupts() -> None:
    caller, ends = threading.get_ident(), []

    def job() -> None:
        if threading.get_ident() != caller:
            for _ in range(3):  # while the caller waits
                time.sleep(0.02)
                signal.pthread_kill(caller, signal.SIGINT)
            time.sleep(0.02)
            ends.append(True)

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            work_together(with_all(2, job), 2)
        assert ends.pop()
    work_together(lambda: None, 2)


def test_a_helper_that_comes_late_is_not_waited_for() -> None:
    caller, other = threading.get_ident(), threading.Event()

    def job() -> None:
        if threading.get_ident() != caller:
            other.set()

    for _ in range(100):
        work_together(job, MOST_THREADS)
    task = OnceTask(other.set)
    assert task.cancel()
    other.clear()
    thread = threading.Thread(target=task.run)
    thread.start()
    thread.join()
    assert not other.is_set()


@two_processors
def test_no_thread_runs_the_job_after_an_interrupt_at_any_point() -> None:
    running: set[int] = set()

    def job() -> None:
        running.add(threading.get_ident())
        time.sleep(0.005)
        running.remove(threading.get_ident())

    work_together(job, 3)
    number = 0
    while True:
        interrupter = Interrupter(number)
        if not interrupter.run(lambda: work_together(job, 3)):
            break
        assert not running - {threading.get_ident()}, interrupter.place
        running.clear()
        number += 1
    assert number > 10
    work_together(with_all(2, lambda: None), 2)


@two_processors
def test_interrupts_at_any_point_lose_no_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "usable_threads", lambda: 2)
    monkeypatch.setattr(staging, "_MOST_A_PROCESSOR", 1)
    number = 0
    while Interrupter(number).run(lambda: work_together(lambda: None, 2)):
        number += 1
    assert number > 10
    before = len(helpers())
    for _ in range(3):
        work_together(with_all(2, lambda: None), 2)
    assert len(helpers()) <= before + 1
    assert len(staging._helpers.pending) < number


@two_processors
def test_an_exception_set_into_a_helper_is_raised_by_the_copy() -> None:
    caller = threading.get_ident()

    def job() -> None:
        if threading.get_ident() != caller:
            set_exception(threading.get_ident(), ZeroDivisionError)
            for _ in range(1000):
                time.sleep(0.001)

    with pytest.raises(ZeroDivisionError):
        work_together(with_all(2, job), 2)
    work_together(with_all(2, lambda: None), 2)


@two_processors
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_helper_that_an_exception_ended_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = helpers()
    monkeypatch.setattr(staging, "_helpers", staging._Helpers())
    work_together(with_all(2, lambda: None), 2)
    (thread,) = (each for each in helpers() if each not in others)
    assert thread.ident is not None
    set_exception(thread.ident, SystemExit)
    work_together(lambda: None, 2)  # the exception is raised as the thread wakes
    thread.join(SECONDS)
    assert not thread.is_alive()
    work_together(with_all(2, lambda: None), 2)
