"""The threads that help a large copy."""

from __future__ import annotations

import itertools
import signal
import threading
import time

import pytest

from cudadrv.memory.copy_threads import MOST_THREADS, usable_threads, work_together


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


def test_the_caller_takes_part_and_others_come_as_far_as_there_are_processors() -> None:
    seen: set[int] = set()
    work_together(lambda: seen.add(threading.get_ident()), 100)
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
            work_together(fails_elsewhere, 2)
    with pytest.raises(ValueError, match="in the caller"):
        work_together(fails_here, 2)
    work_together(lambda: None, 2)


def test_several_copies_at_once_have_helpers_of_their_own() -> None:
    barrier = threading.Barrier(4)
    counts: list[int] = []

    def copy() -> None:
        ran: list[int] = []
        barrier.wait()
        work_together(lambda: ran.append(1), 2)
        counts.append(len(ran))

    threads = [threading.Thread(target=copy) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [min(2, usable_threads())] * 4


@pytest.mark.skipif(
    usable_threads() < 2 or not hasattr(signal, "pthread_kill"),
    reason="needs a second processor and pthread_kill",
)
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
            work_together(job, 2)
        assert ends.pop()
    work_together(lambda: None, 2)
