"""One process of this host that answers calls."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Final

from ..errors import CudadrvError
from .call import Call
from .failure import Failure
from .report import WorkerReport
from .request import Reply, keep
from .seats import Seat
from .segment import CAN_SHARE, Segment

START_SECONDS: Final = 120.0
_END_SECONDS: Final = 5.0
_CODE: Final = (
    "import sys; sys.path[:] = {path!r}; "
    "from cudadrv.cluster.worker_process import main; main({number})"
)


class LostError(CudadrvError):
    """The process has ended or hangs."""


class WorkerProcess:
    """A started process, and the socket to it. It ends when this one does.

    Attributes:
        report: what it said of itself; there after `wait_for_start`.
        is_broken: whether its context is lost, so that it is of no more use.
    """

    report: WorkerReport

    def __init__(self, seat: Seat) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            code = _CODE.format(path=sys.path, number=number)
            self._popen = subprocess.Popen(
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE, env={**os.environ, **seat.environment}, pass_fds=(number,),
            )  # fmt: skip
        self._connection = Connection(ours.detach())
        self.is_broken: bool = False
        self._functions: dict[str, None] = {}
        self._segment: Segment | None = None
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

    def ask(self, call: Call) -> bool:
        """Have a call made, and take the answer; whether the call is to be made once more.

        Raises:
            LostError: the process has ended, or hangs.
            ArgumentTypeError: the arguments cannot be pickled.
        """
        digest = call.function.digest
        request = call.request(
            has_function=digest in self._functions,
            share=self._share if CAN_SHARE else None,
            is_private=False,
        )
        request = replace(request, seconds=None)  # it is watched from here
        self._send(pickle.dumps(request, 5))
        if request.code is not None:
            keep(self._functions, digest, None)
        reply = pickle.loads(self._receive(call.seconds))
        assert isinstance(reply, Reply)
        self.is_broken = reply.is_broken
        parcel = request.arguments

        def changed() -> object:
            assert self._segment is not None
            assert parcel.place is not None
            return parcel.over(self._segment.arrays(parcel.place))

        return call.accept(reply, changed)

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
        if self._popen.stdin is not None:
            self._popen.stdin.close()
        self._connection.close()

    def _share(self, nbytes: int) -> Segment:
        if self._segment is None or self._segment.nbytes < nbytes:
            self._segment = None  # before there is another
            self._segment = Segment(nbytes)
        return self._segment

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
