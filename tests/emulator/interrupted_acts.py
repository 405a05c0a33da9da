"""An exception at each line of public calls, and whether all goes on as if nothing had happened.

    python -m tests.emulator.interrupted_acts [NAME ...] [--error KeyboardInterrupt]

prints a table: the call, its lines, and how many were wrong afterwards. Lines of the calls before
are left out. By default the lines have the two errors in turn. A call that an exception ends may
lose what it was making, until the end of its context.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import gc
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

import numpy as np

import cudadrv
from cudadrv import emulator
from tests.at_each_line import Line, raising

from .border_acts import BORDER_ACTS
from .public_acts import ONE, PUBLIC_ACTS, Act, Lab, N

ACTS: Final = PUBLIC_ACTS | BORDER_ACTS
ROOT: Final = Path(__file__).parents[2]
FILES: Final = (f"{ROOT}/cudadrv/", f"{ROOT}/ptx/")
ERRORS: Final = (KeyboardInterrupt, MemoryError)
_SECONDS: Final = 60
_unraisable: Final[list[str]] = []
"""What finalizers raised of the system, such as for a descriptor that is closed twice."""
_CALLS: Final = 4
"""Later calls, of which two lose nothing; some objects are made at their first need."""


def outcome(name: str, number: int, error: type[BaseException]) -> tuple[str, str]:
    """Return the place of an exception in an act, and what is wrong after it; else ""."""
    with laboratory() as (machine, lab):
        act = ACTS[name](lab)
        act()
        settle(lab)
        before = machine.live_objects()
        line = Line(number, FILES, raising(error))
        _unraisable.clear()
        try:
            line.run(act)
        except (KeyboardInterrupt, MemoryError, cudadrv.CudadrvError):
            pass
        except Exception as wrong:
            return line.place, f"the call itself: {type(wrong).__name__}: {wrong}".splitlines()[0]
        if not may_raise(line.place):  # what a run caches moves the numbers of lines
            return line.place, ""
        try:
            with time_limit():
                check(lab, act, machine, before)
        except BaseException as wrong:
            if isinstance(wrong, KeyboardInterrupt):
                raise
            return line.place, f"{type(wrong).__name__}: {wrong}".splitlines()[0]
    return line.place, ""


def check(lab: Lab, act: Act, machine: emulator.Emulator, before: dict[str, int]) -> None:
    """The same call works again, twice, and so does other work; and nothing but one try is lost.

    Raises:
        Exception: something does not work.
    """
    for stream in (lab.stream, lab.other, lab.far):
        assert not stream.capturing, "a stream still captures"
    act()
    act()
    for number, stream in enumerate((lab.stream, lab.other, lab.context.new_stream())):
        with stream.zeros(N, np.int32) as fresh:
            stream.fill(fresh, number)
            lab.bump.launch(stream, ONE, fresh)
            assert stream.to_host(fresh).tolist() == [number + 1] + [number] * (N - 1)
        assert stream.to_host(lab.x).tolist() == [5] * N
    settle(lab)
    counts = [lost(machine, before)]
    while len(counts) < _CALLS and counts[-2:-1] != counts[-1:]:
        act()
        settle(lab)
        counts.append(lost(machine, before))
    assert counts[-2] == counts[-1], f"each later call loses more: {counts}"
    assert not _unraisable, f"a finalizer raised {_unraisable}"
    lab.close()


def note_unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Note an error of the system. The exception itself may come in a finalizer."""
    if isinstance(unraisable.exc_value, OSError):
        _unraisable.append(repr(unraisable.exc_value))


def lost(machine: emulator.Emulator, before: dict[str, int]) -> dict[str, int]:
    """Return how many objects of each kind there are more than before."""
    now = machine.live_objects()
    return {kind: count - before[kind] for kind, count in now.items() if count > before[kind]}


def settle(lab: Lab) -> None:
    """Free what nothing refers to."""
    for _ in range(2):
        gc.collect()
        lab.context.synchronize()
        lab.far.context.synchronize()


@contextlib.contextmanager
def laboratory() -> Iterator[tuple[emulator.Emulator, Lab]]:
    """A session with two devices, and its lab."""
    with (
        tempfile.TemporaryDirectory() as folder,
        emulator.session(devices=2, raise_findings=False) as machine,
    ):
        yield machine, Lab(Path(folder))


@contextlib.contextmanager
def time_limit() -> Iterator[None]:
    """Raise a TimeoutError in what waits for a lock that was lost."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("it hangs")

    former = signal.signal(signal.SIGALRM, ring)
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)


@functools.cache
def first_lines_of_finally(file: str) -> frozenset[int]:
    """Return the lines that begin a `finally`.

    CPython looks for signals after calls and where loops go back. An exception that ends a `try`
    is on its way to its `finally` then, and no other one comes in before the first statement.
    """
    tree = ast.parse(Path(file).read_text())
    return frozenset(
        node.finalbody[0].lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Try) and node.finalbody
    )


def may_raise(place: str) -> bool:
    """Return whether an exception can come at a place of `Line`."""
    file, _, number = place.partition(" ")[0].rpartition(":")
    return not file or int(number) not in first_lines_of_finally(file)


def lines_of(name: str, known: set[str]) -> list[int]:
    """Return the numbers of an act's lines, of each line the first that is not known."""
    with laboratory() as (_, lab):
        act = ACTS[name](lab)
        act()
        line = Line(-1, FILES, lambda: None)
        line.run(act)
    numbers = []
    for number, place in enumerate(line.before):
        if place not in known and may_raise(place):
            known.add(place)
            numbers.append(number)
    return numbers


def main(arguments: Sequence[str]) -> int:
    """Print the table; return 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.emulator.interrupted_acts")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ACTS)}")
    parser.add_argument("--error", choices=[error.__name__ for error in ERRORS])
    given = parser.parse_args(arguments)
    errors = [error for error in ERRORS if given.error in (None, error.__name__)]
    sys.unraisablehook = note_unraisable
    warnings.simplefilter("ignore")
    all_wrong = 0
    known: set[str] = set()
    for name in given.names or ACTS:
        numbers = lines_of(name, known)
        gc.collect()
        gc.freeze()
        count = 0
        for number in numbers:
            error = errors[number % len(errors)]
            place, text = outcome(name, number, error)
            if text:
                count += 1
                print(f"    {place}, {error.__name__}: {text}", flush=True)
        all_wrong += count
        print(f"{name:16}{len(numbers):6}{count:6}", flush=True)
    return int(all_wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
