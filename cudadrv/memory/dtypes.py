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
"""A dtype whose scalar type the type checker sees, such as ``np.float32``."""
# Functions for arrays of every dtype are typed with Any: the caller chooses the dtype.
AnyArray: TypeAlias = "npt.NDArray[Any]"
# A dtype made from text or an object has no static scalar type.
AnyDType: TypeAlias = np.dtype[Any]

# NumPy finds a dtype more slowly than the driver finds memory: these are the dtypes of numbers.
_CODES: Final = "?bBhHiIlLqQefdFD"
NUMBERS: Final = frozenset(np.dtype(code).__class__ for code in _CODES)
NAMED: Final[dict[object, tuple[AnyDType, int]]] = {
    name: (np.dtype(name), dtype.itemsize)
    for dtype in map(np.dtype, _CODES)
    for name in (dtype.type, dtype.char, dtype.name, dtype.str, dtype.str[1:])
}


def as_dtype(dtype: npt.DTypeLike) -> AnyDType:
    """Convert an argument to a NumPy dtype.

    Raises:
        DTypeError: NumPy cannot convert it.
    """
    try:
        return np.dtype(dtype)
    except Exception as error:  # any error of the object's parts
        why = border.shown_text(error)
        raise DTypeError(f"{border.described(dtype)}, is no dtype: {why}") from error


def bytes_written_together(dtype: AnyDType) -> int | None:
    """Return the least bytes that code writes of an element's value; None if that is unknown.

    Untyped bytes and `uint8` can be those of structures, with padding.
    """
    if dtype.type is np.uint8 or (dtype.type is np.void and dtype.names is None):
        return None
    return dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize


def checked_dtype(dtype: npt.DTypeLike) -> AnyDType:
    """Return the dtype, if device memory can hold it.

    Raises:
        DTypeError: it is no dtype, holds Python objects, has no size or a shape of its own.
    """
    result = as_dtype(dtype)
    if result.subdtype is not None:
        raise DTypeError(f"dtype {result} has a shape of its own: give that with the array's shape")
    if result.hasobject or result.itemsize == 0:
        raise DTypeError(f"dtype {result} cannot live in device memory: use a fixed-size dtype")
    return result
