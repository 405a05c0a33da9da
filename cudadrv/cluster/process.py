"""One process of this host that answers calls."""

from __future__ import annotations

import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Final, cast

from ..errors import CudadrvError
from .byte_copy import Bytes
from .call import Call
from .failure import Failure
from .inbox import Inbox
from .mapped_segments import MOST_KEPT_BYTES
from .request import Reply, Request, keep
from .seats import Seat
from .shared_arrays import CAN_SHARE, NotHereError, Place, Segment, mapped
from .worker_report import WorkerReport

START_SECONDS: Final = 120.0
_END_SECONDS: Final = 5.0
_MOST_AHEAD_BYTES: Final = 1 << 15  # a socket holds more, so that none waits for the other
_CODE: Final = (
    "import sys; sys.path[:] = {path!r}; "
    "from cudadrv.cluster.worker_process import main; main({number}, {parent})"
)


class LostError(CudadrvError):
    """The process has ended or hangs."""


class LaterError(CudadrvError):
    """A call's arguments are too large to lie beside those of another one."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """A call with what the process is sent, and the memory of its arguments."""

    call: Call
    request: Request
    message: bytes
    segment: Segment | None


class WorkerProcess:
    """A started process, and the socket to it. It ends when this one does.

    Attributes:
        report: what it said of itself; there after `wait_for_start`.
        is_broken: whether its context is lost, so that it is of no more use.
        seconds: how long the last call took there.
    """

    report: WorkerReport

    def __init__(self, seat: Seat) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            code = _CODE.format(path=sys.path, number=number, parent=os.getpid())
            self._popen = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.DEVNULL,
                env={**os.environ, **seat.environment},
                pass_fds=(number,),
            )
        self._connection = Connection(ours.detach())
        self.is_broken: bool = False
        self.seconds: float = 0.0
        self._functions: dict[str, None] = {}
        self._segments: list[Segment | None] = [None, None]
        self._sent: deque[_Sent] = deque()
        self._prepared: _Sent | None = None
        self._send(pickle.dumps(seat))

    @property
    def pid(self) -> int:
        """The process."""
        return self._popen.pid

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._popen.poll() is None

    def wait_for_start(self) -> None:
        """Wait until it has its device.

        Raises:
            LostError: it does not start.
            Exception: what it says of its device.
        """
        hello = pickle.loads(self._receive(START_SECONDS))
        if isinstance(hello, Failure):
            raise hello.raised()
        assert isinstance(hello, WorkerReport)
        self.report = hello

    def prepare(self, call: Call) -> bool:
        """Put a call's arguments in their place, while another call is made; whether it could."""
        try:
            sent = self._packed(call, is_ahead=True)
        except Exception:  # `send` tells why
            return False
        # The process reads it when it has answered: until then it lies in the socket's buffer.
        self._prepared = sent if len(sent.message) <= _MOST_AHEAD_BYTES else None
        return self._prepared is not None

    def send(self, call: Call) -> None:
        """Have a call made; one that was prepared also before the one before is answered.

        Raises:
            LostError: the process has ended.
            ArgumentTypeError: the arguments cannot be pickled.
            OSError: there is not so much memory.
        """
        prepared, self._prepared = self._prepared, None
        if prepared is None or prepared.call is not call:
            prepared = self._packed(call, is_ahead=False)
        self._send(prepared.message)
        self._sent.append(prepared)
        if prepared.request.code is not None:
            keep(self._functions, call.function.digest, None)

    def is_answered(self, inbox: Inbox | None, end: float | None) -> bool:
        """Whether the answer is there, waited for; False where something comes into an inbox first.

        Args:
            inbox: the inbox.
            end: until when the answer has to be there, by `time.monotonic`.

        Raises:
            LostError: the process hangs.
        """
        poll, own = select.poll(), self._connection.fileno()
        poll.register(own, select.POLLIN)
        if inbox is not None:
            poll.register(inbox.fileno(), select.POLLIN)
        left = None if end is None else 1e3 * max(0.0, end - time.monotonic())
        ready = poll.poll(left)
        if not ready:
            raise LostError("it hung")
        return any(number == own for number, _ in ready)

    def receive(self) -> Callable[[], bool]:
        """Take the answer of the call that was sent first.

        What is returned gives it to the call, and says whether that is to be made once more. It is
        called before another call is prepared or sent.

        Raises:
            LostError: the process has ended.
        """
        sent = self._sent.popleft()
        reply = pickle.loads(self._receive(None))
        assert isinstance(reply, Reply)
        if not reply.was_called:
            raise LostError("it cannot open what this process shares")
        self.is_broken, self.seconds = reply.is_broken, reply.seconds
        value, place = reply.value, sent.request.arguments.place
        if value is not None and value.place is not None:
            # Now: the process gives its side up when it gets another call.
            arrays = self._opened(value.place)
            return partial(sent.call.accept, reply, partial(value.over, arrays))
        if value is None and place is not None and sent.segment is not None:
            return partial(sent.call.accept, reply, partial(_tile, sent.request, sent.segment))
        return partial(sent.call.accept, reply, reply.unpacked)

    def end(self) -> None:
        """Let it end, which it does at once; no error if it has."""
        try:
            self._connection.send_bytes(b"")
        except OSError:
            pass
        try:
            self._popen.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        self.kill()

    def strike(self) -> None:
        """End it now, by another thread than its own: that learns of it and does the rest."""
        self._popen.kill()

    def kill(self) -> None:
        """End it now, in the middle of whatever it does. Idempotent."""
        self._popen.kill()
        self._popen.wait()
        self._connection.close()

    def _packed(self, call: Call, *, is_ahead: bool) -> _Sent:
        used: list[Segment] = []

        def share(nbytes: int) -> Segment:
            used.append(self._segment(nbytes, is_ahead))
            return used[-1]

        request = call.request(
            has_function=call.function.digest in self._functions,
            share=share if CAN_SHARE else None,
            is_private=False,
        )
        request = replace(request, seconds=None)  # it is watched from here
        return _Sent(call, request, pickle.dumps(request, 5), used[0] if used else None)

    def _segment(self, nbytes: int, is_ahead: bool) -> Segment:
        """Memory that no call under way has, kept for the next ones."""
        is_large = nbytes > MOST_KEPT_BYTES
        if is_large and is_ahead:
            raise LaterError
        index = int(any(each.segment is self._segments[0] for each in self._sent))
        found = self._segments[index]
        most = max(MOST_KEPT_BYTES, 2 * nbytes)
        if found is None or not nbytes <= found.nbytes <= most:
            self._segments[index] = None  # before there is another
            if is_large:
                self._segments = [None, None]
            found = self._segments[index] = Segment(nbytes)
        return found

    def _opened(self, place: Place) -> list[Bytes]:
        try:
            return place.within(mapped(place, private=False))
        except NotHereError as error:
            raise self._lost() from error

    def _send(self, message: bytes) -> None:
        try:
            self._connection.send_bytes(message)
        except OSError as error:
            raise self._lost() from error

    def _receive(self, seconds: float | None) -> bytes:
        try:
            if seconds is not None and not self._connection.poll(seconds):
                raise LostError(f"it hung for {seconds} s")
            return self._connection.recv_bytes()
        except (EOFError, OSError) as error:
            raise self._lost() from error

    def _lost(self) -> LostError:
        try:
            status = self._popen.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            return LostError("it closed its end")
        if status >= 0:
            return LostError(f"it ended with status {status}")
        return LostError(f"it was ended by {signal.Signals(-status).name}")


def _tile(request: Request, segment: Segment) -> object:
    """The tile of a request as the process has left it."""
    place = request.arguments.place
    assert place is not None
    arguments = request.arguments.over(segment.arrays(place))
    args, _ = cast("tuple[tuple[object, ...], dict[str, object]]", arguments)
    return args[0]
