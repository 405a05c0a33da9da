"""The launches: kernels with their arguments on the host, at a size to choose."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Dim3 = tuple[int, int, int]
# Arrays are passed by their address on the device, NumPy's scalars by value.
Argument = NDArray[np.generic] | np.generic
_THREADS = 256


@dataclass(frozen=True, slots=True)
class Case:
    """A launch, or several; its arguments in the order of the kernel's parameters.

    Attributes:
        steps: the last arguments of each launch, where a case is several launches in a row.
    """

    title: str
    kernel: str
    grid: Dim3
    block: Dim3
    arguments: tuple[Argument, ...] = ()
    shared_bytes: int = 0
    steps: tuple[tuple[np.generic, ...], ...] = ((),)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the launches are.

    Attributes:
        saxpy, reduction, shuffle: elements.
        product: rows of each square matrix.
        picture, limit: pixels of a side, and iterations at most.
        bytes: of the histogram; `histogram_blocks` share them.
        exact: round the data so that sums do not depend on their order.
    """

    saxpy: int
    reduction: int
    shuffle: int
    product: int
    picture: int
    limit: int
    bytes: int
    histogram_blocks: int
    exact: bool = False


def cases(sizes: Sizes) -> list[Case]:
    """A launch of every kernel."""
    rng = np.random.default_rng(0)

    def numbers(*shape: int) -> NDArray[np.float32]:
        found = rng.standard_normal(shape)
        return (np.round(found * 16) / 16 if sizes.exact else found).astype(np.float32)

    def over(count: int) -> tuple[Dim3, Dim3]:
        return (count // _THREADS, 1, 1), (_THREADS, 1, 1)

    n, side, total = sizes.saxpy, sizes.product, np.zeros(1, np.float32)
    tiles = (side // 16, side // 16, 1), (16, 16, 1)
    pixels = (sizes.picture // 16, sizes.picture // 16, 1), (16, 16, 1)
    picture = np.zeros((sizes.picture, sizes.picture), np.int32)
    extents = (np.int32(sizes.picture), np.int32(sizes.picture), np.int32(sizes.limit))
    data = rng.integers(0, 256, sizes.bytes).astype(np.uint8)
    counted = (data, np.int32(sizes.bytes), np.zeros(256, np.uint32))
    factors = (numbers(side, side), numbers(side, side), np.zeros((side, side), np.float32))
    return [
        Case(f"saxpy, {_count(n)} float32", "saxpy", *over(n),
             (np.float32(2.5), numbers(n), numbers(n), np.zeros(n, np.float32), np.int32(n))),
        Case(f"block reduction, {_count(sizes.reduction)} float32", "reduce",
             *over(sizes.reduction), (numbers(sizes.reduction), total, np.int32(sizes.reduction)),
             4 * _THREADS),
        Case(f"tiled product, {side}^3", "matmul", *tiles, (*factors, np.int32(side))),
        Case(f"Mandelbrot, {sizes.picture}^2 x {sizes.limit}", "mandelbrot", *pixels,
             (picture, *extents)),
        Case(f"shared histogram, {_count(sizes.bytes)} bytes", "histogram",
             (sizes.histogram_blocks, 1, 1), (_THREADS, 1, 1), counted),
        Case(f"warp-shuffle reduction, {_count(sizes.shuffle)}", "shuffle", *over(sizes.shuffle),
             (numbers(sizes.shuffle), total, np.int32(sizes.shuffle))),
        Case("empty launch", "empty", (1, 1, 1), (1, 1, 1)),
    ]  # fmt: skip


def _count(number: int) -> str:
    return f"{number >> 20}M" if number >= 1 << 20 else f"{number:,}"


@dataclass(frozen=True, slots=True)
class Task:
    """A launch, and its arguments as the emulator left them."""

    case: Case
    expected: list[Argument]


@dataclass(slots=True)
class Outcome:
    """Microseconds of each timed launch, or why there are none."""

    elapsed_us: list[float] = field(default_factory=list)
    error: str = ""
