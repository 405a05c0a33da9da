"""Functions of the host at a point of a stream.

Source: cuLaunchHostFunc in the CUDA Driver API manual.
"""

from __future__ import annotations

import ctypes
import itertools
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from . import errors
from .driver.in_use import failure

if TYPE_CHECKING:
    from .stream import Stream

_HostFunction: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_numbers: Final = itertools.count(1)
# Calls that are queued, by their number; bounded by what streams have not reached yet.
_queued: Final[dict[int, tuple[Callable[..., object], tuple[object, ...]]]] = {}
# Calls that are done. Dropping what they were given may call the driver, which the driver's own
# thread must not do: all but the last, which may still run, is dropped at the next `call_on_host`.
_done: Final[deque[tuple[Callable[..., object], tuple[object, ...]]]] = deque()


def _run(number: int) -> None:
    call = _queued.pop(number)
    _done.append(call)
    function, args = call
    function(*args)


# The C function lives as long as the process: a stream may call it until its end.
_RUN: Final = _HostFunction(_run)
_ADDRESS: Final = ctypes.cast(_RUN, ctypes.c_void_p).value or 0


def call_on_host(stream: Stream, function: Callable[..., object], args: tuple[object, ...]) -> None:
    """Queue a call; see `Stream.call_on_host`."""
    if stream.capturing:
        raise errors.StreamCaptureUnsupportedError(
            f"calling {function!r} in a capture of {stream!r}: cuda.bindings lets a captured host "
            "function run once, not at each replay"
        )
    while len(_done) > 1:
        _done.popleft()
    number = next(_numbers)
    _queued[number] = function, args
    (code,) = stream.api.cuLaunchHostFunc(stream.handle, _ADDRESS, number)
    if code:
        del _queued[number]
        doing = f"queueing a call of {function!r} on {stream!r}"
        raise failure(stream.api, code, "cuLaunchHostFunc", doing)
