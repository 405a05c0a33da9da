"""The calls to cuBLAS and cuSOLVER, against a reference of the two; no GPU is needed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import cast

import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.blas import LinearAlgebra
from cudadrv.blas._nvmath import CublasApi, CusolverApi, Libraries, load_libraries
from cudadrv.blas.library import LibraryRoutines
from cudadrv.errors import (
    DriverCallFailed,
    RuntimeDependencyUnavailable,
    StreamCaptureUnsupportedError,
)
from tests.contract.test_blas import (
    test_a_matrix_without_a_factor_is_reported_with_the_row as test_potrf_failure,
    test_gemm_is_the_row_major_product as test_gemm,
    test_gemv_is_the_row_major_product as test_gemv,
    test_potrf_gives_the_lower_factor_and_potrs_solves_with_it as test_potrf,
    test_syrk_writes_the_lower_triangle_alone as test_syrk,
    test_trsm_solves_with_the_lower_triangle as test_trsm,
    test_xtwx_accepts_weights_of_any_sign as test_xtwx,
)

from .reference import LibraryError, Reference

__all__ = [
    "test_gemm",
    "test_gemv",
    "test_potrf",
    "test_potrf_failure",
    "test_syrk",
    "test_trsm",
    "test_xtwx",
]


@pytest.fixture
def stream() -> Iterator[cudadrv.Stream]:
    with emulator.session(), cudadrv.cuda_context_for(0).new_stream() as stream:
        yield stream


@pytest.fixture
def reference(stream: cudadrv.Stream) -> Reference:
    return Reference(stream)


@pytest.fixture
def algebra(stream: cudadrv.Stream, reference: Reference) -> LinearAlgebra:
    return on_reference(stream, reference)


def on_reference(stream: cudadrv.Stream, reference: Reference) -> LinearAlgebra:
    routines = LibraryRoutines(stream)
    # The reference answers every function of both by its name.
    routines._libraries = Libraries(
        cast(CublasApi, reference), cast(CusolverApi, reference), (LibraryError,)
    )
    algebra = LinearAlgebra(stream)
    algebra._routines = routines
    return algebra


def test_a_dropped_handle_is_used_again_on_its_next_stream(
    stream: cudadrv.Stream, reference: Reference
) -> None:
    for _ in range(5):
        with stream.context.new_stream() as other:
            reference.stream = other
            algebra = on_reference(other, reference)
            algebra.potrf(other.to_device([[4.0]]))
            algebra.gemv(other.zeros((2, 2), "f8"), other.zeros(2, "f8"), other.zeros(2, "f8"))
            del algebra
    assert reference.created == 2  # one a library


def test_handles_are_not_made_in_a_capture(
    stream: cudadrv.Stream, algebra: LinearAlgebra, reference: Reference
) -> None:
    a, x, y = stream.zeros((2, 2), "f8"), stream.zeros(2, "f8"), stream.zeros(2, "f8")
    with (
        stream.capture(),
        pytest.raises(StreamCaptureUnsupportedError, match=r"call LinearAlgebra\.warm_up before"),
    ):
        algebra.gemv(a, x, y)
    assert reference.created == 0
    algebra.warm_up()
    assert reference.created == 2


def test_a_librarys_error_is_typed(stream: cudadrv.Stream, algebra: LinearAlgebra) -> None:
    algebra.warm_up()
    reference = cast(LibraryRoutines, algebra._routines)._loaded().cublas
    cast(Reference, reference).streams.clear()
    with pytest.raises(DriverCallFailed, match="is not bound to the stream") as caught:
        algebra.gemv(stream.zeros((2, 2), "f8"), stream.zeros(2, "f8"), stream.zeros(2, "f8"))
    assert isinstance(caught.value.__cause__, LibraryError)


def test_without_the_bindings_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nvmath", "nvmath.bindings"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(RuntimeDependencyUnavailable, match=r"pip install cudadrv\[blas\]"):
        load_libraries()
