"""Making driver calls: the first checks, and the conversion of errors to CUresults."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar, cast

from ptx.read_only import Guarded

from ...driver.functions import flagged
from ..call_error import OK, CallError, Failure
from ..driver_state import DriverState

_P = ParamSpec("_P")
# A result tuple, with any values after the CUresult.
_R = TypeVar("_R", bound=tuple[Any, ...])


class DriverCalls(Guarded):
    """The base of the groups of driver functions, which share one state."""

    # Tests replace functions of the driver.
    _settable = ("_", "cu")

    def __init__(self, state: DriverState) -> None:
        self._state = state


def state_of(calls: DriverCalls) -> DriverState:
    """Return the state behind an emulator, for other parts of it: its users have only methods."""
    return calls._state


_S = TypeVar("_S", bound=DriverCalls)


# Finalizers call these. A collection may run them in the middle of another call, in a thread that
# holds a lock. If they ran then, two threads could wait for each other.
_FREES: Final = flagged("frees")
_EARLY: Final = flagged("early")


def call(function: Callable[Concatenate[_S, _P], _R]) -> Callable[Concatenate[_S, _P], _R]:
    """Make a method a driver function.

    A `CallError` becomes the result tuple of cuda.bindings: the code, and a None for each value
    that success would return.
    """
    name = function.__name__
    frees, always = name in _FREES, name in _EARLY

    @wraps(function)
    def checked(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        state = self._state
        thread = state.thread
        depth = thread.depth
        try:
            if frees and depth:
                # A finalizer calls it in the middle of another call: this thread may hold a lock.
                later = partial(checked, self, *args, **kwargs)
                contexts = list(state.handles.contexts.values())
                thread.after_this_call(later, state.handles.streams_among(args), contexts)
                return cast(_R, OK)  # such a call returns the result alone
            thread.depth = depth + 1
            state.process.enter(name, always)
            return function(self, *args, **kwargs)
        except CallError as error:
            thread.failure = Failure(name, error.code, error.text, error.cause)
            state.process.log.add(f"[CUDA][E] {name}: {error.text or error.code.name}")
            # The Nones replace the declared values, as in cuda.bindings.
            return cast(_R, (error.code, *[None] * value_count(function)))
        finally:
            # After any interrupt; another can come only at a call.
            thread.depth = depth
            if not depth:
                if thread.put_off:
                    thread.make_up()
                if state.process.reporter is not None:
                    state.process.reporter()

    return checked


def value_count(function: Callable[..., object]) -> int:
    """Return how many values a driver function returns besides its CUresult, as annotated."""
    depth = count = 0
    for character in function.__annotations__["return"]:
        depth += (character == "[") - (character == "]")
        count += depth == 1 and character == ","
    return count


class _Structure(Protocol):
    """A structure of cuda.bindings: each has `getPtr`, though its stub leaves that out."""

    def getPtr(self) -> int: ...


def pointer_to(structure: object) -> int:
    """Return the address of a structure of cuda.bindings, for access to its bytes."""
    return cast(_Structure, structure).getPtr()
