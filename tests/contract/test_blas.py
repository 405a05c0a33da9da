from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import cudadrv
from cudadrv.blas import LinearAlgebra, NotPositiveDefiniteError
from cudadrv.errors import (
    CudadrvError,
    DTypeError,
    InvalidValueError,
    StreamCaptureUnsupportedError,
    WrongDeviceError,
)
from tests.rows import all_rows
from tests.several_threads import all_at_once

# float32 or float64, as the test's parameter says.
Array = npt.NDArray[Any]
TOLERANCE = {"f4": 2e-4, "f8": 1e-11}
DTYPES = pytest.mark.parametrize("dtype", ["f4", "f8"])


@pytest.fixture
def algebra(stream: cudadrv.Stream) -> LinearAlgebra:
    if not stream.context.device.is_emulated:
        pytest.importorskip("nvmath")
    return LinearAlgebra.for_stream(stream)


def random(shape: int | tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    result: Array = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    return result


def positive_definite(n: int, dtype: str) -> Array:
    a = random((n, n), "f8", n)
    result: Array = (a @ a.T + n * np.eye(n)).astype(dtype)
    return result


def assert_near(found: Array, expected: Array, dtype: str) -> None:
    assert found.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    assert float(np.abs(found - expected).max(initial=0.0)) <= TOLERANCE[dtype] * scale


@all_rows
@DTYPES
@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 1, 1), (3, 5, 2), (64, 33, 17), (5, 0, 3), (0, 4, 2)]
)
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_gemm_is_the_row_major_product(
    stream: cudadrv.Stream,
    algebra: LinearAlgebra,
    dtype: str,
    m: int,
    k: int,
    n: int,
    transpose_a: bool,
    transpose_b: bool,
) -> None:
    a = random((k, m) if transpose_a else (m, k), dtype, 1)
    b = random((n, k) if transpose_b else (k, n), dtype, 2)
    c = random((m, n), dtype, 3)
    product = (a.T if transpose_a else a) @ (b.T if transpose_b else b)
    out = stream.to_device(np.full((m, n), np.nan, dtype))
    flags = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    algebra.gemm(stream.to_device(a), stream.to_device(b), out, **flags)
    assert_near(stream.to_host(out), product, dtype)
    out = stream.to_device(c)
    algebra.gemm(
        stream.to_device(a),
        stream.to_device(b),
        out,
        alpha=-0.5,
        beta=2.0,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )
    assert_near(stream.to_host(out), -0.5 * product + 2 * c, dtype)


@DTYPES
@pytest.mark.parametrize(("m", "n"), [(1, 1), (7, 3), (3, 40), (4, 0)])
@pytest.mark.parametrize("transpose", [False, True])
def test_gemv_is_the_row_major_product(
    stream: cudadrv.Stream, algebra: LinearAlgebra, dtype: str, m: int, n: int, transpose: bool
) -> None:
    a = random((n, m) if transpose else (m, n), dtype, 1)
    x, y = random(n, dtype, 2), random(m, dtype, 3)
    product = (a.T if transpose else a) @ x
    out = stream.to_device(np.full(m, np.nan, dtype))
    algebra.gemv(stream.to_device(a), stream.to_device(x), out, transpose=transpose)
    assert_near(stream.to_host(out), product, dtype)
    out = stream.to_device(y)
    algebra.gemv(
        stream.to_device(a), stream.to_device(x), out, alpha=3.0, beta=-1.0, transpose=transpose
    )
    assert_near(stream.to_host(out), 3 * product - y, dtype)


