"""Ownership of the driver's objects: handles destroy them, public objects hold handles.

A `Handle` owns one raw handle of the driver and holds the handles of its parents: memory holds that
of its stream, a stream that of its context. So a handle goes after its children, by Python's own
reference counts.

A garbage collection runs finalizers in any order. So while a public object lives, `_live` holds its
handle, and a collection never finds that handle as garbage. The finalizer of the public object
takes the handle out of `_live` and does nothing else: other finalizers of the same collection may
still use the object. Afterwards the handle goes by its reference count, children first.

A handle that leads to objects of the user, such as the owner of borrowed memory, is not in `_live`:
it would keep those for ever. A collection may destroy it before or after others.

docs/contributing/invariants.md has the rules, with their tests.
"""

from __future__ import annotations

from collections.abc import Callable
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
from weakref import ref

from ..errors import ArgumentTypeError, ClosedError, CudadrvError, CudaError
from ._api import CUresult
from .deferred_release import retry_destroy
from .driver_api import DriverApi
from .driver_selection import Driver, failure
from .locks import process_lock
from .registry import Registry

_RawT = TypeVar("_RawT")

# Held over the few bytecodes in which an object comes to have dependents. Re-entrant: a collection
# in between may run a finalizer that makes something.
_adopting: Final = process_lock()

# `Closeable.close` puts this where a later error would be put.
_LEFT: Final = object()


class NotCopyable:
    """A class whose objects are not copied or pickled: each stands for something of this process.

    A copy would go on using what the original gives back. Some kinds go to other processes through
    multiprocessing, which asks `sending` first.
    """

    __slots__ = ()

    # The remedy, for the error; empty if there is none.
    _remedy: ClassVar[str] = ""

    # copy.copy, copy.deepcopy and pickle come here.
    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        remedy = f"\n  {self._remedy}" if self._remedy else ""
        raise ArgumentTypeError(
            f"a {type(self).__name__} cannot be copied or pickled: it stands for something of the "
            f"driver in this process{remedy}"
        )


class ClosedHandle:
    """Stands in for the handle of a closed object; every access raises `ClosedError`.

    Attributes:
        ordered_on: no stream, so that the quick test of a launch or a copy fails.
    """

    __slots__ = ("_text",)

    ordered_on = None

    def __init__(self, text: str) -> None:
        self._text = text

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise ClosedError(self._text)

    @property
    def error(self) -> ClosedError:
        """The error that a use of the closed object raises."""
        return ClosedError(self._text)


class InvalidatedHandle:
    """Stands in for a raw handle that was destroyed with its context; no call accepts it.

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


_DESTROYED: Final = InvalidatedHandle("the driver's object was destroyed")


class Handle(Generic[_RawT]):
    """Owns one object of the driver, which is destroyed once, when the last reference goes.

    `_destroy` may run in any thread, inside any lock and in a garbage collection: it takes no lock
    of ours and names its context itself.

    Attributes:
        raw: the driver's handle; None before the object is made, and if it was not; an
            `InvalidatedHandle` once it was destroyed, or its context was.
    """

    __slots__ = ("__weakref__", "_outcome", "raw")

    raw: _RawT
    # Destroys the object in the place of this handle, and goes with it; for handles that are found
    # by weak references. So a handle that was found has an object that exists.
    destroyer: Handle[Any] | None = None
    # A failure to destroy is put here for `Closeable.close`, which sets it.
    _outcome: list[object]

    def __init__(self, raw: _RawT | None) -> None:
        self.raw = raw  # type: ignore[assignment]  # nobody has the handle before it is made

    @property
    def driver(self) -> Driver:
        """The driver that made the object."""
        raise NotImplementedError

    @property
    def api(self) -> DriverApi:
        """The driver's functions."""
        return self.driver.api

    @property
    def is_destroyed(self) -> bool:
        """Whether the driver's object was destroyed while something still refers to the handle."""
        return isinstance(self.raw, InvalidatedHandle)

    def _destroy(self) -> None:
        """Destroy the driver's object.

        Raises:
            CudaError: the driver refused, or told of the failure of earlier work.
        """
        raise NotImplementedError

    def __del__(self) -> None:
        self._destroy_and_report()

    @property
    def _went_with_parent(self) -> bool:
        """Whether the driver destroyed the object with what it belongs to."""
        return False

    def _destroy_and_report(self) -> None:
        """Destroy the driver's object, unless it is gone, and report a failure."""
        try:
            if not self.raw or self.destroyer is not None or self._went_with_parent:
                return  # the driver has not made it, or has it no more
            driver = self.driver
        except AttributeError:
            return  # it was never finished
        if driver.is_gone:
            return
        had_failed = driver.has_failed
        try:
            self._destroy()
        except CudaError as error:
            if error.code == CUresult.CUDA_ERROR_NOT_PERMITTED:
                # This thread is the driver's, in a function of ours that it calls.
                retry_destroy(self._destroy_and_report)
                return
            self.raw = _DESTROYED  # type: ignore[assignment]  # no call takes it
            self._report_failure(error, had_failed)
        else:
            self.raw = _DESTROYED  # type: ignore[assignment]  # no call takes it

    def _report_failure(self, error: CudaError, had_failed: bool) -> None:
        """Report a failure to destroy: to the `close` that caused it, else to sys.unraisablehook.

        Args:
            error: the failure.
            had_failed: whether an error was raised before that leaves a context unusable.
        """
        if error.sticky and had_failed:
            return  # a broken context refuses everything, and that was raised already
        outcome: list[object] | None = getattr(self, "_outcome", None)
        error.__traceback__ = None  # its frames have this handle, and so the handles of its parents
        if outcome is not None:
            # The first to append decides who reports the error: this, or the `close` that has left.
            outcome.append(error)
            if outcome[0] is error:
                return
        # Python hands it to sys.unraisablehook, as any error of a finalizer.
        try:
            raise error
        finally:
            del error  # its traceback holds this frame, and so the handle and its parents


