"""The dtypes that device memory can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

from .. import border
from ..errors import DTypeError

if TYPE_CHECKING:
    import numpy.typing as npt

_ScalarT = TypeVar("_ScalarT", bound=np.generic)

TypedDType: TypeAlias = type[_ScalarT] | np.dtype[_ScalarT]
"""A dtype whose scalar type the type checker knows, such as ``np.float32``."""
# What takes arrays of every dtype says so with Any: the dtype is the caller's affair.
AnyArray: TypeAlias = "npt.NDArray[Any]"
# A dtype made from text or an object has no static scalar type.
AnyDType: TypeAlias = np.dtype[Any]

# NumPy takes longer to find a dtype than the driver to find memory: here are those of numbers.
_CODES: Final = "?bBhHiIlLqQefdFD"
NUMBERS: Final = frozenset(np.dtype(code).__class__ for code in _CODES)
NAMED: Final[dict[object, tuple[AnyDType, int]]] = {
    name: (np.dtype(name), dtype.itemsize)
    for dtype in map(np.dtype, _CODES)
    for name in (dtype.type, dtype.char, dtype.name, dtype.str, dtype.str[1:])
}


def as_dtype(dtype: npt.DTypeLike) -> AnyDType:
    """What NumPy makes of what is given as a dtype.

    Raises:
        DTypeError: it makes none of it.
    """
    try:
        return np.dtype(dtype)
    except Exception as error:  # NumPy raises whatever the object's parts do
        raise DTypeError(f"{border.described(dtype)}, is no dtype: {error}") from error


def checked_dtype(dtype: npt.DTypeLike) -> AnyDType:
    """The dtype, if device memory can hold it.

    Raises:
        DTypeError: it is none, holds Python objects, has no size or a shape of its own.
    """
    result = as_dtype(dtype)
    if result.subdtype is not None:
        raise DTypeError(f"dtype {result} has a shape of its own: give that with the array's shape")
    if result.hasobject or result.itemsize == 0:
        raise DTypeError(f"dtype {result} cannot live in device memory: use a fixed-size dtype")
    return result
