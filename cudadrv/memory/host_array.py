"""Host arrays as device memory takes and gives them: plain ones, with no masked elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import border
from ..errors import ArgumentTypeError, CopyError
from .dtypes import AnyArray

if TYPE_CHECKING:
    import numpy.typing as npt


def as_array(array: npt.ArrayLike) -> AnyArray:
    """What NumPy makes of a sequence, a number or an array of a subclass.

    Raises:
        ArgumentTypeError: it makes no array of it.
        CopyError: it has masked elements.
    """
    try:
        source: AnyArray = np.asanyarray(array)
    except Exception as error:  # the object's own conversion may raise anything
        what = f"{border.described(array)}, becomes no NumPy array"
        raise ArgumentTypeError(f"{what}: {error}") from error
    require_plain(source)
    return np.asarray(source)


def require_plain(array: AnyArray) -> None:
    """Raise for a host array with masked elements: device memory has no mask.

    Raises:
        CopyError: it has.
    """
    if type(array) is not np.ndarray and np.ma.is_masked(array):
        raise CopyError(
            "a host array with masked elements has no counterpart on a device: fill them with "
            "`array.filled(value)`"
        )
