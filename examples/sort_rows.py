"""The rows of an image sorted by CUB: a block sorts a row by radix in shared memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import cudadrv

SOURCE = """
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_store.cuh>

constexpr int THREADS = 64, EACH = 4;  // a row has 256 values

extern "C" __global__ void sort_rows(unsigned* rows)
{
    using Sort = cub::BlockRadixSort<unsigned, THREADS, EACH>;
    __shared__ typename Sort::TempStorage storage;
    unsigned values[EACH];
    unsigned* row = rows + blockIdx.x * THREADS * EACH;
    cub::LoadDirectBlocked(threadIdx.x, row, values);
    Sort(storage).Sort(values, 0, 8);  // eight bits
    cub::StoreDirectBlocked(threadIdx.x, row, values);
}
"""
ROWS, COLUMNS = 64, 256
Rows = npt.NDArray[np.uint32]


def noise() -> Rows:
    """Values from 0 to 255, of another range in each row."""
    rng = np.random.default_rng(4)
    middle = 128 + 90 * np.sin(np.arange(ROWS) / 9)
    values = rng.normal(middle[:, None], 35, (ROWS, COLUMNS))
    return np.clip(values, 0, 255).astype(np.uint32)


def sorted_rows(rows: Rows) -> Rows:
    """Each row in ascending order."""
    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    kernel = context.compile(SOURCE).kernel("sort_rows")
    there = stream.to_device(rows)
    kernel.launch(stream, cudadrv.LaunchConfig(ROWS, 64), there)
    return stream.to_host(there)


def main() -> None:
    rows = noise()
    found = sorted_rows(rows)
    assert np.array_equal(found, np.sort(rows, axis=1))
    print(f"{ROWS} rows of {COLUMNS} values; the medians of the first: {found[:4, COLUMNS // 2]}")


if __name__ == "__main__":
    main()