def _words(error: Exception) -> str:
    """The text of an error, or the texts of all in a group."""
    if isinstance(error, ExceptionGroup):
        return "; ".join(_words(each) for each in error.exceptions)
    return str(error)


def raise_all(faults: list[Exception], doing: str) -> None:
    """Raise what went wrong: the one error as it is, several as a group."""
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise ExceptionGroup(doing, faults)


def check(handle: Handle[_RawT], code: CUresult, call: str, doing: str) -> None:
    """Raise the error of a call that destroys, if it failed."""
    if code:
        raise failure(handle.api, code, call, doing)


# The type of the handle does not matter to those that keep handles.
AnyHandle: TypeAlias = Handle[Any]

# The handle of each public object that lives, or a parent of it, with that object.
_live: Final[dict[int, tuple[AnyHandle, ref[Closeable]]]] = {}


def living() -> list[Closeable]:
    """The public objects that live and are open; not those of `unroot`."""
    found = [reference() for _, reference in list(_live.values())]
    return [public for public in found if public is not None]


def unroot(public: int, handle: AnyHandle) -> None:
    """Let a collection find the handle of a public object, given by its `id`, from now on.

    And those of what stands over it, which hold the same handle.
    """
    entry = _live.get(public)
    if entry is None or entry[0] is not handle:
        return
    found = entry[1]()
    if found is not None:
        handle.driver.sharing.add(found)
        for child in found._children():
            unroot(id(child), child._handle)
    _live.pop(public, None)


class Closeable(NotCopyable):
    """A public object that holds a handle, and gives it up when it is closed."""

    __slots__ = ("__weakref__", "_dependents", "_handle")

    # Objects that close with it; the slot is filled at the first one.
    _dependents: Registry[Closeable] | None

    # A subclass has handles of one type, and says so; once closed it holds a `ClosedHandle`.
    _handle: Any

    def _own(self, handle: AnyHandle) -> None:
        """Hold a handle; a collection destroys it after its children."""
        self._handle = handle
        _live[id(self)] = handle, ref(self)

    def _own_unrooted(self, handle: AnyHandle, parent: AnyHandle) -> None:
        """Hold a handle that leads to objects of the user; a collection destroys it in any order.

        But not after `parent`, which leads to none.
        """
        self._handle = handle
        _live[id(self)] = parent, ref(self)

    # The names of this file are gone when the interpreter drops the last objects.
    def __del__(self, _pop: Callable[[int, None], object] = _live.pop) -> None:
        _pop(id(self), None)

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
        return isinstance(self._handle, ClosedHandle)

    @property
    def _closed_text(self) -> str:
        """The text of the error of a use after `close`."""
        raise NotImplementedError

    def _mark_closed(self) -> None:
        """Be closed from now on, or not open yet."""
        self._handle = ClosedHandle(self._closed_text)
        _live.pop(id(self), None)

    def close(self) -> None:
        """Give the driver's object up; it goes when nothing needs it any more. Idempotent.

        Raises:
            CudaError: it went at once, and the driver refused or told of the failure of its work.
            ExceptionGroup: so did several that were closed with it.
        """
        handle = self._handle
        if handle.__class__ is ClosedHandle:
            return
        self._mark_closed()
        # A dependent may have the same handle, as levels of an array do: it goes first.
        faults = self._close_dependents() if getattr(self, "_dependents", None) else None
        outcome: list[object] = []
        if handle.destroyer is None:
            handle._outcome = outcome
        else:
            handle.destroyer._outcome = outcome
        del handle  # destroyed here, unless something needs it or a call is using it
        outcome.append(_LEFT)
        fault = outcome[0]
        if fault is _LEFT and not faults:
            return
        faults = faults or []
        if isinstance(fault, CudaError):
            faults.append(fault)
        raise_all(faults, f"closing {self!r}")

    def _adopt(self, child: Closeable) -> None:
        """Close an object with this one."""
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

    def _children(self) -> tuple[Closeable, ...]:
        """The open objects that close with this."""
        dependents: Registry[Closeable] | None = getattr(self, "_dependents", None)
        return () if dependents is None else dependents.alive()

    def _close_dependents(self) -> list[Exception]:
        """Close all dependents. Return the errors they raised."""
        faults: list[Exception] = []
        for child in self._children():
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
