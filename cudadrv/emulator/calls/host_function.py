"""Functions of the host that the driver calls.

CUDA Driver API: cuLaunchHostFunc. The driver calls on a thread of its own and refuses the calls of
the driver that the function makes, but for those that need no initialisation (measured with
driver 580).
"""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
from collections.abc import Callable
from typing import Final

from ...driver._api import CUresult, CUstream
from ..call_rules import CallRules
from ..node_kind import NodeKind
from ..refusal import OK, invalid_value
from .call import call

_HostFunction: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class HostFunctionCalls(CallRules):
    """Functions of the host that the driver calls."""

    @call()
    def cuLaunchHostFunc(self, h_stream: CUstream, fn: int, user_data: int, /) -> tuple[CUresult]:
        """Call a function of the host at this point of the stream."""
        stream = self._stream(h_stream)
        function, argument = int(fn), int(user_data)
        if not function:
            raise invalid_value("the host function is null")
        self._submit(stream, NodeKind.HOST, lambda: self._call_host(function, argument))
        if stream.capture is not None:
            stream.capture.tell(stream, host_params(function, argument))
        return OK

    def _call_host(self, function: int, argument: int, *, here: bool = False) -> None:
        """Call a function of the host on a thread of its own, and wait for it; hold no lock.

        `here` calls it in this thread, as the driver does for some (see `UserObjectCalls`).
        """
        host_function = _HostFunction(function)
        self._run_on_host(lambda: host_function(argument), here=here)

    def _run_on_host(self, function: Callable[[], object], *, here: bool = False) -> None:
        """Run what makes no calls of the driver."""

        def run() -> None:
            self._thread.runs_host_function = True
            try:
                function()
            finally:
                self._thread.runs_host_function = False

        if here:
            run()
        else:
            _run_in_thread(run)


def host_params(function: int, argument: int) -> bytes:
    """A CUDA_HOST_NODE_PARAMS."""
    return struct.pack("<QQ", function, argument)


def _run_in_thread(run: Callable[[], None]) -> None:
    """Run on another thread until it ends, whatever interrupts the wait."""
    thread = threading.Thread(target=run, name="CUDA host function", daemon=True)
    if sys.is_finalizing():
        run()  # the interpreter starts no threads any more
        return
    try:
        thread.start()
    except RuntimeError:
        run()  # likewise, or the process has no thread to spare
        return
    interrupt: BaseException | None = None
    while True:
        try:
            thread.join()
            break
        except BaseException as error:  # raised below, once the function has ended
            interrupt = error
    if interrupt is not None:
        raise interrupt
