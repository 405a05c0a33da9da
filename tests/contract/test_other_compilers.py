"""PTX that other compilers made, as their packages would hand it over.

`ptx_of_others` holds what Triton 3.9 and Numba 0.68 made of the kernels that the tests describe;
`test_tensor_memory.py` has those for compute capability 10.0.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import cudadrv

_FOLDER = Path(__file__).with_name("ptx_of_others")
Floats = NDArray[np.float32]


@pytest.fixture(scope="module")
def hopper(context: cudadrv.Context) -> cudadrv.Context:
    if context.device.compute_capability != (9, 0):
        pytest.skip("needs a device of compute capability 9.0 and no other")
    return context


def launch(
    context: cudadrv.Context,
    stream: cudadrv.Stream,
    name: str,
    config: cudadrv.LaunchConfig,
    *arguments: object,
) -> None:
    file, kernel = name.split(":")
    with context.load_module((_FOLDER / f"{file}.ptx").read_text()) as module:
        module.kernel(kernel).launch(stream, config, *arguments)
        stream.synchronize()


def test_triton_softmax_of_rows(hopper: cudadrv.Context, stream: cudadrv.Stream) -> None:
    x = np.random.default_rng(1).standard_normal((8, 300)).astype(np.float32)
    out = stream.empty(x.shape, "f4")
    config = cudadrv.LaunchConfig(8, 128, shared_bytes=16)
    launch(hopper, stream, "triton_softmax:softmax", config, stream.to_device(x), out, 300, 0, 0)
    e = np.exp(x.astype(np.float64))
    assert np.allclose(stream.to_host(out), e / e.sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.slow
def test_triton_product_by_warpgroups(hopper: cudadrv.Context, stream: cudadrv.Stream) -> None:
    # Tiles of 64 x 64, k in steps of 32, through cp.async and wgmma.
    a, b = np.random.default_rng(2).integers(-9, 10, (2, 128, 128)).astype(np.float16)
    out = stream.empty((128, 128), "f4")
    config = cudadrv.LaunchConfig((2, 2), 128, shared_bytes=16384)
    launch(
        hopper,
        stream,
        "triton_product:matmul",
        config,
        stream.to_device(a),
        stream.to_device(b),
        out,
        128,
        128,
        128,
        0,
        0,
    )
    assert np.array_equal(stream.to_host(out), a.astype(np.float32) @ b.astype(np.float32))


def test_numba_norms_of_rows(hopper: cudadrv.Context, stream: cudadrv.Stream) -> None:
    # Numba passes an array as: two unused words, elements, bytes of one, address, shape, strides.
    x = np.random.default_rng(3).standard_normal((5, 1000)).astype(np.float32)
    given, out = stream.to_device(x), stream.empty(5, "f4")
    matrix = (0, 0, x.size, 4, given, *x.shape, *x.strides)
    vector = (0, 0, 5, 4, out, 5, 4)
    config = cudadrv.LaunchConfig(5, 128)
    launch(hopper, stream, "numba_norms:norms", config, *matrix, *vector)
    found: Floats = stream.to_host(out)
    assert np.allclose(found, np.linalg.norm(x.astype(np.float64), axis=1), rtol=1e-6)
