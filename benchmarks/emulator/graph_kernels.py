"""A kernel whose threads hand over to each other all the time, which a check of races must follow.

Each atomic operation of `cuda::atomic` is a fence as well, unless it is told otherwise.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from .cases import Case

SOURCE: Final = r"""
#include <cuda/atomic>
using Atomic = cuda::atomic<int, cuda::thread_scope_device>;

extern "C" __global__ void push(int n, const int* row, const int* col, const int* weight,
                                const int* start, Atomic* distance, Atomic* list, Atomic* ends,
                                int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  for (int v = i; v < n; v += threads) {
    distance[v].store(start[v]);
    list[v].store(v);
  }
  for (int round = 0; round < rounds; round++) {
    int v = list[ends[0].fetch_add(1) % n].load(), mine = distance[v].load();
    for (int e = row[v]; e < row[v + 1]; e++) {
      int other = mine + weight[e];
      if (distance[col[e]].fetch_min(other) > other)
        list[ends[1].fetch_add(1) % n].store(col[e]);
    }
  }
}
"""
_DEGREE: Final = 4


def graph_cases() -> list[Case]:
    """Shortest ways in a random graph by a list of vertices to look at, in one block and in more.

    Each launch begins anew.
    """
    return [_push(2000, 1, 512), _push(1000, 8, 128)]


def _push(vertices: int, blocks: int, threads: int) -> Case:
    rng = np.random.default_rng(0)
    edges = vertices * _DEGREE

    def numbers(most: int, count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
        return rng.integers(0, most, count).astype(np.int32)

    rows = (np.arange(vertices + 1) * _DEGREE).astype(np.int32)
    return Case(
        f"push by cuda::atomic, {blocks} x {threads}", "push", (blocks, 1, 1), (threads, 1, 1),
        (
            np.int32(vertices), rows, numbers(vertices, edges), numbers(30, edges),
            numbers(1000, vertices), np.zeros(vertices, np.int32), np.zeros(vertices, np.int32),
            np.zeros(2, np.int32), np.int32(16),
        ),
    )  # fmt: skip
