"""How a driver call is made: what is checked first, and how a refusal becomes a CUresult."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar, cast

from ptx.errors import PtxError

from ..driver._api import CUresult

_P = ParamSpec("_P")
# A result tuple, whatever follows the CUresult.
_R = TypeVar("_R", bound=tuple[Any, ...])

SUCCESS: Final = CUresult.CUDA_SUCCESS
OK: Final[tuple[CUresult]] = (SUCCESS,)

# What finalizers call. A collection may run them in the middle of another call, in a thread that
# holds a lock: done then, two threads could wait for each other.
_GIVE_BACK: Final = frozenset(
    {
        "cuArrayDestroy", "cuCtxDestroy", "cuEventDestroy", "cuGraphDestroy", "cuGraphExecDestroy",
        "cuMemFree", "cuMemFreeAsync", "cuMemFreeHost", "cuMipmappedArrayDestroy",
        "cuModuleUnload", "cuStreamDestroy", "cuSurfObjectDestroy", "cuTexObjectDestroy",
        "cuUserObjectRelease",
    }
)  # fmt: skip


class Refusal(Exception):
    """A driver call that returns `code`; `text` is what cuGetErrorString then says.

    `cause` is the typed error behind it, such as the fault of a kernel.
    """

    def __init__(self, code: CUresult, text: str = "", cause: PtxError | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Failure:
    """The last failed call of a thread."""

    call: str
    code: CUresult
    text: str
    cause: PtxError | None


def invalid_value(text: str) -> Refusal:
    """CUDA_ERROR_INVALID_VALUE, with what is wrong."""
    return Refusal(CUresult.CUDA_ERROR_INVALID_VALUE, text)


def invalid_handle(text: str) -> Refusal:
    """CUDA_ERROR_INVALID_HANDLE, with what is wrong."""
    return Refusal(CUresult.CUDA_ERROR_INVALID_HANDLE, text)


class CallDepth(Protocol):
    """What a thread knows of its calls.

    Attributes:
        depth: how many are under way, one in the other.
    """

    depth: int

    @property
    def put_off(self) -> Collection[object]:
        """What they gave back."""


class _Called(Protocol):
    """What a class of driver functions has."""

    def _enter(self, name: str, always: bool, /) -> None:
        """What every call checks first."""

    def _note(self, failure: Failure, /) -> None:
        """Keep the calling thread's last failure."""

    def _begin_call(self, call: Callable[[], object] | None, /) -> bool:
        """Begin a call, or put one off that only gives something back, and need not be now."""

    @property
    def _calls(self) -> CallDepth:
        """How deep the calling thread is in calls."""

    def _make_up(self) -> None:
        """Do what was put off."""


_S = TypeVar("_S", bound=_Called)


def call(
    values: int = 0, *, always: bool = False
) -> Callable[[Callable[Concatenate[_S, _P], _R]], Callable[Concatenate[_S, _P], _R]]:
    """Make a method a driver function.

    A `Refusal` becomes the result tuple that cuda.bindings gives: the code and a None for each of
    the `values` that success would bring. Unless `always`, the call needs cuInit, in this process.
    """
    nothing = (None,) * values

    def decorate(function: Callable[Concatenate[_S, _P], _R]) -> Callable[Concatenate[_S, _P], _R]:
        name = function.__name__
        gives_back = name in _GIVE_BACK

        @wraps(function)
        def checked(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
            later = partial(checked, self, *args, **kwargs) if gives_back else None
            calls = self._calls
            depth = calls.depth
            try:
                if not self._begin_call(later):
                    return cast(_R, OK)  # such a call gives the result alone
                self._enter(name, always)
                return function(self, *args, **kwargs)
            except Refusal as refusal:
                self._note(Failure(name, refusal.code, refusal.text, refusal.cause))
                # The Nones stand where the declared values would be, as in cuda.bindings.
                return cast(_R, (refusal.code, *nothing))
            finally:
                # Whatever an interrupt left; another can come only at a call.
                calls.depth = depth
                if not depth and calls.put_off:
                    self._make_up()

        return checked

    return decorate
