"""The linear algebra by cuBLAS and cuSOLVER, through nvmath-python's bindings.

Row-major matrices are the column-major transposes that the libraries expect, so every call below
is the transposed equation. cuBLAS and cuSOLVER manuals: cublas<t>gemm, gemv, syrk, trsm, dgmm;
cusolverDn<t>potrf.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections import deque
from collections.abc import Callable
from ctypes import addressof
from functools import partial
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

import numpy as np

from ..errors import DriverCallFailed, RuntimeDependencyUnavailable, StreamCaptureUnsupportedError
from ..memory.array import AnyDeviceArray
from ._nvmath import Libraries, load_libraries

if TYPE_CHECKING:
    from ..stream import Context, Stream

# cublasFillMode_t, cublasSideMode_t, cublasDiagType_t; cublasOperation_t is 1 for a transpose.
_UPPER: Final = 1
_LEFT: Final = 0
_RIGHT: Final = 1
_NON_UNIT: Final = 0
_P = ParamSpec("_P")
_R = TypeVar("_R")


class LibraryHandle:
    """A library's handle, used by one owner at a time."""

    __slots__ = ("_idle", "value")

    def __init__(self, value: int, idle: deque[int]) -> None:
        self.value: int = value
        self._idle = idle

    @classmethod
    def take(cls, library: str, context: Context, create: Callable[[], int]) -> LibraryHandle:
        """Return an idle handle of the context, or a new one."""
        idle = _idle.of(context, library)
        try:
            return cls(idle.pop(), idle)
        except IndexError:
            return cls(create(), idle)

    def release(self) -> None:
        """Return the handle for reuse; this calls no library, so a finalizer may call it."""
        self._idle.append(self.value)


class _Idle:
    """Idle handles, by context and library.

    Bounded by the handles in use at once; those of a destroyed context are dropped with it.
    """

    def __init__(self) -> None:
        self.by_context: weakref.WeakKeyDictionary[Context, dict[str, deque[int]]] = (
            weakref.WeakKeyDictionary()
        )

    def of(self, context: Context, library: str) -> deque[int]:
        """Return the idle handles of a library on a context."""
        # Each step is atomic: no lock that a finalizer could meet.
        return self.by_context.setdefault(context, {}).setdefault(library, deque())


_idle: Final = _Idle()


