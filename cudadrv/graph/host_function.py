"""Functions of the host at a point of a stream.

Source: cuLaunchHostFunc in the CUDA Driver API manual.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable
from typing import Any, Final

from .. import border
from ..driver._api import CUgraphNodeParams, CUgraphNodeType
from ..driver.deferred_release import callbacks, defer_release, run_deferred
from ..driver.driver_selection import failure
from ..driver.stream import BaseStream
from ..driver.stream_handle import StreamHandle

_HostFunction: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_SET: Final = 1  # CU_STREAM_SET_CAPTURE_DEPENDENCIES
_numbers: Final = itertools.count(1)
# Queued calls by number: the function and its arguments. Bounded by the calls that streams
# have not reached yet.
_queued: Final[dict[int, list[Any]]] = {}  # Any: the function decides what its arguments are


def _run(number: int) -> None:
    """Run a queued call, in a thread of the driver.

    Dropping the arguments may call the driver, which this thread must not do. So nothing
    but the cell holds them, and another thread empties it.
    """
    cell = _queued.pop(number)
    try:
        cell[0](*cell[1])
    finally:
        defer_release(cell)


# The C function lives as long as the process: a stream may call it until its end.
_RUN: Final = _HostFunction(_run)
_ADDRESS: Final = ctypes.cast(_RUN, ctypes.c_void_p).value or 0


# The functions that graphs call at each replay, by number.
_repeated: Final[dict[int, tuple[Callable[..., object], tuple[object, ...]]]] = {}


def _run_again(number: int) -> None:
    """Run the call of a graph's node, in a thread of the driver; the graph keeps the function."""
    call = _repeated[number]
    call[0](*call[1])


_RUN_AGAIN: Final = _HostFunction(_run_again)
_ADDRESS_AGAIN: Final = ctypes.cast(_RUN_AGAIN, ctypes.c_void_p).value or 0


class HostCall:
    """A call that a graph makes at each replay, as long as this object lives."""

    __slots__ = ("_number",)

    def __init__(self, function: Callable[..., object], args: tuple[object, ...]) -> None:
        self._number = next(_numbers)
        _repeated[self._number] = function, args

    # Bound as a default: at the end of the process the names of the module may be gone first.
    def __del__(self, forget: Callable[[int, None], object] = _repeated.pop) -> None:
        forget(self._number, None)

    def params(self) -> CUgraphNodeParams:
        """Return the parameters of a node that makes the call."""
        callbacks.expected = True
        params = CUgraphNodeParams()
        params.type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_HOST
        params.host.fn = _ADDRESS_AGAIN
        params.host.userData = self._number
        return params


def call_on_host(
    stream: BaseStream, function: Callable[..., object], args: tuple[object, ...]
) -> None:
    """Queue a call; see `Stream.call_on_host`."""
    handle = stream._handle
    if handle.capture is not None:
        call = HostCall(function, args)
        handle.capture.keeps.append(call)
        _add_to_capture(handle, call)
        return
    run_deferred()
    callbacks.expected = True
    number = next(_numbers)
    _queued[number] = [function, args]
    (code,) = handle.submit(handle.api.cuLaunchHostFunc, handle.raw, _ADDRESS, number)
    if code:
        del _queued[number]
        doing = f"queueing a call of {border.shown(function)} on {stream!r}"
        raise failure(handle.api, code, "cuLaunchHostFunc", doing)


def _add_to_capture(handle: StreamHandle, call: HostCall) -> None:
    """Append a node to the captured work.

    A capture of cuLaunchHostFunc does not serve: cuda.bindings runs its function only once.
    """
    api, doing = handle.api, f"adding a node to the capture of {handle}"
    code, _, _, graph, dependencies, edges, count = api.cuStreamGetCaptureInfo(handle.raw)
    if code:
        raise failure(api, code, "cuStreamGetCaptureInfo", doing)
    edges = edges if edges and len(edges) == count else None
    code, node = api.cuGraphAddNode(graph, dependencies, edges, count, call.params())
    if code:
        raise failure(api, code, "cuGraphAddNode", doing)
    (code,) = api.cuStreamUpdateCaptureDependencies(handle.raw, [node], None, 1, _SET)
    if code:
        raise failure(api, code, "cuStreamUpdateCaptureDependencies", doing)
