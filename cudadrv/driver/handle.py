"""Who owns what the driver made: boxes that destroy it once, and the public objects that hold one.

A `Box` holds a raw handle and the boxes that must outlive it. Python's reference counts are the
counts: what was made of a stream holds the stream's box, that holds the context's, so nothing is
destroyed before what needs it, whichever thread or finalizer lets go last. A public object is a
`Closing`; `close` takes the box out of it.

What a garbage collection finds, `collected` puts in order. docs/lifetimes.md has the invariants and
the tests that hold them.
"""

from __future__ import annotations

from sys import getrefcount
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    NoReturn,
    Self,
    SupportsIndex,
    TypeAlias,
    TypeVar,
)

from ..errors import ArgumentTypeError, ClosedError, CudadrvError, CudaError
from ._api import CUresult
from .collected import ALONE, found
from .driver_api import DriverApi
from .in_use import Driver, failure
from .locks import process_lock
from .registry import Registry

_RawT = TypeVar("_RawT")

# Held over the few bytecodes in which an object comes to have dependents. Re-entrant: a collection
# in between may run a finalizer that makes something.
_adopting: Final = process_lock()

# What `Closing.close` leaves behind where a later error would be put.
_LEFT: Final = object()


class Uncopied:
    """A class whose objects are not copied or pickled: each stands for something of this process.

    A copy would go on using what the original gives back. Some kinds go to other processes through
    multiprocessing, which asks `sending` first.
    """

    __slots__ = ()

    # What to do instead, where there is something.
    _remedy: ClassVar[str] = ""

    # copy.copy, copy.deepcopy and pickle come here.
    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        remedy = f"\n  {self._remedy}" if self._remedy else ""
        raise ArgumentTypeError(
            f"a {type(self).__name__} cannot be copied or pickled: it stands for something of the "
            f"driver in this process{remedy}"
        )


class Closed:
    """Takes the place of a closed object's box; any use of it raises `ClosedError`.

    Attributes:
        home: no stream, so that the quick test of a launch or a copy fails.
    """

    __slots__ = ("_text",)

    home = None

    def __init__(self, text: str) -> None:
        self._text = text

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise ClosedError(self._text)

    @property
    def error(self) -> ClosedError:
        """What a use of the closed object raises."""
        return ClosedError(self._text)


class LostHandle:
    """Takes the place of a handle that was destroyed with its context; no call accepts it.

    None would be the null handle to the driver, which means the default stream, or whichever
    context is current.
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __bool__(self) -> bool:
        return False

    def __index__(self) -> NoReturn:
        raise ClosedError(self._text)

    __int__ = __index__


class Box(Generic[_RawT]):
    """Owns one object of the driver, which is destroyed once, when the last reference goes.

    `_destroy` may run in any thread, inside any lock and in a garbage collection: it takes no lock
    of ours and names its context itself.

    Attributes:
        raw: the driver's handle; None before the object is made, and if it was not; a `LostHandle`
            once its context was reset.
    """

    __slots__ = ("__weakref__", "_outcome", "raw")

    raw: _RawT
    # Where `Closing.close` is told of a failure; filled there alone.
    _outcome: list[object]

    # The names of this file are gone when the interpreter drops the last boxes.
    _references = staticmethod(getrefcount)
    _alone: ClassVar = ALONE
    _found: ClassVar = found

    def __init__(self, raw: _RawT | None) -> None:
        self.raw = raw  # type: ignore[assignment]  # nobody has the box before it is made

    @property
    def driver(self) -> Driver:
        """The driver that made the object."""
        raise NotImplementedError

    @property
    def api(self) -> DriverApi:
        """The driver's functions."""
        return self.driver.api

    def _destroy(self) -> None:
        """Destroy the driver's object.

        Raises:
            CudaError: the driver refused, or told of the failure of earlier work.
        """
        raise NotImplementedError

    def __del__(self) -> None:
        (references,) = map(self._references, (self,))
        if references > self._alone and self._may_wait():
            self._found.append(self)  # the collector found it, together with what refers to it
        else:
            self._go()

    def _may_wait(self) -> bool:
        """Whether a box that a collection found may be kept for a while.

        Not where what it refers to may refer to it: then it would never go.
        """
        return True

    def _go(self) -> bool:
        """Destroy the driver's object, and tell of a failure; False if it must be tried later."""
        try:
            if not self.raw:
                return True  # the driver has not made it, or has it no more
            driver = self.driver
        except AttributeError:
            return True  # it was never finished
        if driver.is_gone:
            return True
        had_failed = driver.has_failed
        try:
            self._destroy()
        except CudaError as error:
            return self._tell(error, had_failed)
        return True

    def _tell(self, error: CudaError, had_failed: bool) -> bool:
        """Tell of a failure to destroy; False if it must be tried later.

        Args:
            error: the failure.
            had_failed: whether an error was raised before that leaves a context unusable.
        """
        if error.code == CUresult.CUDA_ERROR_NOT_PERMITTED:
            # A collection came in a thread of the driver's, which calls a function of ours.
            found.append(self)
            return False
        if error.sticky and had_failed:
            return True  # a broken context refuses everything, and that was raised already
        outcome: list[object] | None = getattr(self, "_outcome", None)
        error.__traceback__ = None  # its frames have this box, and so the boxes of its parents
        if outcome is not None:
            # Whoever appends first has the error told: this, or the `close` that has left.
            outcome.append(error)
            if outcome[0] is error:
                return True
        # Python hands it to sys.unraisablehook, as any error of a finalizer.
        try:
            raise error
        finally:
            del error  # its traceback holds this frame, and so the box and its parents


