"""Matrices as bytes of shared memory, and the words that describe them, for `tcgen05`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SWIZZLES = {16: 0, 128: 2, 64: 4, 32: 6}  # by bytes of a pattern's row: the descriptor's field
TYPES = {"f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "u8": 0, "s8": 1}
TARGETS = {"f16": 0, "f32": 1, "s32": 2}


def descriptor(start: int, leading: int, stride: int, width: int = 16) -> int:
    """A shared memory descriptor; offsets are in bytes."""
    fields = start >> 4 | leading >> 4 << 16 | stride >> 4 << 32
    return fields | 1 << 46 | SWIZZLES[width] << 61


def instruction_word(
    d: str, a: str, b: str, m: int, n: int, *, negated: int = 0, transposed: int = 0, more: int = 0
) -> int:
    """An instruction descriptor; `negated` and `transposed`: 1 for A, 2 for B."""
    return (
        TARGETS[d] << 4
        | TYPES[a] << 7
        | TYPES[b] << 10
        | negated << 13
        | transposed << 15
        | n >> 3 << 17
        | m >> 4 << 24
        | more
    )


def swizzled(address: int, width: int) -> int:
    """Where 16 bytes stand that are at an address without swizzling."""
    chunks = width // 16
    return address ^ (address >> 7) % chunks << 4 if chunks > 1 else address


def k_major(
    pool: NDArray[np.uint8], rows: NDArray[Any], start: int, leading: int, stride: int, width: int
) -> None:
    """Put rows, as many bytes each as are wanted along k, where a descriptor says."""
    octets = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), -1, 16)
    for row, pieces in enumerate(octets):
        for k, piece in enumerate(pieces):
            along = k * leading if width == 16 else k * 16
            at = swizzled(start + row % 8 * width + row // 8 * stride + along, width)
            pool[at : at + 16] = piece


def mn_major(
    pool: NDArray[np.uint8], rows: NDArray[Any], start: int, leading: int, stride: int, width: int
) -> None:
    """The same, where rows lie beside each other."""
    columns = np.ascontiguousarray(rows.T)
    octets = columns.view(np.uint8).reshape(len(columns), -1, 16)
    for k, pieces in enumerate(octets):
        for group, piece in enumerate(pieces):
            if width == 16:
                at = start + k % 8 * 16 + k // 8 * leading + group * stride
            else:
                count = width // 16
                at = start + k % 8 * width + k // 8 * stride
                at += group % count * 16 + group // count * leading
            at = swizzled(at, width)
            pool[at : at + 16] = piece
