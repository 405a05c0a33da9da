"""Values, functions and errors as pickles, for transfer between processes."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import numpy as np

from ..border import shown, shown_text
from ..errors import ArgumentTypeError, RemoteError
from .shared_arrays import PAGE_BYTES, Bytes, Segment, SharedArrays

_MIN_SHARED_BYTES: Final = 1 << 15
"""Fewer bytes are part of the message: opening shared memory costs two copies of them."""
_MAX_CAUSES: Final = 8
_UNPICKLABLE: Final = (pickle.PicklingError, AttributeError, TypeError)
_MAIN: Final = b"__main__"


@dataclass(frozen=True, slots=True)
class PickledValue:
    """A value, with the bytes of its arrays beside the pickle.

    Attributes:
        head: the pickle, by protocol 5 without the arrays' bytes.
        arrays: the arrays, if they are part of the message.
        shared: the position of the arrays, if they are in shared memory.
    """

    head: bytes
    arrays: tuple[Bytes, ...]
    shared: SharedArrays | None

    @classmethod
    def of(cls, value: object, share: Callable[[int], Segment] | None = None) -> PickledValue:
        """Pickle a value, with cloudpickle if that is installed and pickle cannot.

        Args:
            value: the value.
            share: returns shared memory of a size; None makes the arrays part of the message.

        Raises:
            ArgumentTypeError: the value cannot be pickled.
            OSError: the system has not enough memory.
        """
        buffers: list[pickle.PickleBuffer] = []
        head = _pickled(value, buffers)
        arrays = tuple([np.asarray(buffer.raw()) for buffer in buffers])
        nbytes = sum(map(len, arrays))
        if share is None or nbytes < _MIN_SHARED_BYTES:
            return cls(head, arrays, None)
        return cls(head, (), share(nbytes + len(arrays) * PAGE_BYTES).put(arrays))

    def value(self) -> object:
        """Unpickle the value, with writable arrays of its own.

        Raises:
            NotSharedError: the arrays are shared on another host, or their process has ended.
        """
        if self.shared is not None:
            return self.over(self.shared.within(self.shared.mapped()))
        # Bytes from a network may be read-only; in one process they are the sender's own.
        return self.over(map(np.copy, self.arrays))

    def over(self, arrays: Iterable[Bytes]) -> object:
        """Unpickle the value, with its arrays in the given memory."""
        return pickle.loads(self.head, buffers=arrays)


@dataclass(frozen=True, slots=True)
class PickledFunction:
    """A function that a worker unpickles once.

    Attributes:
        digest: of the code.
        code: the pickle.
    """

    digest: str
    code: bytes

    @classmethod
    def of(cls, function: Callable[..., object]) -> PickledFunction:
        """Pickle a function; one of the main file with the global names that it uses.

        Raises:
            ArgumentTypeError: the function cannot be pickled.
        """
        code = _pickled(function, is_function=True)
        return cls(blake2b(code, digest_size=16).hexdigest(), code)


@dataclass(frozen=True, slots=True)
class PickledError:
    """An error of a worker, with its attributes and causes, and the traceback as a note.

    Attributes:
        errors: the error and its causes, each pickled.
    """

    errors: tuple[bytes, ...]

    @classmethod
    def of(cls, error: BaseException, worker: str) -> PickledError:
        """Pickle an error that the worker of a name raised."""
        text = "".join(traceback.format_exception(error)).rstrip()
        error.add_note(f"on worker {worker}:\n{text}")
        errors: list[bytes] = []
        exception: BaseException | None = error
        while exception is not None and len(errors) < _MAX_CAUSES:
            errors.append(_pickled_error(exception))
            exception = exception.__cause__
        return cls(tuple(errors))

    def error(self) -> BaseException:
        """The error, with its causes."""
        first, *causes = (_unpickled_error(pickled) for pickled in self.errors)
        effect = first
        for cause in causes:
            effect.__cause__ = cause
            effect = cause
        return first


def _pickled(
    value: object,
    buffers: list[pickle.PickleBuffer] | None = None,
    *,
    is_function: bool = False,
) -> bytes:
    """Pickle a value; with `buffers` the bytes of arrays are put there instead.

    Raises:
        ArgumentTypeError: the value cannot be pickled.
    """
    add_buffer = None if buffers is None else buffers.append
    failure: Exception | None = None
    try:
        head = pickle.dumps(value, 5, buffer_callback=add_buffer)
        # A reference to the main file, which is another one in a worker.
        if _MAIN not in head:
            return head
    except _UNPICKLABLE as error:
        failure = error
    try:
        import cloudpickle  # of the extra "cluster"
    except ModuleNotFoundError:
        if failure is None and not is_function:
            return head
        raise ArgumentTypeError(
            f"{shown(value)} cannot be sent to workers: "
            f"{failure or 'it is of the main file'}\n"
            '  define it at the top of a module, or: pip install "cudadrv[cluster]"'
        ) from failure
    if buffers is not None:
        buffers.clear()
    try:
        content: bytes = cloudpickle.dumps(value, 5, buffer_callback=add_buffer)
    except _UNPICKLABLE as error:
        raise ArgumentTypeError(
            f"{shown(value)} cannot be sent to workers: {shown_text(error)}"
        ) from error
    return content


def _pickled_error(error: BaseException) -> bytes:
    """Pickle an error so that it can be unpickled for certain."""
    try:
        head = _pickled(error.with_traceback(None))
        pickle.loads(head)
    except Exception as failure:  # a class's own pickling may raise anything
        kind = type(error).__qualname__
        replacement = RemoteError(
            f"{kind}: {error}\n  it cannot be pickled: {failure}", type_name=kind
        )
        for note in getattr(error, "__notes__", ()):
            replacement.add_note(note)
        return pickle.dumps(replacement, 5)
    return head


def _unpickled_error(pickled: bytes) -> BaseException:
    try:
        error = pickle.loads(pickled)
    except Exception as failure:  # its class may be of a module that this process lacks
        return RemoteError(f"an error cannot be unpickled here: {failure}", type_name="")
    assert isinstance(error, BaseException)
    return error
