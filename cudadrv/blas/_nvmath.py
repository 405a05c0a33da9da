"""The seam to cuBLAS and cuSOLVER: the functions of nvmath-python's bindings in use.

Addresses and handles are integers. The declarations are in the cuBLAS and cuSOLVER manuals, under
``cublas<t>gemm`` and ``cusolverDn<t>potrf`` and so on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..errors import RuntimeDependencyUnavailable


class CublasApi(Protocol):
    """The functions of ``nvmath.bindings.cublas`` in use."""

    def create(self) -> int: ...
    def destroy(self, handle: int, /) -> None: ...
    def set_stream(self, handle: int, stream_id: int, /) -> None: ...
    def sgemm(
        self,
        handle: int,
        transa: int,
        transb: int,
        m: int,
        n: int,
        k: int,
        alpha: int,
        a: int,
        lda: int,
        b: int,
        ldb: int,
        beta: int,
        c: int,
        ldc: int,
        /,
    ) -> None: ...
    def dgemm(
        self,
        handle: int,
        transa: int,
        transb: int,
        m: int,
        n: int,
        k: int,
        alpha: int,
        a: int,
        lda: int,
        b: int,
        ldb: int,
        beta: int,
        c: int,
        ldc: int,
        /,
    ) -> None: ...
    def sgemv(
        self,
        handle: int,
        trans: int,
        m: int,
        n: int,
        alpha: int,
        a: int,
        lda: int,
        x: int,
        incx: int,
        beta: int,
        y: int,
        incy: int,
        /,
    ) -> None: ...
    def dgemv(
        self,
        handle: int,
        trans: int,
        m: int,
        n: int,
        alpha: int,
        a: int,
        lda: int,
        x: int,
        incx: int,
        beta: int,
        y: int,
        incy: int,
        /,
    ) -> None: ...
    def ssyrk(
        self,
        handle: int,
        uplo: int,
        trans: int,
        n: int,
        k: int,
        alpha: int,
        a: int,
        lda: int,
        beta: int,
        c: int,
        ldc: int,
        /,
    ) -> None: ...
    def dsyrk(
        self,
        handle: int,
        uplo: int,
        trans: int,
        n: int,
        k: int,
        alpha: int,
        a: int,
        lda: int,
        beta: int,
        c: int,
        ldc: int,
        /,
    ) -> None: ...
    def strsm(
        self,
        handle: int,
        side: int,
        uplo: int,
        trans: int,
        diag: int,
        m: int,
        n: int,
        alpha: int,
        a: int,
        lda: int,
        b: int,
        ldb: int,
        /,
    ) -> None: ...
    def dtrsm(
        self,
        handle: int,
        side: int,
        uplo: int,
        trans: int,
        diag: int,
        m: int,
        n: int,
        alpha: int,
        a: int,
        lda: int,
        b: int,
        ldb: int,
        /,
    ) -> None: ...
    def sdgmm(
        self,
        handle: int,
        mode: int,
        m: int,
        n: int,
        a: int,
        lda: int,
        x: int,
        incx: int,
        c: int,
        ldc: int,
        /,
    ) -> None: ...
    def ddgmm(
        self,
        handle: int,
        mode: int,
        m: int,
        n: int,
        a: int,
        lda: int,
        x: int,
        incx: int,
        c: int,
        ldc: int,
        /,
    ) -> None: ...


class CusolverApi(Protocol):
    """The functions of ``nvmath.bindings.cusolverDn`` in use."""

    def create(self) -> int: ...
    def destroy(self, handle: int, /) -> None: ...
    def set_stream(self, handle: int, stream_id: int, /) -> None: ...
    def spotrf_buffer_size(self, handle: int, uplo: int, n: int, a: int, lda: int, /) -> int: ...
    def dpotrf_buffer_size(self, handle: int, uplo: int, n: int, a: int, lda: int, /) -> int: ...
    def spotrf(
        self,
        handle: int,
        uplo: int,
        n: int,
        a: int,
        lda: int,
        workspace: int,
        lwork: int,
        dev_info: int,
        /,
    ) -> None: ...
    def dpotrf(
        self,
        handle: int,
        uplo: int,
        n: int,
        a: int,
        lda: int,
        workspace: int,
        lwork: int,
        dev_info: int,
        /,
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Libraries:
    """Both libraries, and the errors that their bindings raise."""

    cublas: CublasApi
    cusolver: CusolverApi
    failures: tuple[type[Exception], ...]


def load_libraries() -> Libraries:
    """Return the bindings; the libraries themselves are loaded at the first call.

    Raises:
        RuntimeDependencyUnavailable: nvmath-python is not installed.
    """
    try:
        from nvmath.bindings import cublas, cusolver, cusolverDn
    except ImportError as error:
        raise RuntimeDependencyUnavailable(
            f"linear algebra needs cuBLAS and cuSOLVER through nvmath-python ({error}): "
            "pip install cudadrv[blas]"
        ) from error
    return Libraries(cublas, cusolverDn, (cublas.cuBLASError, cusolver.cuSOLVERError))
