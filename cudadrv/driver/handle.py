"""Ownership of the driver's objects: handles destroy them, public objects hold handles.

A `Handle` owns one raw handle of the driver and holds the handles of its parents: memory holds that
of its stream, a stream that of its context. So Python's reference counts free a handle after its
children.

A garbage collection runs finalizers in any order. So while a public object exists, `_live` holds
its handle, and a collection never finds that handle as garbage. The key in `_live` is a weak
reference to the public object. Its callback only removes the handle from `_live`: finalizers of the
same collection may still use the object. Afterwards the reference count frees the handle, children
first.

A handle that refers to objects of the user, such as the owner of borrowed memory, is not in
`_live`: it would keep those alive for ever. A collection may destroy it before or after others.

docs/contributing/invariants.md has the rules, with their tests.
"""

from __future__ import annotations

import sys
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
from .deferred_release import callbacks, is_driver_thread, retry_destroy
from .driver_api import DriverApi
from .driver_selection import Driver, failure
from .locks import process_lock
from .registry import Registry

_RawT = TypeVar("_RawT")

# Held over the few bytecodes in which an object gets its first dependents. Re-entrant: a collection
# in between may run a finalizer that makes an object.
_adopting: Final = process_lock()

# `Closeable.close` stores this where a later error would be stored.
_LEFT: Final = object()


class NotCopyable:
    """A class whose objects are not copied or pickled: each owns resources of this process.

    A copy would use resources that the original has freed. Some classes can be sent to other
    processes through multiprocessing: `register_reduction` says how.
    """

    __slots__ = ()

    # The remedy, for the error's text; empty if there is none.
    _remedy: ClassVar[str] = ""

    # copy.copy, copy.deepcopy and pickle call this.
    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        remedy = f"\n  {self._remedy}" if self._remedy else ""
        raise ArgumentTypeError(
            f"a {type(self).__name__} cannot be copied or pickled: it stands for something of the "
            f"driver in this process{remedy}"
        )


class ClosedHandle:
    """Stands in for the handle of a closed object; every access raises `ClosedError`.

    Attributes:
        ordered_on: no stream, so that the fast test of a launch or a copy fails.
        cause: further lines of the error, if something else than `close` closed the object.
    """

    __slots__ = ("_text", "cause")

    ordered_on = None

    def __init__(self, text: str, cause: str = "") -> None:
        self._text = text + cause
        self.cause: str = cause

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise ClosedError(self._text)

    @property
    def error(self) -> ClosedError:
        """The error that a use of the closed object raises."""
        return ClosedError(self._text)

    def error_of(self, text: str) -> ClosedError:
        """Return the error of another object that needs the closed one; `text` describes it."""
        return ClosedError(text + self.cause)


class InvalidatedHandle:
    """Stands in for a raw handle that was destroyed with its context; no call accepts it.

    None would be the null handle to the driver, which means the default stream, or whichever
    context is current.
    """

    __slots__ = ("_text",)

    is_invalidated: ClassVar[bool] = True

    def __init__(self, text: str) -> None:
        self._text = text

    def __bool__(self) -> bool:
        return False

    def __index__(self) -> NoReturn:
        raise ClosedError(self._text)

    __int__ = __index__


# Whether the build is free-threaded: also where it runs with the interpreter lock. Its collections
# finalize, in any order, dropped objects that wait for the thread that made them.
FREE_THREADED: Final = "t" in getattr(sys, "abiflags", "")
_DESTROYED: Final = InvalidatedHandle("the driver's object was destroyed")
# A later call destroys what must not be destroyed in this thread: it is the driver's, and calls a
# function of ours, or it has no OpenGL context.
_RETRIED: Final = (
    CUresult.CUDA_ERROR_NOT_PERMITTED,
    CUresult.CUDA_ERROR_INVALID_GRAPHICS_CONTEXT,
)