@DTYPES
@pytest.mark.parametrize("transpose", [False, True])
def test_syrk_writes_the_lower_triangle_alone(
    stream: cudadrv.Stream, algebra: LinearAlgebra, dtype: str, transpose: bool
) -> None:
    a = random((9, 6), dtype, 1)
    gram = a.T @ a if transpose else a @ a.T
    n = len(gram)
    before = random((n, n), dtype, 2)
    out = stream.to_device(before)
    algebra.syrk(stream.to_device(a), out, alpha=2.0, beta=0.5, transpose=transpose)
    expected = np.triu(before, 1) + np.tril(2 * gram + 0.5 * before)
    assert_near(stream.to_host(out), expected.astype(dtype), dtype)
    out = stream.to_device(np.full((n, n), np.nan, dtype))
    algebra.syrk(stream.to_device(a), out, transpose=transpose)
    found = stream.to_host(out)
    assert_near(np.tril(found[np.tril_indices(n)]), np.tril(gram[np.tril_indices(n)]), dtype)
    assert np.isnan(found[np.triu_indices(n, 1)]).all()


@DTYPES
@pytest.mark.parametrize("with_work", [False, True])
@pytest.mark.parametrize(("n", "p"), [(1, 1), (50, 7), (7, 50), (0, 3)])
def test_xtwx_accepts_weights_of_any_sign(
    stream: cudadrv.Stream, algebra: LinearAlgebra, dtype: str, n: int, p: int, with_work: bool
) -> None:
    x, w = random((n, p), dtype, 1), random(n, dtype, 2)
    out = stream.to_device(np.full((p, p), np.nan, dtype))
    work = stream.empty((n, p), dtype) if with_work else None
    algebra.xtwx(stream.to_device(x), stream.to_device(w), out, work=work)
    assert_near(stream.to_host(out), x.T @ (w[:, None] * x), dtype)


@DTYPES
@pytest.mark.parametrize("n", [1, 2, 31, 130])
def test_potrf_gives_the_lower_factor_and_potrs_solves_with_it(
    stream: cudadrv.Stream, algebra: LinearAlgebra, dtype: str, n: int
) -> None:
    a = positive_definite(n, dtype)
    factor = stream.to_device(a)
    algebra.potrf(factor)
    found = stream.to_host(factor)
    lower = np.tril(found)
    assert_near(lower @ lower.T, a, dtype)
    assert np.array_equal(np.triu(found, 1), np.triu(a, 1))  # not touched

    for shape in ((n, 3), (n,)):
        b = random(shape, dtype, 5)
        solution = stream.to_device(b)
        algebra.potrs(factor, solution)
        assert_near(a @ stream.to_host(solution), b, dtype)


@DTYPES
@pytest.mark.parametrize("transpose", [False, True])
def test_trsm_solves_with_the_lower_triangle(
    stream: cudadrv.Stream, algebra: LinearAlgebra, dtype: str, transpose: bool
) -> None:
    factor = positive_definite(12, dtype)
    b = random((12, 4), dtype, 1)
    solution = stream.to_device(b)
    algebra.trsm(stream.to_device(factor), solution, transpose=transpose)
    lower = np.tril(factor)
    assert_near((lower.T if transpose else lower) @ stream.to_host(solution), b, dtype)


@DTYPES
@pytest.mark.parametrize("index", [0, 1, 17, 39])
def test_a_matrix_without_a_factor_is_reported_with_the_row(
    stream: cudadrv.Stream, algebra: LinearAlgebra, dtype: str, index: int
) -> None:
    a = positive_definite(40, dtype)
    a[index, index] = -1
    with pytest.raises(NotPositiveDefiniteError, match=f"of order 40 .* row {index}") as caught:
        algebra.potrf(stream.to_device(a))
    assert caught.value.index == index
    algebra.potrf(stream.to_device(positive_definite(8, dtype)))


