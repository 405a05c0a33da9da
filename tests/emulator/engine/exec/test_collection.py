"""The garbage collector rests while a large kernel is made, and is afterwards as it was."""

from __future__ import annotations

import gc
import threading

import pytest

from ptx.emulate.exec.collection import collection_paused
from ptx.emulate.model.errors import UnsupportedInstruction
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text


def test_pauses_nest_and_end_with_the_last_of_all_threads() -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with collection_paused():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with collection_paused():
        thread.start()
        inside.wait()
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.slow
@pytest.mark.parametrize("last", ["ret;", "tcgen05.shift.cta_group::1.down [0]; ret;"])
def test_the_collector_is_on_after_a_large_kernel_was_made_or_rejected(last: str) -> None:
    body = ".reg .b32 %r<9>;" + "add.u32 %r1, %r1, 1;\n" * 6000 + last
    runner = KernelRunner(ptx_text(body))
    collections = sum(each["collections"] for each in gc.get_stats())
    try:
        runner.program.kernel("k")
        assert last == "ret;"
    except UnsupportedInstruction:
        assert last != "ret;"
    assert gc.isenabled()
    assert sum(each["collections"] for each in gc.get_stats()) - collections < 20
