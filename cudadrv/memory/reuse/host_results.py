"""Host memory of large results, cached for the next result of that size.

The system provides new memory page by page at first touch, and reclaims it when an array is freed.
Together that takes as long as the copy itself. So the memory of a result is cached when the last
array over it is freed, and the next result of that size reuses it.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from ..dtypes import AnyArray, AnyDType

_MOST_BYTES: Final = 128 << 20
# Free memory, the oldest first.
_cached: Final[deque[npt.NDArray[np.uint8]]] = deque()


class _Result:
    """The memory of one result. Every array over it holds this, as NumPy's `base`."""

    __slots__ = ("_memory",)

    # Module globals are gone when the interpreter drops the last results.
    _cached: ClassVar = _cached
    _most_bytes: ClassVar = _MOST_BYTES

    def __init__(self, memory: npt.NDArray[np.uint8]) -> None:
        self._memory = memory

    @property
    def __array_interface__(self) -> dict[str, object]:
        """The bytes in NumPy's protocol: the array made from it keeps this object."""
        return self._memory.__array_interface__

    def __del__(self) -> None:
        """Cache the memory, and free the oldest above the limit."""
        cached, total = self._cached, 0
        cached.append(self._memory)
        for _ in range(len(cached)):
            try:
                memory = cached.pop()
            except IndexError:
                return  # another thread took it
            total += memory.nbytes
            if total <= self._most_bytes:
                cached.appendleft(memory)


def host_result(shape: tuple[int, ...], dtype: AnyDType, nbytes: int) -> AnyArray:
    """Return a host array, not initialised.

    Raises:
        ValueError: NumPy has fewer axes.
    """
    if nbytes > _MOST_BYTES:
        return np.empty(shape, dtype)
    memory = _take(nbytes)
    if memory is None:
        memory = np.empty(nbytes, np.uint8)
    return np.asarray(_Result(memory)).view(dtype).reshape(shape)


def _take(nbytes: int) -> npt.NDArray[np.uint8] | None:
    """Return cached memory of this size, or None."""
    for _ in range(len(_cached)):
        try:
            memory = _cached.popleft()
        except IndexError:
            return None  # another thread took it
        if memory.nbytes == nbytes:
            return memory
        _cached.append(memory)
    return None
