"""Types of nvmath.bindings.cublas, for the functions that cudadrv calls (nvmath-python 1.0)."""

class cuBLASError(Exception):
    def __init__(self, status: int) -> None: ...

def create() -> int: ...
def destroy(handle: int) -> None: ...
def set_stream(handle: int, stream_id: int) -> None: ...
def sgemm(
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
) -> None: ...
def dgemm(
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
) -> None: ...
def sgemv(
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
) -> None: ...
def dgemv(
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
) -> None: ...
def ssyrk(
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
) -> None: ...
def dsyrk(
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
) -> None: ...
def strsm(
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
) -> None: ...
def dtrsm(
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
) -> None: ...
def sdgmm(
    handle: int, mode: int, m: int, n: int, a: int, lda: int, x: int, incx: int, c: int, ldc: int
) -> None: ...
def ddgmm(
    handle: int, mode: int, m: int, n: int, a: int, lda: int, x: int, incx: int, c: int, ldc: int
) -> None: ...
