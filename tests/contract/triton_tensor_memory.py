"""Kernels that Triton 3.9 made for compute capability 10.0, whose results are exact.

`ptx_of_others` has their PTX. Their tiles are of 128 rows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import cudadrv
from cudadrv.tensor_map import TensorMap, TensorSwizzle

_FOLDER = Path(__file__).with_name("ptx_of_others")
_SHARED_BYTES = 16384
_POSITIVE = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([_POSITIVE, -_POSITIVE])
"""The floats of 4 bits."""
_SMALL = (0, 1, 2, 3, -1, -2, -3, -4)
_BITS_OF_SMALL = (0x00, 0x38, 0x40, 0x44, 0xB8, 0xC0, 0xC4, 0xC8)  # as e4m3


def launch(
    context: cudadrv.Context,
    stream: cudadrv.Stream,
    name: str,
    blocks: int,
    *arguments: object,
    shared_bytes: int = _SHARED_BYTES,
) -> None:
    """A kernel of the file `triton_NAME.ptx`."""
    config = cudadrv.LaunchConfig(blocks, 128, shared_bytes=shared_bytes)
    with context.load_module((_FOLDER / f"triton_{name}.ptx").read_text()) as module:
        # The last two are Triton's own: memory that these kernels do not use.
        module.kernel(name).launch(stream, config, *arguments, 0, 0)
        stream.synchronize()


def require_exact_chain(context: cudadrv.Context, stream: cudadrv.Stream) -> None:
    """max(q * k, 0) * v in one loop: the first product is the second one's A, in tensor memory."""
    rng = np.random.default_rng(3)
    q, k, v = (rng.integers(-3, 4, (rows, 32)).astype(np.float16) for rows in (256, 96, 96))
    out = stream.empty((256, 32), "f4")
    launch(context, stream, "chain", 2, *(stream.to_device(x) for x in (q, k, v)), out, 96)
    first = np.maximum(q.astype(np.float64) @ k.astype(np.float64).T, 0)
    assert np.array_equal(stream.to_host(out), first @ v.astype(np.float64))


def require_exact_scaled_product(context: cudadrv.Context, stream: cudadrv.Stream) -> None:
    """Floats of 4 bits with a factor for each 16 of a row, of `mxf4nvf4`."""
    rng = np.random.default_rng(4)
    factors: list[NDArray[np.float64]] = []
    arguments: list[object] = []
    for rows in (128, 32):
        bits = rng.integers(0, 16, (rows, 128)).astype(np.uint8)
        powers = rng.integers(-2, 3, (rows, 8))
        factors.append(E2M1[bits] * np.repeat(2.0**powers, 16, axis=1))
        arguments.append(stream.to_device(bits[:, ::2] | bits[:, 1::2] << np.uint8(4)))
        arguments.append(stream.to_device((powers + 7 << 3).astype(np.uint8)))  # of e4m3
    out = stream.empty((128, 32), "f4")
    launch(context, stream, "scaled", 1, *arguments, out, 128)
    assert np.array_equal(stream.to_host(out), factors[0] @ factors[1].T)


def require_exact_copied_factors(context: cudadrv.Context, stream: cudadrv.Stream) -> None:
    """Floats of 8 bits, which tensor maps bring, and factors that `tcgen05.cp` takes from there."""
    rng = np.random.default_rng(5)
    swizzle = TensorSwizzle.BYTES_128
    factors: list[NDArray[np.float64]] = []
    maps: list[object] = []
    for _ in range(2):
        small = rng.integers(0, 8, (128, 256))
        powers = rng.integers(-2, 3, (128, 8))
        factors.append(np.array(_SMALL)[small] * np.repeat(2.0**powers, 32, axis=1))
        rows = stream.to_device(np.array(_BITS_OF_SMALL, np.uint8)[small])
        # Four factors of a row beside each other, those of rows 32 further behind them.
        bits = (powers + 127).astype(np.uint8).reshape(1, 4, 32, 2, 4).transpose(0, 3, 2, 1, 4)
        blocks = stream.to_device(np.ascontiguousarray(bits).reshape(1, 1, 2, 2, 256))
        # Triton passes extents and strides behind each map.
        maps += [TensorMap(rows, (128, 128), swizzle=swizzle), 128, 256, 256, 1]
        maps += [TensorMap(blocks, (1, 1, 1, 2, 256)), 1, 1, 2, 2, 256, 1024, 1024, 512, 256, 1]
    out = stream.empty((128, 128), "f4")
    maps += [TensorMap(out, (128, 32), swizzle=swizzle), 128, 128, 128, 1]
    launch(context, stream, "copied", 1, *maps, 256, shared_bytes=65536)
    assert np.array_equal(stream.to_host(out), factors[0] @ factors[1].T)
