"""Sobol direction vectors: computed from SciPy's Joe-Kuo numbers, cached on the device by a client.

S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional projections", SIAM
J. Sci. Comput. 30 (2008), new-joe-kuo-6.21201.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from importlib import resources
from typing import Final

import numpy as np
import numpy.typing as npt

from .. import border
from ..driver.handle import NotCopyable
from ..driver.stream import require_stream
from ..errors import CudadrvError, RuntimeDependencyUnavailable, StreamCaptureUnsupportedError
from ..memory.array import DeviceArray
from ..stream import Stream

SOBOL_BITS: Final = 32
SOBOL_MAX_DIMENSIONS: Final = 21201


class SobolDimensionError(CudadrvError, ValueError):
    """A dimension outside 1 to 21201.

    Attributes:
        arg: the argument's name, "dimension".
        reason: the fault in words.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"invalid argument 'dimension': {reason}")
        self.arg = "dimension"
        self.reason = reason


class SobolDvCache(NotCopyable):
    """Direction vectors on the device by dimension, cached as long as this object lives.

    They are uploaded once a dimension, outside of any capture. So a graph finds them at an address
    that stays, and copies nothing from host memory that is gone when it is launched.
    """

    __slots__ = ("__weakref__", "_arrays", "_lock", "_stream")

    def __init__(self, stream: Stream) -> None:
        require_stream("SobolDvCache: stream", stream)
        self._stream = stream
        self._lock = threading.RLock()
        # The open one, behind those that were closed.
        self._arrays: dict[int, list[DeviceArray[np.uint32]]] = {}

    def __len__(self) -> int:
        return len(self._arrays)

    def get(self, dimension: int) -> DeviceArray[np.uint32] | None:
        """Return the vectors of a dimension, (dimension, 32) uint32, or None before `warmup`."""
        arrays = self._arrays.get(border.integer("SobolDvCache.get: dimension", dimension), ())
        return next((array for array in arrays if not array.closed), None)

    def warmup(self, dimension: int) -> DeviceArray[np.uint32]:
        """Return the vectors of a dimension; the first call uploads them and waits for the copy.

        Raises:
            SobolDimensionError: `dimension` is not in 1 to 21201.
            RuntimeDependencyUnavailable: SciPy is not installed.
            StreamCaptureUnsupportedError: they are not there yet, and the stream is capturing.
            OutOfMemoryError: they do not fit.
        """
        dimension = checked_dimension(dimension)
        array = self.get(dimension)
        if array is None:
            # Before the lock, which a thread may hold that waits for the end of this capture.
            self._require_no_capture(dimension)
            with self._lock:
                array = self.get(dimension)
                if array is None:
                    uploaded = self._upload(dimension)
                    # A finalizer may come here at any line: the first open one stays.
                    self._arrays.setdefault(dimension, []).append(uploaded)
                    array = self.get(dimension)
                    assert array is not None
        return array

    def _upload(self, dimension: int) -> DeviceArray[np.uint32]:
        array = self._stream.to_device(direction_vectors(dimension))
        self._stream.synchronize()
        return array

    def _require_no_capture(self, dimension: int) -> None:
        if self._stream.capturing:
            raise StreamCaptureUnsupportedError(
                f"the Sobol vectors of dimension {dimension} in a capture",
                text="call warmup_sobol before the capture",
                explained=True,
            )


def checked_dimension(dimension: int) -> int:
    """Return the dimension, checked: there must be direction numbers for it.

    Raises:
        SobolDimensionError: there are none.
    """
    dimension = border.integer("a Sobol dimension", dimension)
    if dimension < 1:
        raise SobolDimensionError("Sobol dimension must be at least 1")
    if dimension > SOBOL_MAX_DIMENSIONS:
        raise SobolDimensionError(
            f"Sobol dimension {dimension} exceeds maximum supported value {SOBOL_MAX_DIMENSIONS}"
        )
    return dimension


def direction_vectors(dimension: int) -> npt.NDArray[np.uint32]:
    """Return the direction vectors of `dimension` coordinates, (dimension, 32) uint32, C order.

    Vector j of a coordinate has its leading one at bit 31 - j. Point n is the exclusive or of the
    vectors whose bits are set in the Gray code of n, divided by 2**32.

    Raises:
        SobolDimensionError: `dimension` is not in 1 to 21201.
        RuntimeDependencyUnavailable: SciPy is not installed.
    """
    dimension = checked_dimension(dimension)
    polynomials, initial = joe_kuo()
    vectors = np.zeros((dimension, SOBOL_BITS), np.uint32)
    # The first coordinate is van der Corput's sequence: one bit a vector.
    shifts = np.arange(SOBOL_BITS - 1, -1, -1, dtype=np.uint32)
    vectors[0] = np.uint32(1) << shifts
    # The polynomial of degree s is stored with all its coefficients as bits, the leading one too.
    degrees = np.array([polynomial.bit_length() - 1 for polynomial in polynomials[:dimension]])
    for degree in range(1, int(degrees.max(initial=0)) + 1):
        rows = np.flatnonzero(degrees == degree)
        rows = rows[rows > 0]
        vectors[rows, :degree] = initial[rows, :degree] << shifts[:degree]
        coefficients = np.array([polynomials[row] for row in rows], np.uint32)
        for j in range(degree, SOBOL_BITS):
            former = vectors[rows, j - degree]
            new = former ^ (former >> np.uint32(degree))
            for k in range(1, degree):
                has_term = (coefficients >> np.uint32(degree - k)) & np.uint32(1)
                new ^= has_term * vectors[rows, j - k]
            vectors[rows, j] = new
    return vectors


@lru_cache(maxsize=1)
def joe_kuo() -> tuple[list[int], npt.NDArray[np.uint32]]:
    """The primitive polynomials and initial numbers of SciPy's package data, 1.6 MB once read."""
    try:
        # The package alone: scipy.stats takes a second to import, and its data needs none of it.
        data = resources.files("scipy") / "stats" / "_sobol_direction_numbers.npz"
        with data.open("rb") as file, np.load(file) as arrays:
            polynomials = [int(value) for value in arrays["poly"]]
            initial: npt.NDArray[np.uint32] = arrays["vinit"].astype(np.uint32)
    except (ModuleNotFoundError, FileNotFoundError, KeyError) as error:
        raise RuntimeDependencyUnavailable(
            f"the Sobol direction numbers are read from SciPy's package data ({error}): "
            "pip install cudadrv[sobol]"
        ) from error
    return polynomials, initial
