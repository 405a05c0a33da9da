"""Graphs and arrays of several shapes and sizes, as what a kernel of the ground truth takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Edges = NDArray[np.int64]

SIZES: Final = ("tiny", "small", "medium", "large")
SHAPES: Final = ("random", "ring", "star", "grid", "power law", "empty")
DTYPES: Final = {"int": np.int32, "float": np.float32, "unsigned long long": np.uint64}
_SPARE: Final = 64


@dataclass(frozen=True, slots=True)
class Input:
    """The arguments of a launch.

    Attributes:
        threads: how many elements the grid has a thread for, at least.
        values: integers and arrays, in the order of the parameters.
    """

    threads: int
    values: tuple[int | NDArray[Any], ...]


def count_of(size: str, block: int) -> int:
    """The vertices or elements of a size; never a multiple of a block's threads."""
    return {"tiny": 5, "small": 4 * block - 3, "medium": 6 * block - 21, "large": 4085}[size]


def _edges(shape: str, n: int, rng: np.random.Generator) -> Edges:
    """(m, 2) the edges of an undirected graph, each once."""
    every = np.arange(n)
    if shape == "ring":
        return np.stack([every, (every + 1) % n], 1)
    if shape == "star":
        return np.stack([np.zeros(n - 1, np.int64), every[1:]], 1)
    if shape == "grid":
        wide = int(np.sqrt(n))
        right = every[(every % wide != wide - 1) & (every + 1 < n)]
        below = every[every + wide < n]
        return np.concatenate([np.stack([right, right + 1], 1), np.stack([below, below + wide], 1)])
    if shape == "random":
        return rng.integers(0, n, (2 * n, 2))
    if shape == "power law":
        ends = np.minimum(n / (1 + rng.pareto(1.0, 2 * n) * n / 20), n - 1).astype(np.int64)
        return np.stack([rng.integers(0, n, 2 * n), n - 1 - ends], 1)
    return np.zeros((0, 2), np.int64)


def graph(shape: str, size: str, block: int, kind: str, over: str, seed: int = 0) -> Input:
    """A graph as compressed rows; a vertex has a value, and a place for a result."""
    n = count_of(size, block)
    rng = np.random.default_rng([seed, n, SHAPES.index(shape)])
    edges = _edges(shape, n, rng)
    edges = edges[edges[:, 0] != edges[:, 1]]
    both = np.unique(np.concatenate([edges, edges[:, ::-1]]), axis=0)
    row = np.searchsorted(both[:, 0], np.arange(n + 1)).astype(np.int32)
    ends = both.astype(np.int32)
    dtype = DTYPES[kind]
    values = (
        n, len(ends), row, ends[:, 0].copy(), ends[:, 1].copy(),
        (rng.permutation(n) + 1).astype(dtype), np.zeros(n, dtype),
        np.arange(n, dtype=np.int32), np.zeros(_SPARE + 2 * max(n, len(ends)), np.int32),
    )  # fmt: skip
    return Input(n if over == "vertex" else max(len(ends), 1), values)


def array(size: str, block: int, kind: str, seed: int = 0) -> Input:
    """Elements, a place for as many results, and flags that are 0."""
    n = count_of(size, block)
    rng = np.random.default_rng([seed, n])
    dtype = DTYPES[kind]
    values = (
        n,
        (rng.permutation(n) + 1).astype(dtype),
        np.zeros(n, dtype),
        np.zeros(_SPARE + 4 * (n + block), np.int32),
    )
    return Input(n, values)
