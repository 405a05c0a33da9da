"""Copies between host memory, large ones by several threads."""

from __future__ import annotations

import itertools
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ..memory.copy_threads import Share, under_way, work_together
from ..memory.dtypes import AnyArray

Bytes: TypeAlias = npt.NDArray[np.uint8]

_LEAST: Final = 4 << 20
"""Fewer bytes are copied sooner than another thread wakes."""
_CHUNK: Final = 2 << 20


def copy_bytes(to: Bytes, of: Bytes) -> None:
    """Copy as many bytes as there are."""
    if of.size < _LEAST:
        to[:] = of  # NumPy lets others run meanwhile
        return
    numbers = itertools.count()
    chunks = -(-of.size // _CHUNK)

    def work() -> None:
        while (number := next(numbers)) < chunks:
            at = number * _CHUNK
            to[at : at + _CHUNK] = of[at : at + _CHUNK]

    share = Share()
    try:
        under_way.append(share)  # no interrupt comes before it, nor before it is taken out
        work_together(work, min(share.threads, chunks))
    finally:
        under_way.remove(share)


def copy_items(to: AnyArray, of: object) -> None:
    """What ``to[...] = of`` does."""
    if (
        isinstance(of, np.ndarray)
        and of.nbytes >= _LEAST
        and (to.dtype, to.shape) == (of.dtype, of.shape)
        and not to.dtype.hasobject
        and to.flags.c_contiguous
        and of.flags.c_contiguous
    ):
        copy_bytes(to.reshape(-1).view(np.uint8), of.reshape(-1).view(np.uint8))
    else:
        to[...] = of
