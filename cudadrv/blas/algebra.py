"""`LinearAlgebra`: the operations on device arrays, with their shapes checked."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from ptx.read_only import ReadOnly

from .. import border
from ..driver.handle import NotCopyable
from ..driver.stream import require_stream
from ..errors import CudadrvError, DTypeError, InvalidValueError, StreamCaptureUnsupportedError
from ..memory.array import AnyDeviceArray, DeviceArray
from ..memory.host_copy import ready
from ..memory.order import AnyMemory

if TYPE_CHECKING:
    from ..stream import Stream

_DTYPES: Final = (np.dtype(np.float32), np.dtype(np.float64))


class NotPositiveDefiniteError(CudadrvError):
    """A matrix has no Cholesky factor.

    Attributes:
        index: the row, from 0, at which the factorisation stopped: the leading minor of order
            index + 1 is not positive definite.
    """

    def __init__(self, order: int, index: int) -> None:
        super().__init__(
            f"the matrix of order {order} is not positive definite: its Cholesky factorisation "
            f"stopped at row {index}"
        )
        self.index = index


class Routines(Protocol):
    """The operations of `LibraryRoutines` and `HostRoutines`: row-major, in one stream's order.

    Arguments are checked. `transposed` flags refer to the stored matrix.
    """

    def warm_up(self) -> None:
        """Make the handles that the first call would make."""

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
        """out = alpha · op(a) · op(b) + beta · out."""

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
        """out = alpha · op(a) · x + beta · out."""

    def syrk(
        self,
        a: AnyDeviceArray,
        out: AnyDeviceArray,
        *,
        alpha: float,
        beta: float,
        transposed: bool,
    ) -> None:
        """The lower triangle of out = alpha · op(a) · op(a)ᵀ + beta · out."""

    def trsm(self, factor: AnyDeviceArray, b: AnyDeviceArray, *, transposed: bool) -> None:
        """b = op(factor)⁻¹ · b with a lower triangular factor."""

    def scale_rows(self, x: AnyDeviceArray, w: AnyDeviceArray, out: AnyDeviceArray) -> None:
        """out = diag(w) · x."""

    def potrf(self, a: AnyDeviceArray) -> int:
        """The lower Cholesky factor in the lower triangle of a; 0, or the order that failed."""
        ...


class _ByStream:
    """The `LinearAlgebra` of each stream, as long as it is used; bounded by the streams."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        # The value keeps its stream, and lives as long as it is used.
        self.known: weakref.WeakValueDictionary[Stream, LinearAlgebra] = (
            weakref.WeakValueDictionary()
        )


_by_stream: Final = _ByStream()


