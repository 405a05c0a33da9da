"""`CachedBackend`: a backend made once for each driver in use, after gam's struct of that name."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeVar
from weakref import WeakKeyDictionary

from .. import border
from ..driver.driver_selection import current_or_none, forked_error
from ..driver.handle import NotCopyable
from ..driver.locks import process_lock
from ..errors import InvalidValueError

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Made(Generic[_T]):
    """A backend that a probe returned."""

    backend: _T

    def result(self) -> _T:
        """Return the backend."""
        return self.backend


@dataclass(frozen=True, slots=True)
class _Failed:
    """The error that a probe raised."""

    error: Exception

    def result(self) -> NoReturn:
        """Raise an equal error: a raised one holds the frames that it passed."""
        raise _copied(self.error) from self.error.__cause__


class _OfDriver:
    """The outcomes of probes on one driver, which go with it; their holders stay."""

    def __init__(self) -> None:
        # Any: holders of all types share the table; a key determines the type of its value.
        self.by_holder: WeakKeyDictionary[CachedBackend[Any], _Made[Any] | _Failed]
        self.by_holder = WeakKeyDictionary()


class CachedBackend(NotCopyable, Generic[_T]):
    """The one backend of a process, made at the first use; hold it in a global.

    The backend belongs to the driver in use. An emulator session, such as that of each test, makes
    its own and drops it at its end. Threads that call at once wait for one probe. An error of the
    probe is cached too, and raised again by each call.
    """

    __slots__ = ("__weakref__", "_is_probing", "_lock", "_without_driver")

    def __init__(self) -> None:
        # Re-entrant: a probe that calls its own holder gets an error instead of waiting for itself.
        self._lock = process_lock()
        self._is_probing = False
        # The outcome where no driver is chosen, with CUDADRV_DRIVER at that time.
        self._without_driver: tuple[str | None, _Made[_T] | _Failed] | None = None

    def get_or_probe(self, probe: Callable[[], _T]) -> _T:
        """Return the backend of the driver in use; the first call makes it by `probe`.

        Args:
            probe: makes the backend, such as a call of `probe_backend_with_compile`. It is called
                once for each driver, and must not call this holder.

        Raises:
            ForkedProcessError: the driver was initialised before this process was forked.
            InvalidValueError: `probe` called this holder.
            Exception: `probe` raised it, now or at the first call. KeyboardInterrupt and other
                exceptions that are no `Exception` are not cached.
        """
        outcome = self._outcome()
        if outcome is None:
            border.function("CachedBackend.get_or_probe: probe", probe, takes=0)
            with self._lock:
                outcome = self._outcome()
                if outcome is None:
                    return self._probe(probe)
        return outcome.result()

    def _outcome(self) -> _Made[_T] | _Failed | None:
        """Return the outcome of the probe on the driver in use; None before it."""
        driver = current_or_none()
        if driver is None:
            cached = self._without_driver
            is_same = cached is not None and cached[0] == os.environ.get("CUDADRV_DRIVER")
            return cached[1] if cached is not None and is_same else None
        if driver.forked_from is not None:
            raise forked_error("CachedBackend.get_or_probe", driver.forked_from)
        return driver.one_of(_OfDriver).by_holder.get(self)

    def _probe(self, probe: Callable[[], _T]) -> _T:
        if self._is_probing:
            raise InvalidValueError("CachedBackend.get_or_probe was called by its own probe")
        try:
            self._is_probing = True
            backend = probe()
        except Exception as error:
            failed = _Failed(_copied(error))
            failed.error.__cause__ = error.__cause__
            self._store(failed)
            raise
        finally:
            self._is_probing = False
        self._store(_Made(backend))
        return backend

    def _store(self, outcome: _Made[_T] | _Failed) -> None:
        driver = current_or_none()  # the probe may have chosen it
        if driver is None:
            self._without_driver = os.environ.get("CUDADRV_DRIVER"), outcome
        else:
            driver.one_of(_OfDriver).by_holder[self] = outcome


def _copied(error: Exception) -> Exception:
    """Return an equal error without a traceback; the error itself if it cannot be copied."""
    try:
        copied = copy.copy(error)
    except Exception:  # of a constructor that takes other arguments than the error has
        return error.with_traceback(None)
    return copied if type(copied) is type(error) else error.with_traceback(None)
