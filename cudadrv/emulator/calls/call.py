"""How a driver call is made: what is checked first, and how a refusal becomes a CUresult."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar, cast

from ..call_error import OK, CallError, Failure
from ..driver_state import DriverState

_P = ParamSpec("_P")
# A result tuple, whatever follows the CUresult.
_R = TypeVar("_R", bound=tuple[Any, ...])

# What finalizers call. A collection may run them in the middle of another call, in a thread that
# holds a lock: done then, two threads could wait for each other.
_GIVE_BACK: Final = frozenset(
    {
        "cuArrayDestroy", "cuCtxDestroy", "cuEventDestroy", "cuGraphDestroy", "cuGraphExecDestroy",
        "cuGreenCtxDestroy",
        "cuIpcCloseMemHandle", "cuLibraryUnload", "cuMemFree", "cuMemFreeAsync", "cuMemFreeHost",
        "cuMemHostUnregister", "cuMemPoolDestroy", "cuMipmappedArrayDestroy", "cuModuleUnload",
        "cuStreamDestroy", "cuSurfObjectDestroy", "cuTexObjectDestroy", "cuUserObjectRelease",
    }
)  # fmt: skip


_S = TypeVar("_S", bound=DriverState)


def call(
    values: int = 0, *, always: bool = False
) -> Callable[[Callable[Concatenate[_S, _P], _R]], Callable[Concatenate[_S, _P], _R]]:
    """Make a method a driver function.

    A `CallError` becomes the result tuple that cuda.bindings gives: the code and a None for each of
    the `values` that success would bring. Unless `always`, the call needs cuInit, in this process.
    """
    nothing = (None,) * values

    def decorate(function: Callable[Concatenate[_S, _P], _R]) -> Callable[Concatenate[_S, _P], _R]:
        name = function.__name__
        gives_back = name in _GIVE_BACK

        @wraps(function)
        def checked(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
            later = partial(checked, self, *args, **kwargs) if gives_back else None
            thread = self._thread
            depth = thread.depth
            try:
                if not thread.begin_call(later):
                    return cast(_R, OK)  # such a call gives the result alone
                self._enter(name, always)
                return function(self, *args, **kwargs)
            except CallError as refusal:
                thread.failure = Failure(name, refusal.code, refusal.text, refusal.cause)
                # The Nones stand where the declared values would be, as in cuda.bindings.
                return cast(_R, (refusal.code, *nothing))
            finally:
                # Whatever an interrupt left; another can come only at a call.
                thread.depth = depth
                if not depth and thread.put_off:
                    thread.make_up()

        return checked

    return decorate


class _Structure(Protocol):
    """A structure of cuda.bindings: each has `getPtr`, though its stub leaves that out."""

    def getPtr(self) -> int: ...


def pointer_to(structure: object) -> int:
    """The address of a structure of cuda.bindings, which has no other access to its bytes."""
    return cast(_Structure, structure).getPtr()
