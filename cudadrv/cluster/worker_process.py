"""What a process of `GpuExecutor.local` does: one call after the other, until it is told to end."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from collections import deque
from multiprocessing.connection import Connection
from typing import Final

from ..driver.device import Device
from ..memory.driver_pool import set_release_threshold
from .failure import Failure
from .request import Reply, Request, RequestHandler
from .seats import Seat
from .shared_arrays import CAN_SHARE, Segment
from .worker_report import WorkerReport, report_of

_KEPT_BYTES: Final = 256 << 20  # of the device's memory, from tile to tile
_WATCH_SECONDS: Final = 0.5


def main(number: int, parent: int) -> None:
    """Serve the socket of a file number for the process that started this one.

    Args:
        number: the socket's file number.
        parent: the process that started this one.
    """
    _end_with(parent)
    # Ctrl-C reaches all processes of a terminal: the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection = Connection(number)
    try:
        _Server(connection).run()
    except (EOFError, OSError):
        pass  # the parent has closed its end


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, however that ended.

    A forked child of the parent holds the parent's descriptors, so that none of them tells.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="cudadrv parent", daemon=True).start()


class _Server:
    """The loop, and the memory of its last answers.

    The parent sends a call ahead: when that comes, it has opened the answer before the last one.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._given: deque[list[Segment]] = deque([[], []], maxlen=2)

    def run(self) -> None:
        seat = pickle.loads(self._connection.recv_bytes())
        assert isinstance(seat, Seat)
        hello = self._hello(seat)
        self._send(hello)
        if not isinstance(hello, WorkerReport):
            return
        share = self._share if CAN_SHARE else None
        handler = RequestHandler(hello.name, seat.ordinal, share)
        while message := self._connection.recv_bytes():
            self._given.append([])
            request = pickle.loads(message)
            del message
            assert isinstance(request, Request)
            reply = handler.answer(request)
            del request
            sys.stdout.flush()
            self._send(reply)
            if reply.is_broken:
                return  # and begins no call that was sent ahead
            del reply

    def _hello(self, seat: Seat) -> WorkerReport | Failure:
        try:
            if seat.profile is not None:
                # What a process on a GPU need not import.
                from ..emulator.profiles import EmulatedDevice
                from ..sessions.session import use

                use([EmulatedDevice(**seat.profile)])
            # Else each tile's memory is given back to the device where it waits for its stream.
            set_release_threshold(Device.get(seat.ordinal), _KEPT_BYTES)
            return report_of(seat.ordinal)
        except Exception as error:
            return Failure.of(error, f"process {os.getpid()}")

    def _send(self, message: WorkerReport | Failure | Reply) -> None:
        self._connection.send_bytes(pickle.dumps(message, 5))

    def _share(self, nbytes: int) -> Segment:
        segment = Segment(nbytes)
        self._given[-1].append(segment)
        return segment