class Handle(Generic[_RawT]):
    """Owns one object of the driver, which is destroyed once, with the last reference.

    `_destroy` may run in any thread, inside any lock and in a garbage collection: it takes no lock
    of ours and selects its context itself.

    Attributes:
        raw: the driver's handle; None before the object is made, and if making it failed; an
            `InvalidatedHandle` after it or its context was destroyed.
    """

    __slots__ = ("__weakref__", "_outcome", "raw")

    raw: _RawT
    # Destroys the object instead of this handle, and is dropped with it; for handles that are found
    # by weak references. So a handle that was found has an object that exists.
    destroyer: Handle[Any] | None = None
    # The raw handle of a destroyed object. Module globals are gone when the interpreter drops the
    # last handles.
    _destroyed: ClassVar[InvalidatedHandle] = _DESTROYED
    # `Closeable.close` sets this list, to receive a failure to destroy.
    _outcome: list[object]

    def __init__(self, raw: _RawT | None) -> None:
        self.raw = raw  # type: ignore[assignment]  # unused before the object is made

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
        # By name: at the interpreter's end the module has no classes any more.
        return getattr(self.raw, "is_invalidated", False)

    def _destroy(self) -> None:
        """Destroy the driver's object.

        Raises:
            CudaError: the call failed, or reported the failure of earlier work.
        """
        raise NotImplementedError

    def __del__(self) -> None:
        self._destroy_and_report()

    def _destroying_driver(self) -> Driver | None:
        """Return the driver that destroys the object; None if it did so with the parent."""
        return self.driver

    def _destroy_and_report(self) -> None:
        """Destroy the driver's object, unless it is destroyed, and report a failure."""
        try:
            if not self.raw or self.destroyer is not None:
                return  # the driver has not made it, or another handle destroys it
            driver = self._destroying_driver()
        except AttributeError:
            return  # it was never finished
        if driver is None or driver.is_gone:
            return
        if callbacks.expected and is_driver_thread():
            retry_destroy(self._destroy_and_report)
            return
        had_failed = driver.has_failed
        try:
            self._destroy()
        except CudaError as error:
            if error.code in _RETRIED:
                retry_destroy(self._destroy_and_report)
                return
            self.raw = _DESTROYED  # type: ignore[assignment]  # no call accepts it
            self._report_failure(error, had_failed)
        else:
            self.raw = _DESTROYED  # type: ignore[assignment]  # no call accepts it

    def _forget_raw(self) -> None:
        """Let no call accept this handle: the object was destroyed, or has another handle."""
        self.raw = self._destroyed  # type: ignore[assignment]  # no call accepts it

    def _report_failure(self, error: CudaError, had_failed: bool) -> None:
        """Report a failure to destroy: to the `close` that caused it, else to sys.unraisablehook.

        Args:
            error: the failure.
            had_failed: whether an error that leaves a context unusable was raised before.
        """
        if error.sticky and had_failed:
            return  # a broken context rejects every call, and that error was raised before
        outcome: list[object] | None = getattr(self, "_outcome", None)
        error.__traceback__ = None  # its frames hold this handle, and so the handles of its parents
        if outcome is not None:
            # The first to append reports the error: this method, or the `close` that has returned.
            outcome.append(error)
            if outcome[0] is error:
                return
        # Python passes it to sys.unraisablehook, as any error of a finalizer.
        try:
            raise error
        finally:
            del error  # its traceback holds this frame, and so the handle and its parents


def _words(error: Exception) -> str:
    """Return the text of an error, or the texts of all in a group."""
    if isinstance(error, ExceptionGroup):
        return "; ".join(_words(member) for member in error.exceptions)
    return str(error)


def raise_all(faults: list[Exception], doing: str) -> None:
    """Raise the collected errors: a single one as it is, several as a group."""
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise ExceptionGroup(doing, faults)


def check(handle: Handle[_RawT], code: CUresult, call: str, doing: str) -> None:
    """Raise the error of a call that destroys, if it failed."""
    if code:
        raise failure(handle.api, code, call, doing)


# Containers of handles do not depend on the type of the raw handle.
AnyHandle: TypeAlias = Handle[Any]


