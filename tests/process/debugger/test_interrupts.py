"""Interrupts of the debugger at moments at which an exception or a system call would lose them."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time

import pytest

from cudadrv.debugger.adapter import serve_port
from cudadrv.debugger.debugger import DebuggedProgram, on_interrupt


def press() -> None:
    """Interrupt this thread, as Ctrl-C does."""
    signal.raise_signal(signal.SIGINT)


def press_in_a_finalizer() -> None:
    """Interrupt where exceptions are lost."""

    class Final:
        def __del__(self) -> None:
            press()

    Final()


def press_in_another_thread() -> None:
    """Interrupt a wait without ending its system call, as a signal just before the call does."""
    time.sleep(0.05)  # mostly it waits by then
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)


@pytest.mark.parametrize("way", [press, press_in_a_finalizer])
def test_the_port_ends_when_it_is_interrupted_before_it_waits(way: object) -> None:
    assert callable(way)
    assert serve_port(DebuggedProgram(), 0, lambda _: way()) == 0


@pytest.mark.skipif(os.name == "nt", reason="needs a signal to a thread")
@pytest.mark.parametrize("has_editor", [False, True])
def test_the_port_ends_when_it_is_interrupted_while_it_waits(*, has_editor: bool) -> None:
    """For an editor, and for the rest of a message."""
    editor, presser = socket.socket(), threading.Thread(target=press_in_another_thread)

    def show(text: str) -> None:
        if has_editor:
            editor.connect(("127.0.0.1", int(text.rpartition(":")[2])))
            editor.sendall(b"Content-Length: 2\r\n\r\n{")
        presser.start()

    with editor:
        assert serve_port(DebuggedProgram(), 0, show) == 0
        presser.join()


def test_the_first_interrupt_is_noted_and_the_second_one_raises() -> None:
    seen: list[bool] = []
    with on_interrupt(lambda: seen.append(True)), pytest.raises(KeyboardInterrupt):
        press()
        assert seen
        press()
    assert len(seen) == 1