class LinearAlgebra(NotCopyable):
    """Dense linear algebra on row-major float32 or float64 device arrays, in one stream's order.

    On a GPU it is cuBLAS and cuSOLVER through nvmath-python (extra ``blas``); the handles are made
    on first use, or by `warm_up`. On the emulator it is NumPy on copies of the arrays. All arrays
    of a call have one dtype and lie on the stream's device; the result must not overlap an input.
    It may be used from any thread.

    Raises:
        RuntimeDependencyUnavailable: at the first operation, where the extra is not installed.
    """

    __slots__ = ("__weakref__", "_routines", "_stream")

    stream: ReadOnly[Stream] = ReadOnly("_stream")

    def __init__(self, stream: Stream) -> None:
        require_stream("LinearAlgebra: stream", stream)
        self._stream = stream
        self._routines = _routines_for(stream)

    @classmethod
    def for_stream(cls, stream: Stream) -> LinearAlgebra:
        """Return the linear algebra of a stream; the same object as long as it is used."""
        require_stream("LinearAlgebra.for_stream: stream", stream)
        with _by_stream.lock:
            algebra = _by_stream.known.get(stream)
            if algebra is None:
                # A finalizer may have come here while this one was made.
                algebra = _by_stream.known.setdefault(stream, cls(stream))
        return algebra

    def __repr__(self) -> str:
        return f"<LinearAlgebra on {self._stream!r}>"

    def warm_up(self) -> None:
        """Make the handles now: before a capture, where they cannot be made, or a measurement.

        Raises:
            ClosedError: the stream was closed.
        """
        self._stream._handle.raw  # noqa: B018  # raises once it is closed
        self._routines.warm_up()

    def gemm(
        self,
        a: AnyDeviceArray,
        b: AnyDeviceArray,
        out: AnyDeviceArray,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        transpose_a: bool = False,
        transpose_b: bool = False,
    ) -> None:
        """out = alpha · op(a) · op(b) + beta · out, with shapes (m, k), (k, n) and (m, n).

        Raises:
            InvalidValueError: the shapes do not match, or `out` overlaps an input.
            DTypeError: the dtypes differ, or are not float32 or float64.
            WrongDeviceError: an array is on another device.
        """
        _arrays("gemm", a=a, b=b, out=out)
        alpha, beta = border.real("gemm: alpha", alpha), border.real("gemm: beta", beta)
        (m, k), (k2, n) = _shape(a, "a", transpose_a), _shape(b, "b", transpose_b)
        if k != k2:
            raise InvalidValueError(f"gemm of a {(m, k)} and b {(k2, n)}: the inner extents differ")
        if out.shape != (m, n):
            raise InvalidValueError(f"gemm gives {(m, n)}, but out is {out.shape}")
        memories = self._order((a, b), (out,))
        _require_apart(out, a, b)
        if out.size:
            self._routines.gemm(
                a,
                b,
                out,
                alpha=alpha,
                beta=beta,
                a_transposed=transpose_a,
                b_transposed=transpose_b,
            )
        del memories  # it is queued

    def gemv(
        self,
        a: AnyDeviceArray,
        x: AnyDeviceArray,
        out: AnyDeviceArray,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        transpose: bool = False,
    ) -> None:
        """out = alpha · op(a) · x + beta · out, with shapes (m, n), (n,) and (m,).

        Raises:
            InvalidValueError, DTypeError, WrongDeviceError: as `gemm`.
        """
        _arrays("gemv", a=a, x=x, out=out)
        alpha, beta = border.real("gemv: alpha", alpha), border.real("gemv: beta", beta)
        m, n = _shape(a, "a", transpose)
        if x.shape != (n,):
            raise InvalidValueError(f"gemv of a {(m, n)} takes x {(n,)}, not {x.shape}")
        if out.shape != (m,):
            raise InvalidValueError(f"gemv gives {(m,)}, but out is {out.shape}")
        memories = self._order((a, x), (out,))
        _require_apart(out, a, x)
        if out.size:
            self._routines.gemv(a, x, out, alpha=alpha, beta=beta, transposed=transpose)
        del memories  # it is queued

    def syrk(
        self,
        a: AnyDeviceArray,
        out: AnyDeviceArray,
        *,
        alpha: float = 1.0,
        beta: float = 0.0,
        transpose: bool = False,
    ) -> None:
        """The lower triangle of out = alpha · op(a) · op(a)ᵀ + beta · out; the rest is kept.

        Args:
            a: (n, k), or (k, n) if transposed.
            out: (n, n).
            alpha: a factor.
            beta: a factor of the former content of `out`.
            transpose: True if op transposes.

        Raises:
            InvalidValueError, DTypeError, WrongDeviceError: as `gemm`.
        """
        _arrays("syrk", a=a, out=out)
        alpha, beta = border.real("syrk: alpha", alpha), border.real("syrk: beta", beta)
        n, _ = _shape(a, "a", transpose)
        if out.shape != (n, n):
            raise InvalidValueError(f"syrk gives {(n, n)}, but out is {out.shape}")
        memories = self._order((a,), (out,))
        _require_apart(out, a)
        if out.size:
            self._routines.syrk(a, out, alpha=alpha, beta=beta, transposed=transpose)
        del memories  # it is queued

    def xtwx(
        self,
        x: AnyDeviceArray,
        w: AnyDeviceArray,
        out: AnyDeviceArray,
        *,
        work: AnyDeviceArray | None = None,
    ) -> None:
        """out = Xᵀ · diag(w) · X, with shapes (n, p), (n,) and (p, p); weights may be negative.

        Args:
            x: the design.
            w: the weights.
            out: the result, both triangles.
            work: room like `x`, which a capture must bring; else it is allocated for the call.

        Raises:
            InvalidValueError, DTypeError, WrongDeviceError: as `gemm`.
            StreamCaptureUnsupportedError: within a capture and without `work`.
        """
        _arrays("xtwx", x=x, w=w, out=out, work=x if work is None else work)
        n, p = _shape(x, "x")
        if w.shape != (n,):
            raise InvalidValueError(f"xtwx of x {(n, p)} takes w {(n,)}, not {w.shape}")
        if out.shape != (p, p):
            raise InvalidValueError(f"xtwx gives {(p, p)}, but out is {out.shape}")
        if work is None:
            if self._stream.capturing:
                raise StreamCaptureUnsupportedError(
                    "xtwx in a capture without work: bring an array like x that lives as long as "
                    "the graph"
                )
            with self._stream.empty(x.shape, x.dtype) as room:
                self._xtwx(x, w, out, room)
        else:
            if work.shape != x.shape:
                raise InvalidValueError(f"work is {work.shape}, but x is {x.shape}")
            self._xtwx(x, w, out, work)

    def _xtwx(
        self, x: AnyDeviceArray, w: AnyDeviceArray, out: AnyDeviceArray, work: AnyDeviceArray
    ) -> None:
        memories = self._order((x, w), (out, work))
        _require_apart(out, x, w, work)
        _require_apart(work, x, w)
        if out.size:
            if x.size:
                self._routines.scale_rows(x, w, work)
            self._routines.gemm(
                x, work, out, alpha=1.0, beta=0.0, a_transposed=True, b_transposed=False
            )
        del memories  # it is queued

    def potrf(self, a: AnyDeviceArray) -> None:
        """The lower Cholesky factor of a symmetric (p, p) matrix, in place; waits for the result.

        Only the lower triangle is read and written. After an error its content is undefined.

        Raises:
            NotPositiveDefiniteError: with the row at which it stopped.
            StreamCaptureUnsupportedError: within a capture: the result must be read on the host.
            InvalidValueError, DTypeError, WrongDeviceError: as `gemm`.
        """
        _arrays("potrf", a=a)
        rows, columns = _shape(a, "a")
        if rows != columns:
            raise InvalidValueError(f"potrf of a matrix of {a.shape}: it must be square")
        if self._stream.capturing:
            raise StreamCaptureUnsupportedError(
                "potrf in a capture: the host must read whether the matrix is positive definite"
            )
        memories = self._order((), (a,))
        if a.size and (order := self._routines.potrf(a)):
            raise NotPositiveDefiniteError(rows, order - 1)
        del memories  # it is queued

    def trsm(self, factor: AnyDeviceArray, b: AnyDeviceArray, *, transpose: bool = False) -> None:
        """b = op(factor)⁻¹ · b in place; factor (n, n) is lower triangular, b (n, k) or (n,).

        The strict upper triangle of `factor` is not read.

        Raises:
            InvalidValueError, DTypeError, WrongDeviceError: as `gemm`.
        """
        memories = self._check_triangular("trsm", factor, b)
        if b.size:
            self._routines.trsm(factor, b, transposed=transpose)
        del memories  # it is queued

    def potrs(self, factor: AnyDeviceArray, b: AnyDeviceArray) -> None:
        """b = A⁻¹ · b in place, with the factor that `potrf` made of A and b (n, k) or (n,).

        Raises:
            InvalidValueError, DTypeError, WrongDeviceError: as `gemm`.
        """
        memories = self._check_triangular("potrs", factor, b)
        if b.size:
            self._routines.trsm(factor, b, transposed=False)
            self._routines.trsm(factor, b, transposed=True)
        del memories  # it is queued

    def _check_triangular(
        self, operation: str, factor: AnyDeviceArray, b: AnyDeviceArray
    ) -> list[AnyMemory]:
        _arrays(operation, factor=factor, b=b)
        n, columns = _shape(factor, "factor")
        if n != columns:
            raise InvalidValueError(
                f"{operation} with a factor of {factor.shape}: it must be square"
            )
        if b.ndim not in (1, 2) or b.shape[0] != n:
            raise InvalidValueError(
                f"{operation} with a factor {factor.shape} takes b {(n, 'k')} or {(n,)}, "
                f"not {b.shape}"
            )
        memories = self._order((factor,), (b,))
        _require_apart(b, factor)
        return memories

    def _order(
        self, reads: tuple[AnyDeviceArray, ...], writes: tuple[AnyDeviceArray, ...]
    ) -> list[AnyMemory]:
        """Check dtypes and devices, and order the stream after the work on the arrays.

        Gives the arrays' memory, to be held until the work is queued.
        """
        arrays = reads + writes
        dtype = arrays[0].dtype
        for array in arrays:
            if array.dtype != dtype or dtype not in _DTYPES:
                dtypes = ", ".join(str(array.dtype) for array in arrays)
                raise DTypeError(f"linear algebra on {dtypes}: use float32 or float64 throughout")
            if array.context is not self._stream.context:  # the text only where it is needed
                self._stream._require(array.context, repr(array))
        read_memories = [ready(self._stream, array, writes=False) for array in reads]
        return read_memories + [ready(self._stream, array, writes=True) for array in writes]


