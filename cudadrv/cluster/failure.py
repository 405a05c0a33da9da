"""Errors between processes: with their attributes, causes, and the traceback as a note."""

from __future__ import annotations

import pickle
import traceback
from dataclasses import dataclass

from ..errors import RemoteError
from .pickled import pickled


@dataclass(frozen=True, slots=True)
class Failure:
    """An error that a worker's function raised.

    Attributes:
        errors: it and its causes, each pickled.
    """

    errors: tuple[bytes, ...]

    @classmethod
    def of(cls, error: BaseException, worker: str) -> Failure:
        """An error of a worker."""
        text = "".join(traceback.format_exception(error)).rstrip()
        error.add_note(f"on worker {worker}:\n{text}")
        errors: list[bytes] = []
        each: BaseException | None = error
        while each is not None and len(errors) < 8:
            errors.append(_safely_pickled(each))
            each = each.__cause__
        return cls(tuple(errors))

    def raised(self) -> BaseException:
        """The error, with its causes."""
        first, *causes = (_unpickled(each) for each in self.errors)
        effect = first
        for cause in causes:
            effect.__cause__ = cause
            effect = cause
        return first


def _safely_pickled(error: BaseException) -> bytes:
    """An error as a pickle that is sure to be read again."""
    try:
        head = pickled(error.with_traceback(None))
        pickle.loads(head)
    except Exception as refusal:  # a class's own way to pickle may raise anything
        kind = type(error).__qualname__
        other = RemoteError(f"{kind}: {error}\n  it cannot be pickled: {refusal}", type_name=kind)
        for note in getattr(error, "__notes__", ()):
            other.add_note(note)
        return pickle.dumps(other, 5)
    return head


def _unpickled(pickled: bytes) -> BaseException:
    try:
        error = pickle.loads(pickled)
    except Exception as refusal:  # its class may be of a module that is not here
        return RemoteError(f"an error cannot be unpickled here: {refusal}", type_name="")
    assert isinstance(error, BaseException)
    return error
