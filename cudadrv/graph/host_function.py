"""Functions of the host at a point of a stream.

Source: cuLaunchHostFunc in the CUDA Driver API manual.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import Any, Final

from .. import border, errors
from ..driver.in_use import failure
from ..driver.later import drop_later, drop_now
from ..driver.stream_core import StreamCore

_HostFunction: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_numbers: Final = itertools.count(1)
# What queued calls need, by their number: the function and its arguments. Bounded by what streams
# have not reached yet.
_queued: Final[dict[int, list[Any]]] = {}  # the caller's function says what its arguments are


def _run(number: int) -> None:
    """What the driver calls, in a thread of its own.

    Dropping what the call was given may call the driver, which this thread must not do. So nothing
    here but the cell holds it, and another thread empties that.
    """
    cell = _queued.pop(number)
    try:
        cell[0](*cell[1])
    finally:
        drop_later(cell)


# The C function lives as long as the process: a stream may call it until its end.
_RUN: Final = _HostFunction(_run)
_ADDRESS: Final = ctypes.cast(_RUN, ctypes.c_void_p).value or 0


def call_on_host(
    stream: StreamCore, function: Callable[..., object], args: tuple[object, ...]
) -> None:
    """Queue a call; see `Stream.call_on_host`."""
    box = stream._box
    if box.capture is not None:
        raise errors.StreamCaptureUnsupportedError(
            f"calling {border.shown(function)} in a capture of {stream!r}: cuda.bindings lets a "
            "captured host function run once, not at each replay"
        )
    drop_now()
    number = next(_numbers)
    _queued[number] = [function, args]
    (code,) = box.api.cuLaunchHostFunc(box.raw, _ADDRESS, number)
    if code:
        del _queued[number]
        doing = f"queueing a call of {border.shown(function)} on {stream!r}"
        raise failure(box.api, code, "cuLaunchHostFunc", doing)
