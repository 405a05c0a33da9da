"""Host memory of large results, kept for the next result of that size.

The system gives new memory page by page as it is first touched, and takes it back when an array
goes. Together that takes as long as the copy itself. So the memory of a result is kept, and a later
result has it again once no array is over it any more.
"""

from __future__ import annotations

from collections import deque
from sys import getrefcount
from typing import Final

import numpy as np
import numpy.typing as npt

from ...driver.collected import NAMED
from ..dtypes import AnyArray, AnyDType

_MOST_BYTES: Final = 128 << 20
# The oldest first; each is in nobody's hands, or has arrays over it, which refer to it.
_kept: Final[deque[npt.NDArray[np.uint8]]] = deque()


def host_result(shape: tuple[int, ...], dtype: AnyDType, nbytes: int) -> AnyArray:
    """A host array, not initialised.

    Raises:
        ValueError: NumPy has fewer axes.
    """
    if nbytes > _MOST_BYTES:
        return np.empty(shape, dtype)
    block = _free_block(nbytes)
    if block is None:
        block = np.empty(nbytes, np.uint8)
    result = block.view(dtype).reshape(shape)  # refers to the block, as every view of it does
    _kept.append(block)
    while sum(each.nbytes for each in tuple(_kept)) > _MOST_BYTES:
        try:
            _kept.popleft()
        except IndexError:
            break  # another thread took it
    return result


def _free_block(nbytes: int) -> npt.NDArray[np.uint8] | None:
    """A kept block of a size that no array is over; it is nobody else's from here on."""
    for _ in range(len(_kept)):
        try:
            block = _kept.popleft()
        except IndexError:
            return None
        if block.nbytes == nbytes and getrefcount(block) == NAMED:
            return block
        _kept.append(block)
    return None