def _routines_for(stream: Stream) -> Routines:
    # There is no cuBLAS on the emulator; nothing but the choice of implementation depends on it.
    if stream.context.device.is_emulated:
        from .host import HostRoutines

        return HostRoutines(stream)
    from .library import LibraryRoutines

    return LibraryRoutines(stream)


def _arrays(operation: str, **arrays: AnyDeviceArray) -> None:
    """Raise `ArgumentTypeError` for other objects than device arrays, and for strided views."""
    for name, array in arrays.items():
        border.instance_of(f"{operation}: {name}", array, DeviceArray)
        if not array.is_contiguous:
            raise InvalidValueError(
                f"{operation}: {name}: {array!r} is not C-contiguous: give its copy by "
                "Stream.contiguous"
            )


def _shape(array: AnyDeviceArray, name: str, transposed: bool = False) -> tuple[int, int]:
    if array.ndim != 2:
        raise InvalidValueError(f"{name} has the shape {array.shape}: a matrix is needed")
    rows, columns = array.shape
    return (columns, rows) if transposed else (rows, columns)


def _require_apart(out: AnyDeviceArray, *inputs: AnyDeviceArray) -> None:
    for array in inputs:
        if out.ptr < array.ptr + array.nbytes and array.ptr < out.ptr + out.nbytes:
            raise InvalidValueError(f"the result {out!r} overlaps the input {array!r}")