def _words(error: Exception) -> str:
    """What an error says; of a group, what each in it says."""
    if isinstance(error, ExceptionGroup):
        return "; ".join(_words(each) for each in error.exceptions)
    return str(error)


def raise_all(faults: list[Exception], doing: str) -> None:
    """Raise what went wrong: the one error as it is, several as a group."""
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise ExceptionGroup(doing, faults)


def check(box: Box[_RawT], code: CUresult, call: str, doing: str) -> None:
    """Raise the error of a call that destroys, if it failed."""
    if code:
        raise failure(box.api, code, call, doing)


# The type of the handle does not matter to those that keep boxes.
AnyBox: TypeAlias = Box[Any]


class Closing(Uncopied):
    """A public object that holds a box, and gives it up when it is closed."""

    __slots__ = ("__weakref__", "_box", "_dependents")

    # What is named closed with it; the slot is filled at the first one.
    _dependents: Registry[Closing] | None

    # A subclass has boxes of one type, and says so; once closed it holds a `Closed`.
    _box: Any

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
            return
        try:
            self.close()
        except (CudadrvError, ExceptionGroup) as second:
            error.add_note(f"closing the {type(self).__name__} failed as well: {_words(second)}")

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return isinstance(self._box, Closed)

    @property
    def _closed_text(self) -> str:
        """What a use after `close` says."""
        raise NotImplementedError

    def _shut(self) -> None:
        """Be closed from now on, or not open yet."""
        self._box = Closed(self._closed_text)

    def close(self) -> None:
        """Give the driver's object up; it goes when nothing needs it any more. Idempotent.

        Raises:
            CudaError: it went at once, and the driver refused or told of the failure of its work.
            ExceptionGroup: so did several that were closed with it.
        """
        box = self._box
        if box.__class__ is Closed:
            return
        self._shut()
        # What stands over this may have the same box, as levels of an array do: it goes first.
        faults = self._close_dependents() if getattr(self, "_dependents", None) else None
        box._outcome = outcome = []
        del box  # destroyed here, unless something needs it or a call is using it
        outcome.append(_LEFT)
        fault = outcome[0]
        if fault is _LEFT and not faults:
            return
        faults = faults or []
        if isinstance(fault, CudaError):
            faults.append(fault)
        raise_all(faults, f"closing {self!r}")

    def _adopt(self, child: Closing) -> None:
        """Remember what stands over this, and closes with it."""
        dependents = getattr(self, "_dependents", None)
        if dependents is None:
            with _adopting:
                dependents = getattr(self, "_dependents", None)
                if dependents is None:
                    dependents = self._dependents = Registry()
        dependents.add(child)
        if self.closed:  # another thread has closed it since
            child._close_with_parent()
            raise self._closed_error()

    def _close_dependents(self) -> list[Exception]:
        """Close what stands over this; gives what that raised."""
        faults: list[Exception] = []
        dependents: Registry[Closing] | None = getattr(self, "_dependents", None)
        for child in dependents.alive() if dependents is not None else ():
            try:
                child._close_with_parent()
            except Exception as fault:
                faults.append(fault)
        return faults

    def _close_with_parent(self) -> None:
        """Close, as what it belongs to was closed."""
        self.close()

    def _closed_error(self) -> ClosedError:
        return ClosedError(self._closed_text)
