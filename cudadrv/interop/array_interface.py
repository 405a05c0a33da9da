"""The form in which arrays tell other libraries of themselves."""

from __future__ import annotations

from typing import TypedDict


class CudaArrayInterface(TypedDict):
    """Version 3 of Numba's CUDA array interface."""

    shape: tuple[int, ...]
    typestr: str
    data: tuple[int, bool]
    strides: tuple[int, ...] | None
    stream: int | None
    version: int