class LiveKey(ref["Closeable"]):
    """Refers weakly to a public object, and is its key in `_live`. Keys compare by identity."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a type checker takes them for attributes without a type
        __eq__ = object.__eq__
        __hash__ = object.__hash__


# The handle of each existing public object, or a parent of it; None if it is closed or unrooted.
_live: Final[dict[LiveKey, AnyHandle | None]] = {}
# The callback of every key. No Python function: an interrupt that arrives while one runs is lost.
_forget: Final = _live.pop


def release(key: LiveKey | None) -> None:
    """Let the handle of a closed public object go.

    The key stays until the object is freed. An object that a finalizer saved has none.
    """
    if key in _live:
        _live[key] = None


def living() -> list[Closeable]:
    """Return the public objects that exist and are open, except those of `unroot`."""
    # A collection may remove keys at any allocation of the loop, and at none within `copy`.
    candidates = [key() for key, handle in _live.copy().items() if handle is not None]
    return [public for public in candidates if public is not None]


def living_with(kind: type[AnyHandle]) -> list[Closeable]:
    """Return the public objects that exist and are open, whose handles are of a class."""
    keys = [key for key, handle in _live.copy().items() if isinstance(handle, kind)]
    return [public for public in (key() for key in keys) if public is not None]


def unroot(key: LiveKey, handle: AnyHandle) -> None:
    """Let a collection find the handle of a public object from now on.

    The same applies to dependents of the object, which hold the same handle.
    """
    if _live.get(key) is not handle:
        return
    owner = key()
    if owner is not None:
        handle.driver.sharing.add(owner)
        for child in owner._children():
            unroot(child._key, child._handle)
        _live[key] = None


def handle_of(public: object) -> object:
    """Return the handle of a public object; None as long as another thread constructs it."""
    return getattr(public, "_handle", None)


class Closeable(NotCopyable):
    """A public object that holds a handle, and releases it when it is closed."""

    __slots__ = ("__weakref__", "_dependents", "_handle", "_key")

    # Its key in `_live`; the slot is filled when it first has a handle.
    _key: LiveKey

    # Objects that close with it; None before the first one.
    _dependents: Registry[Closeable] | None

    # Whether `_children` returns others, too, which are found when it closes.
    _has_unregistered: ClassVar[bool] = False

    # A subclass has handles of one type, and declares it; once closed it holds a `ClosedHandle`.
    _handle: Any

    def _own(self, handle: AnyHandle) -> None:
        """Hold a handle; a collection destroys it after its children."""
        self._handle = handle
        self._dependents = None
        self._key = key = LiveKey(self, _forget)
        _live[key] = handle

    def _own_unrooted(self, handle: AnyHandle, parent: AnyHandle) -> None:
        """Hold a handle that refers to objects of the user; a collection destroys it in any order.

        It is destroyed before `parent`, which refers to none.
        """
        self._handle = handle
        self._dependents = None
        self._key = key = LiveKey(self, _forget)
        _live[key] = parent

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
        """Return the text of the error of a use after `close`."""
        raise NotImplementedError

    def _mark_closed(self, cause: str = "") -> None:
        """Count as closed from now on, or as not open yet; `cause` is for the error's text."""
        self._handle = ClosedHandle(self._closed_text, cause)
        release(getattr(self, "_key", None))

    def close(self) -> None:
        """Release the driver's object; it is destroyed when nothing needs it any more. Idempotent.

        Raises:
            CudaError: it was destroyed at once, and the call failed or reported that earlier work
                failed.
            ExceptionGroup: the same for several objects that were closed with it.
        """
        handle = self._handle
        if handle.__class__ is ClosedHandle:
            return
        self._mark_closed()
        # A dependent may have the same handle, as levels of an array do: it is closed first.
        has_dependents = self._has_unregistered or getattr(self, "_dependents", None)
        faults = self._close_dependents() if has_dependents else None
        outcome: list[object] = []
        if handle.destroyer is None:
            handle._outcome = outcome
        else:
            handle.destroyer._outcome = outcome
        del handle  # destroyed here, unless another object or a running call uses it
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
        if self.closed:  # another thread has closed it meanwhile
            child._close_with_parent()
            raise self._closed_error()

    def _children(self) -> tuple[Closeable, ...]:
        """Return the open objects that close with this one."""
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
        """Close, because the parent was closed."""
        self.close()

    def _closed_error(self) -> ClosedError:
        handle: object = self._handle
        if isinstance(handle, ClosedHandle):
            return handle.error_of(self._closed_text)
        return ClosedError(self._closed_text)
