"""What happens once: no interrupt of one thread lets another wait for ever."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import cudadrv
import ptx
from ptx.latch import Latch
from tests.patience import SECONDS

CONDITION = r"self\.(\w+)(?:: [\w.]+)? = threading\.Condition"


def interrupt_at(number: int, call: Callable[[], object]) -> bool:
    """Call, and raise KeyboardInterrupt at an event of any Python code in it; False if none came.

    Events are the lines, calls and returns of functions, those of `threading` too.
    """
    left = number

    def trace(frame: FrameType, event: str, argument: object) -> Any:  # itself, as settrace wants
        nonlocal left
        left -= 1
        if left < 0:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    former = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(former)
    return False


def ends(call: Callable[[], object]) -> bool:
    """Whether a call ends in a thread of its own."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(SECONDS)
    return not thread.is_alive()


def interrupts(begin: Callable[[Latch], object]) -> int:
    """Interrupt a call at each of its events; each latch can be set and waited for after that."""
    number = 0
    while True:
        latch = Latch()
        was_interrupted = interrupt_at(number, lambda latch=latch: begin(latch))  # type: ignore[misc]  # mypy infers no default
        assert ends(latch.set)
        assert ends(latch.wait)
        assert latch.wait(0)
        if not was_interrupted:
            return number
        number += 1


def set_and_wait(latch: Latch) -> None:
    latch.set()
    latch.wait()


@pytest.mark.parametrize(
    "begin", [Latch.set, lambda latch: latch.wait(0.001), set_and_wait], ids=["set", "wait", "both"]
)
def test_an_interrupted_call_leaves_no_other_thread_waiting(
    begin: Callable[[Latch], object],
) -> None:
    assert interrupts(begin) > 5


def test_the_packages_have_no_lock_that_a_function_of_python_takes() -> None:
    """`Event()`, and `with` of a `Condition`: take the condition's own lock in `with`."""
    folders = [Path(module.__file__ or "").parent for module in (cudadrv, ptx)]
    texts = {path: path.read_text() for folder in folders for path in folder.rglob("*.py")}
    assert len(texts) > 300
    wrong = re.compile(r"threading\.(Event|Semaphore|BoundedSemaphore|Barrier)\(|Condition\(\)")
    assert [f"{path}: {line}" for path in texts for line in wrong.findall(texts[path])] == []
    conditions = {name for text in texts.values() for name in re.findall(CONDITION, text)}
    assert conditions == {"_changed"}
    assert [path for path, text in texts.items() if "with self._changed" in text] == []


def test_threads_wait_until_it_happens() -> None:
    latch, seen = Latch(), []
    threads = [threading.Thread(target=lambda: seen.append(latch.wait())) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert not latch.wait(0.01)
    assert not seen
    latch.set()
    latch.set()
    for thread in threads:
        thread.join(SECONDS)
    assert seen == [True] * 4
    assert latch.wait(0)
