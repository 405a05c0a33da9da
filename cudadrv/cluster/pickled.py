"""Values between processes: pickled once, with the bytes of their arrays beside that."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import numpy as np

from ..errors import ArgumentTypeError
from .byte_copy import Bytes
from .shared_arrays import Place, Segment, nbytes_for, opened

_LEAST_SHARED: Final = 1 << 15
"""Fewer bytes go with the message: opening shared memory costs as much as copying them twice."""
_REFUSALS: Final = (pickle.PicklingError, AttributeError, TypeError)
_MAIN: Final = b"__main__"


@dataclass(frozen=True, slots=True)
class Parcel:
    """A pickled value.

    Attributes:
        head: the pickle, by protocol 5 without the arrays' bytes.
        arrays: those, if they travel along.
        place: where they are, if they are shared.
    """

    head: bytes
    arrays: tuple[Bytes, ...]
    place: Place | None

    def unpacked(self) -> object:
        """The value; its arrays are writable, and changes of shared ones this process's own.

        Raises:
            NotHereError: the arrays are shared on another host, or their process has ended.
        """
        if self.place is not None:
            return self.over(opened(self.place, private=True))
        # What came over a network may be read-only, and in one process it is the giver's own.
        return self.over(array.copy() for array in self.arrays)

    def over(self, arrays: Iterable[Bytes]) -> object:
        """The value, its arrays over given memory."""
        return pickle.loads(self.head, buffers=arrays)


def packed(value: object, share: Callable[[int], Segment] | None = None) -> Parcel:
    """A value for another process.

    Args:
        value: what can be pickled, by cloudpickle where it is installed and pickle does not.
        share: gives shared memory of a size; without it the arrays' bytes travel along.

    Raises:
        ArgumentTypeError: it cannot be pickled.
        OSError: there is not so much memory.
    """
    buffers: list[pickle.PickleBuffer] = []
    head = pickled(value, buffers)
    arrays = tuple(np.asarray(buffer.raw()) for buffer in buffers)
    nbytes = nbytes_for(arrays)
    if share is None or nbytes < _LEAST_SHARED:
        return Parcel(head, arrays, None)
    return Parcel(head, (), share(nbytes).put(arrays))


@dataclass(frozen=True, slots=True)
class Function:
    """A pickled function, which a worker unpickles once.

    Attributes:
        digest: of the code.
        code: the pickle.
    """

    digest: str
    code: bytes

    @classmethod
    def of(cls, function: Callable[..., object]) -> Function:
        """The function, with the global names that it uses if it is of the main file.

        Raises:
            ArgumentTypeError: it cannot be pickled.
        """
        code = pickled(function, is_function=True)
        return cls(blake2b(code, digest_size=16).hexdigest(), code)


def pickled(
    value: object,
    buffers: list[pickle.PickleBuffer] | None = None,
    *,
    is_function: bool = False,
) -> bytes:
    """A value as a pickle; with `buffers` without the bytes of arrays, which are put there.

    Raises:
        ArgumentTypeError: it cannot be pickled.
    """
    keep = None if buffers is None else buffers.append
    refusal: Exception | None = None
    try:
        head = pickle.dumps(value, 5, buffer_callback=keep)
        # By reference to the main file, which is another one in a worker.
        if _MAIN not in head:
            return head
    except _REFUSALS as error:
        refusal = error
    try:
        import cloudpickle  # of the extra "cluster"
    except ModuleNotFoundError:
        if refusal is None and not is_function:
            return head
        raise ArgumentTypeError(
            f"workers cannot be given {value!r}: {refusal or 'it is of the main file'}\n"
            '  define it at the top of a module, or: pip install "cudadrv[cluster]"'
        ) from refusal
    if buffers is not None:
        buffers.clear()
    try:
        made: bytes = cloudpickle.dumps(value, 5, buffer_callback=keep)
    except _REFUSALS as error:
        raise ArgumentTypeError(f"workers cannot be given {value!r}: {error}") from error
    return made
