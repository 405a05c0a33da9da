"""Where operations run, and what is asked of arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

import cudadrv

N: Final = 16
"""Elements of a small array."""

Act: TypeAlias = Callable[[], object]
Check: TypeAlias = Callable[[bool], None]
Operation: TypeAlias = Callable[["Place"], tuple[Act, Check]]
"""Prepares, and gives the act that is interrupted and the check that follows, which gets whether
the act came to its end."""


class Place:
    """Where operations run.

    Attributes:
        context: of the first device.
        stream: a stream of it, new for each attempt.
        other: another stream of it.
        far: a stream of the second device, or of the first where there is one.
        bump: a kernel that adds 1 to the first number of an array of int32.
        folder: for files.
        serial: a number of each attempt.
    """

    _serials: Final = itertools.count(1)

    def __init__(self, folder: Path, modules: list[cudadrv.Module]) -> None:
        self.context = cudadrv.cuda_context_for(0)
        self.stream = self.context.new_stream()
        self.other = self.context.new_stream()
        last = cudadrv.cuda_context_for(min(1, len(cudadrv.list_devices()) - 1))
        self.far = last.new_stream()
        self.context.bind()
        self.bump = modules[0].kernel("bump")
        self.folder = folder
        self.serial = next(self._serials)

    def close(self) -> None:
        """Close the streams."""
        for stream in (self.stream, self.other, self.far):
            stream.close()


def numbers_of(place: Place, count: int = N) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.arange(count, dtype=np.int32) + place.serial


def whole(found: np.ndarray[Any, Any], *may_be: object) -> None:
    """Each element is of one of the values that it may have."""
    right = np.zeros(found.shape, bool)
    for value in may_be:
        right |= found == value
    assert right.all(), f"{np.count_nonzero(~right)} of {found.size} elements are wrong"