def test_shapes_dtypes_and_places_are_checked(
    stream: cudadrv.Stream, algebra: LinearAlgebra
) -> None:
    def new(*shape: int) -> cudadrv.DeviceArray[np.float64]:
        return stream.zeros(shape, np.float64)

    square = new(3, 3)
    refused: list[tuple[Callable[[], None], str]] = [
        (lambda: algebra.gemm(new(2, 3), new(4, 2), new(2, 2)), "inner extents differ"),
        (lambda: algebra.gemm(new(2, 3), new(3, 4), new(4, 2)), r"gives \(2, 4\), but out is"),
        (lambda: algebra.gemm(new(3), new(3, 4), new(3, 4)), "a matrix is needed"),
        (lambda: algebra.gemm(square, new(3, 3), square), "overlaps the input"),
        (lambda: algebra.gemv(square, new(4), new(3)), r"takes x \(3,\), not \(4,\)"),
        (lambda: algebra.gemv(square, new(3), new(4)), "gemv gives"),
        (lambda: algebra.syrk(new(2, 3), new(3, 3)), r"syrk gives \(2, 2\)"),
        (lambda: algebra.xtwx(new(5, 3), new(4), square), r"takes w \(5,\)"),
        (lambda: algebra.xtwx(new(5, 3), new(5), new(5, 5)), r"xtwx gives \(3, 3\)"),
        (lambda: algebra.potrf(new(2, 3)), "must be square"),
        (lambda: algebra.trsm(square, new(4, 2)), "not \\(4, 2\\)"),
        (lambda: algebra.potrs(new(2, 3), new(2)), "must be square"),
    ]
    for call, text in refused:
        with pytest.raises(InvalidValueError, match=text):
            call()
    with pytest.raises(DTypeError, match="float32 or float64"):
        algebra.gemm(square, stream.zeros((3, 3), "f4"), new(3, 3))
    with pytest.raises(DTypeError):
        algebra.potrf(stream.zeros((3, 3), "i4"))


def test_an_array_of_another_device_is_rejected(
    algebra: LinearAlgebra, second_context: cudadrv.Context
) -> None:
    there = second_context.default_stream.zeros((2, 2), "f8")
    with pytest.raises(WrongDeviceError):
        algebra.potrf(there)


def test_arrays_of_other_streams_are_waited_for(
    context: cudadrv.Context, stream: cudadrv.Stream, algebra: LinearAlgebra
) -> None:
    with context.new_stream() as other:
        a = random((64, 64), "f8")
        for _ in range(5):
            left, out = other.to_device(a), stream.empty((64, 64), "f8")
            algebra.gemm(left, stream.to_device(np.eye(64)), out)
            left.close()
            assert_near(stream.to_host(out), a, "f8")


def test_a_stream_has_one_linear_algebra(stream: cudadrv.Stream, algebra: LinearAlgebra) -> None:
    assert LinearAlgebra.for_stream(stream) is algebra
    assert algebra.stream is stream


def test_what_a_capture_cannot_record_is_rejected_and_harms_nothing(
    stream: cudadrv.Stream, algebra: LinearAlgebra
) -> None:
    matrix = stream.to_device(positive_definite(4, "f8"))
    weights, out = stream.zeros(4, "f8"), stream.zeros((4, 4), "f8")
    with stream.capture() as graph:
        with pytest.raises(StreamCaptureUnsupportedError, match="potrf in a capture"):
            algebra.potrf(matrix)
        with pytest.raises(StreamCaptureUnsupportedError, match="without work"):
            algebra.xtwx(matrix, weights, out)
        stream.fill(weights.view("u1"), 1)
    graph.instantiate().launch(stream)
    assert (stream.to_host(weights.view("u1")) == 1).all()
    algebra.potrf(matrix)


def test_threads_share_one_linear_algebra(stream: cudadrv.Stream, algebra: LinearAlgebra) -> None:
    failures: list[CudadrvError | AssertionError] = []

    def work(seed: int) -> None:
        a, b = random((16, 16), "f8", seed), random((16, 16), "f8", seed + 100)
        try:
            for _ in range(3):
                out = stream.empty((16, 16), "f8")
                algebra.gemm(stream.to_device(a), stream.to_device(b), out)
                assert_near(stream.to_host(out), a @ b, "f8")
        except (CudadrvError, AssertionError) as error:
            failures.append(error)

    all_at_once([partial(work, seed) for seed in range(8)])
    assert not failures
