from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt
import pytest

import cudadrv
from cudadrv import CudaClient
from cudadrv.client.sobol import (
    SOBOL_MAX_DIMENSIONS,
    SobolDimensionError,
    SobolDvCache,
    direction_vectors,
    joe_kuo,
)
from cudadrv.errors import RuntimeDependencyUnavailable, StreamCaptureUnsupportedError


@pytest.fixture
def scipy() -> None:
    pytest.importorskip("scipy")


def sequence(vectors: npt.NDArray[np.uint32], count: int) -> npt.NDArray[np.float64]:
    """The first points in Gray code order, which is SciPy's."""
    numbers = np.zeros((count, len(vectors)), np.uint32)
    for n in range(1, count):
        lowest_zero = (n - 1 ^ n).bit_length() - 1
        numbers[n] = numbers[n - 1] ^ vectors[:, lowest_zero]
    return numbers / 2.0**32


@pytest.mark.slow
@pytest.mark.usefixtures("scipy")
@pytest.mark.parametrize(("dimension", "count"), [(1, 4096), (2, 4096), (40, 2048), (21201, 32)])
def test_the_points_are_scipys(dimension: int, count: int) -> None:
    qmc = pytest.importorskip("scipy.stats.qmc")
    expected = qmc.Sobol(dimension, scramble=False, bits=32).random(count)
    assert np.array_equal(sequence(direction_vectors(dimension), count), expected)


@pytest.mark.usefixtures("scipy")
def test_vectors_are_32_bits_in_c_order_and_do_not_depend_on_the_dimension() -> None:
    most = direction_vectors(SOBOL_MAX_DIMENSIONS)
    assert (most.shape, most.dtype) == ((21201, 32), np.dtype(np.uint32))
    assert most.flags.c_contiguous
    # Each vector has its leading one where it belongs.
    lowest = most & (~most + np.uint32(1))
    assert (lowest == np.uint32(1) << np.arange(31, -1, -1, dtype=np.uint32)).all()
    for dimension in (1, 2, 3, 17, 1000):
        assert np.array_equal(direction_vectors(dimension), most[:dimension])


@pytest.mark.parametrize(
    ("dimension", "reason"),
    [
        (0, "Sobol dimension must be at least 1"),
        (-5, "Sobol dimension must be at least 1"),
        (21202, "Sobol dimension 21202 exceeds maximum supported value 21201"),
    ],
)
def test_a_dimension_out_of_bounds_is_rejected(dimension: int, reason: str) -> None:
    with pytest.raises(SobolDimensionError) as caught:
        CudaClient(0).warmup_sobol(dimension)
    assert (caught.value.arg, caught.value.reason) == ("dimension", reason)
    assert isinstance(caught.value, ValueError)


@pytest.mark.usefixtures("scipy")
def test_a_warm_up_uploads_once_and_the_address_stays() -> None:
    client = CudaClient(0)
    client.warmup_sobol(5)
    array = client.sobol_dv_cache.get(5)
    assert array is not None
    assert np.array_equal(client.stream.to_host(array), direction_vectors(5))
    client.warmup_sobol(5)
    assert client.sobol_dv_cache.get(5) is array
    assert client.sobol_dv_cache.get(6) is None


@pytest.mark.usefixtures("scipy")
def test_a_capture_finds_what_was_warmed_up_and_rejects_the_rest() -> None:
    client = CudaClient(0)
    client.warmup_sobol(7)
    vectors = client.sobol_dv_cache.get(7)
    assert vectors is not None
    out = client.stream.zeros((7, 32), np.uint32)

    def work(client: CudaClient) -> None:
        client.warmup_sobol(7)
        client.stream.copy(out, vectors)
        with pytest.raises(StreamCaptureUnsupportedError, match="call warmup_sobol before"):
            client.warmup_sobol(8)

    client.capture_graph([vectors], [out], work).launch()
    assert np.array_equal(client.stream.to_host(out), direction_vectors(7))


def test_without_scipy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    joe_kuo.cache_clear()
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(RuntimeDependencyUnavailable, match=r"pip install cudadrv\[sobol\]"):
        direction_vectors(3)
    cache = SobolDvCache(cudadrv.cuda_context_for(0).default_stream)
    with pytest.raises(RuntimeDependencyUnavailable):
        cache.warmup(3)
    assert len(cache) == 0
