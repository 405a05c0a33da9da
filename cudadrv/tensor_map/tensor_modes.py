"""How a tensor is copied: types, swizzles, layouts. CUDA Driver API, cuTensorMapEncodeTiled."""

from __future__ import annotations

from enum import IntEnum


class TensorElement(IntEnum):
    """The type of a tensor's elements; numbered as CUtensorMapDataType.

    Types of fewer than 8 bits are left out, as no dtype has them.
    """

    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    UINT64 = 4
    INT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT32_FTZ = 10
    """float32, of which sums make subnormals zero; loads and stores do not."""
    TFLOAT32 = 11
    """float32, which loads round to the 19 bits that tensor cores read."""
    TFLOAT32_FTZ = 12
    """Both."""

    @property
    def nbytes(self) -> int:
        """Size of an element."""
        return _SIZES[self]

    @property
    def is_real(self) -> bool:
        """Whether it is a floating-point type."""
        return self >= TensorElement.FLOAT16


_SIZES = {
    element: 8 if "64" in element.name else 4 if "32" in element.name else 2
    for element in TensorElement
} | {TensorElement.UINT8: 1}


class TensorSwizzle(IntEnum):
    """Where pieces of a box's rows lie in shared memory; numbered as CUtensorMapSwizzle.

    Pieces of 16 bytes change places within a span, by the number of the row of 128 bytes in which
    they lie: so columns of a matrix are in different banks. A box's rows take the span each, also
    where they are shorter.
    """

    NONE = 0
    BYTES_32 = 1
    BYTES_64 = 2
    BYTES_128 = 3
    BYTES_128_ATOM_32 = 4
    """Pieces of 32 bytes; devices of compute capability 10.0 and newer."""
    BYTES_128_ATOM_32_FLIP_8 = 5
    """The same, and halves of 16 bytes are exchanged in every other row."""
    BYTES_128_ATOM_64 = 6
    """Pieces of 64 bytes; devices of compute capability 10.0 and newer."""

    @property
    def nbytes(self) -> int:
        """The span; 0 without a swizzle."""
        return (0, 32, 64, 128, 128, 128, 128)[self]


class TensorInterleave(IntEnum):
    """Whether channels lie in slices, as in NC/8HWC8; numbered as CUtensorMapInterleave."""

    NONE = 0
    BYTES_16 = 1
    """Slices of 16 bytes."""
    BYTES_32 = 2
    """Slices of 32 bytes; only with `TensorSwizzle.BYTES_32`."""

    @property
    def nbytes(self) -> int:
        """Size of a slice; 0 without interleave."""
        return 16 * self


class TensorFill(IntEnum):
    """What stands for elements outside of a tensor; numbered as CUtensorMapFloatOOBfill."""

    ZERO = 0
    NAN = 1
    """A NaN, for floating-point elements."""


class L2Promotion(IntEnum):
    """How much the L2 cache fetches at once; numbered as CUtensorMapL2promotion."""

    NONE = 0
    BYTES_64 = 1
    BYTES_128 = 2
    BYTES_256 = 3