class LibraryRoutines:
    """`Routines` on the libraries; a lock keeps threads apart, as their handles demand."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._lock = threading.RLock()
        self._libraries: Libraries | None = None
        self._blas: LibraryHandle | None = None
        self._solver: LibraryHandle | None = None

    def warm_up(self) -> None:
        """Make both handles."""
        with self._lock:
            self._blas_handle()
            self._solver_handle()

    def gemm(
        self,
        a: AnyDeviceArray,
        b: AnyDeviceArray,
        out: AnyDeviceArray,
        *,
        alpha: float,
        beta: float,
        a_transposed: bool,
        b_transposed: bool,
    ) -> None:
        """outᵀ = alpha · op(b)ᵀ · op(a)ᵀ + beta · outᵀ."""
        blas = self._loaded().cublas
        m, n = out.shape
        k = a.shape[0] if a_transposed else a.shape[1]
        alpha_scalar, beta_scalar = _scalar(alpha, out), _scalar(beta, out)
        self._call(
            blas.dgemm if _is_double(out) else blas.sgemm,
            self._blas_handle(),
            int(b_transposed),
            int(a_transposed),
            n,
            m,
            k,
            addressof(alpha_scalar),
            b.ptr,
            _leading(b),
            a.ptr,
            _leading(a),
            addressof(beta_scalar),
            out.ptr,
            _leading(out),
        )

    def gemv(
        self,
        a: AnyDeviceArray,
        x: AnyDeviceArray,
        out: AnyDeviceArray,
        *,
        alpha: float,
        beta: float,
        transposed: bool,
    ) -> None:
        """The stored matrix is aᵀ to the library, so its transpose flag is the other one."""
        blas = self._loaded().cublas
        rows, columns = a.shape
        alpha_scalar, beta_scalar = _scalar(alpha, out), _scalar(beta, out)
        if not x.size:
            # cuBLAS leaves `out` unchanged if the sum is empty.
            self._scale(out, beta)
            return
        self._call(
            blas.dgemv if _is_double(out) else blas.sgemv,
            self._blas_handle(),
            int(not transposed),
            columns,
            rows,
            addressof(alpha_scalar),
            a.ptr,
            _leading(a),
            x.ptr,
            1,
            addressof(beta_scalar),
            out.ptr,
            1,
        )

    def syrk(
        self,
        a: AnyDeviceArray,
        out: AnyDeviceArray,
        *,
        alpha: float,
        beta: float,
        transposed: bool,
    ) -> None:
        """The lower triangle by rows is the upper one by columns."""
        blas = self._loaded().cublas
        k = a.shape[0] if transposed else a.shape[1]
        alpha_scalar, beta_scalar = _scalar(alpha, out), _scalar(beta, out)
        self._call(
            blas.dsyrk if _is_double(out) else blas.ssyrk,
            self._blas_handle(),
            _UPPER,
            int(not transposed),
            out.shape[0],
            k,
            addressof(alpha_scalar),
            a.ptr,
            _leading(a),
            addressof(beta_scalar),
            out.ptr,
            _leading(out),
        )

    def trsm(self, factor: AnyDeviceArray, b: AnyDeviceArray, *, transposed: bool) -> None:
        """bᵀ = bᵀ · op(factor)⁻ᵀ, where the library sees factorᵀ, an upper triangle."""
        blas = self._loaded().cublas
        n = factor.shape[0]
        columns = b.size // n
        one = _scalar(1.0, b)
        self._call(
            blas.dtrsm if _is_double(b) else blas.strsm,
            self._blas_handle(),
            _RIGHT,
            _UPPER,
            int(transposed),
            _NON_UNIT,
            columns,
            n,
            addressof(one),
            factor.ptr,
            n,
            b.ptr,
            columns,
        )

    def scale_rows(self, x: AnyDeviceArray, w: AnyDeviceArray, out: AnyDeviceArray) -> None:
        """outᵀ = xᵀ · diag(w)."""
        blas = self._loaded().cublas
        rows, columns = x.shape
        self._call(
            blas.ddgmm if _is_double(x) else blas.sdgmm,
            self._blas_handle(),
            _RIGHT,
            columns,
            rows,
            x.ptr,
            columns,
            w.ptr,
            1,
            out.ptr,
            columns,
        )

    def potrf(self, a: AnyDeviceArray) -> int:
        """The lower triangle by rows is the upper one by columns; waits for devInfo."""
        solver = self._loaded().cusolver
        n, double = a.shape[0], _is_double(a)
        handle = self._solver_handle()
        size_of = solver.dpotrf_buffer_size if double else solver.spotrf_buffer_size
        room = self._call(size_of, handle, _UPPER, n, a.ptr, n)
        with self._stream.empty(room, a.dtype) as work, self._stream.zeros(1, np.int32) as info:
            factorise = solver.dpotrf if double else solver.spotrf
            self._call(factorise, handle, _UPPER, n, a.ptr, n, work.ptr, room, info.ptr)
            order = int(self._stream.to_host(info)[0])
        if order < 0:
            raise DriverCallFailed(f"cusolverDn potrf rejected its argument {-order}")
        return order

    def _scale(self, out: AnyDeviceArray, beta: float) -> None:
        blas = self._loaded().cublas
        if beta == 0.0:
            self._stream.fill(out, 0)
            return
        with self._stream.to_device(np.full(out.size, beta, out.dtype)) as factors:
            self._call(
                blas.ddgmm if _is_double(out) else blas.sdgmm,
                self._blas_handle(),
                _LEFT,
                out.size,
                1,
                out.ptr,
                out.size,
                factors.ptr,
                1,
                out.ptr,
                out.size,
            )

    def _call(self, function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Queue work of a library on the stream, once no other thread captures it.

        Raises:
            DriverCallFailed, RuntimeDependencyUnavailable: as `_locked`.
        """
        # Before the lock, which the capturing thread may need.
        return self._stream._handle.submit(partial(self._locked, function, *args, **kwargs))

    def _locked(self, function: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        """Call a library with the stream's context current.

        Raises:
            DriverCallFailed: the library returned an error.
            RuntimeDependencyUnavailable: the library is not installed.
        """
        libraries = self._loaded()
        with self._lock:
            try:
                return self._stream.context._handle.call(function, *args, **kwargs)
            except libraries.failures as error:
                name = getattr(function, "__name__", repr(function))
                raise DriverCallFailed.of(error, f"{name} on {self._stream!r}: {error}") from error
            except RuntimeError as error:  # the bindings found no library to call
                raise RuntimeDependencyUnavailable(
                    f"linear algebra found nvmath-python, but not cuBLAS or cuSOLVER: {error}\n"
                    "  pip install nvmath-python[cu13], or [cu12] for CUDA 12"
                ) from error

    def _loaded(self) -> Libraries:
        if self._libraries is None:
            self._libraries = load_libraries()
        return self._libraries

    def _blas_handle(self) -> int:
        with self._lock:
            if self._blas is None:
                blas = self._loaded().cublas
                self._blas = self._new_handle("cublas", blas.create, blas.set_stream)
            return self._blas.value

    def _solver_handle(self) -> int:
        with self._lock:
            if self._solver is None:
                solver = self._loaded().cusolver
                self._solver = self._new_handle("cusolverDn", solver.create, solver.set_stream)
            return self._solver.value

    def _new_handle(
        self, library: str, create: Callable[[], int], set_stream: Callable[[int, int], None]
    ) -> LibraryHandle:
        stream = self._stream
        if stream.capturing:
            raise StreamCaptureUnsupportedError(
                f"the first use of {library} in a capture: call LinearAlgebra.warm_up before it"
            )
        handle = LibraryHandle.take(library, stream.context, lambda: self._locked(create))
        weakref.finalize(self, handle.release).atexit = False
        self._locked(set_stream, handle.value, int(stream.handle))
        return handle


def _is_double(array: AnyDeviceArray) -> bool:
    return bool(array.dtype == np.float64)


def _leading(array: AnyDeviceArray) -> int:
    """Return the leading dimension; the libraries require 1 even if there are no elements."""
    return max(array.shape[1], 1)


def _scalar(value: float, like: AnyDeviceArray) -> ctypes.c_float | ctypes.c_double:
    """Return a factor in host memory, which the call reads."""
    return ctypes.c_double(value) if _is_double(like) else ctypes.c_float(value)
