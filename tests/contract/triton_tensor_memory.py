"""Kernels that Triton 3.9 made for compute capability 10.0, whose results are exact.

`ptx_of_others` has their PTX. Triton's tiles are of 128 rows and 32 columns.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import cudadrv

_FOLDER = Path(__file__).with_name("ptx_of_others")
_SHARED_BYTES = 16384
_POSITIVE = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([_POSITIVE, -_POSITIVE])
"""The floats of 4 bits."""


def launch(
    context: cudadrv.Context, stream: cudadrv.Stream, name: str, blocks: int, *arguments: object
) -> None:
    """A kernel of the file `triton_NAME.ptx`."""
    config = cudadrv.LaunchConfig(blocks, 128, shared_bytes=_SHARED_BYTES)
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
