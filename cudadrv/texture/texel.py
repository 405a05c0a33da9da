"""Texels: one, two or four numbers of one of eight types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .. import border
from ..driver._api import CUarray_format
from ..errors import DTypeError, TextureError
from ..memory.dtypes import as_dtype

if TYPE_CHECKING:
    import numpy.typing as npt

_FORMATS: Final = {
    "u1": CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8,
    "u2": CUarray_format.CU_AD_FORMAT_UNSIGNED_INT16,
    "u4": CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32,
    "i1": CUarray_format.CU_AD_FORMAT_SIGNED_INT8,
    "i2": CUarray_format.CU_AD_FORMAT_SIGNED_INT16,
    "i4": CUarray_format.CU_AD_FORMAT_SIGNED_INT32,
    "f2": CUarray_format.CU_AD_FORMAT_HALF,
    "f4": CUarray_format.CU_AD_FORMAT_FLOAT,
}


@dataclass(frozen=True, slots=True)
class Texel:
    """What a texel is.

    Attributes:
        dtype: of a channel. Any, because the scalar type is the type argument of an array.
        channels: 1, 2 or 4.
    """

    dtype: np.dtype[Any]
    channels: int

    @classmethod
    def of(cls, dtype: npt.DTypeLike, channels: int) -> Texel:
        """A texel of these channels.

        Raises:
            DTypeError: CUDA has no such channel.
            TextureError: there are not 1, 2 or 4 of them.
        """
        kind = as_dtype(dtype)
        channels = border.integer("a texel's channels", channels)
        if not kind.isnative or f"{kind.kind}{kind.itemsize}" not in _FORMATS:
            raise DTypeError(
                f"texels of {kind}: CUDA has integers of 8, 16 and 32 bits, float16 and float32"
            )
        if channels not in (1, 2, 4):
            three = "; give colours of 3 a fourth channel" if channels == 3 else ""
            raise TextureError(f"texels of {channels} channels: CUDA has 1, 2 and 4{three}")
        return cls(kind, channels)

    @property
    def format(self) -> CUarray_format:
        """The driver's name of the dtype."""
        return _FORMATS[f"{self.dtype.kind}{self.dtype.itemsize}"]

    @property
    def nbytes(self) -> int:
        """Size of a texel."""
        return self.dtype.itemsize * self.channels

    @property
    def is_float(self) -> bool:
        """Whether its channels are floats."""
        return self.dtype.kind == "f"

    @property
    def axes(self) -> tuple[int, ...]:
        """What an array of such texels has behind the extents: the channels, if several."""
        return (self.channels,) if self.channels > 1 else ()

    def __str__(self) -> str:
        return str(self.dtype) if self.channels == 1 else f"{self.channels} × {self.dtype}"
