"""Swizzles of larger atoms than 16 bytes: where PTX says that they put a box."""

from __future__ import annotations

import numpy as np

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.tensor_map import TensorMap, TensorSwizzle

from .conftest import compile_module
from .tensor_kernels import BOXES

# PTX ISA, "Swizzling Modes": which 16 bytes of a row of 128 lie where; the rows repeat.
TABLES = {
    "BYTES_128_ATOM_32": (
        (0, 1, 2, 3, 4, 5, 6, 7),
        (2, 3, 0, 1, 6, 7, 4, 5),
        (4, 5, 6, 7, 0, 1, 2, 3),
        (6, 7, 4, 5, 2, 3, 0, 1),
    ),
    "BYTES_128_ATOM_64": ((0, 1, 2, 3, 4, 5, 6, 7), (4, 5, 6, 7, 0, 1, 2, 3)),
}


def require_atoms_in_place(context: cudadrv.Context, name: str) -> None:
    """Copy a box with a swizzle and look where its pieces lie, and bring it back."""
    stream = context.default_stream
    x = np.random.default_rng(3).integers(1, 99, (20, 96)).astype(np.float16)
    array = stream.to_device(x)
    tensor_map = TensorMap(array, (16, 64), swizzle=TensorSwizzle[name])
    kernels = compile_module(context, BOXES)
    total = tensor_map.shared_nbytes
    out = stream.empty(total, np.uint8)
    config = LaunchConfig(1, 64, shared_bytes=total + 8)
    kernels.kernel("dump").launch(stream, config, tensor_map, out, 8, 2, total, total)
    pieces = np.ascontiguousarray(x[2:18, 8:72]).view(np.uint8).reshape(16, 8, 16)
    table = np.array(TABLES[name])
    expected = pieces[np.arange(16)[:, None], table[np.arange(16) % len(table)]]
    assert np.array_equal(stream.to_host(out).reshape(16, 8, 16), expected)
    kernels.kernel("put").launch(stream, config, tensor_map, 24, 3, total, total, False)
    moved = x.copy()
    moved[3:19, 24:88] = x[:16, :64]
    assert np.array_equal(stream.to_host(array), moved)
