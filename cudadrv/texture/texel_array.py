"""`TexelArray`: what copies need to know of a CUDA array; `Texels`: what mipmapped ones share."""

from __future__ import annotations

from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from ..driver._api import CUarray
from ..driver.context import ContextCore
from ..driver.handle import Closing
from .extents import Extents
from .storage import ArrayMemory, MipmapMemory
from .texel import Texel

_ScalarT = TypeVar("_ScalarT", bound=np.generic)


class Texels(Closing, Generic[_ScalarT]):
    """What has texels: an array of them, or all levels of a mipmapped one."""

    __slots__ = ("context", "extents", "texel")

    context: ContextCore
    extents: Extents
    texel: Texel

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, of level 0 where there are several, in texels."""
        return self.extents.shape

    @property
    def dtype(self) -> np.dtype[_ScalarT]:
        """The dtype of a channel."""
        return self.texel.dtype

    @property
    def channels(self) -> int:
        """Numbers in a texel."""
        return self.texel.channels


class TexelArray(Texels[_ScalarT]):
    """A CUDA array, without its copies: a handle, its texels and its extents."""

    __slots__ = ("_array",)

    # A level has the box of its whole mipmapped array.
    _box: ArrayMemory | MipmapMemory
    _array: CUarray

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<CudaArray {self.shape} {self.texel} on device {self.context.ordinal}{state}>"

    @property
    def _closed_text(self) -> str:
        return f"the CUDA array of shape {self.shape} {self.texel} was closed"

    @property
    def handle(self) -> CUarray:
        """The CUarray.

        Raises:
            ClosedError: it was closed.
        """
        self._box.raw  # noqa: B018  # raises once it is closed
        return self._array

    @property
    def nbytes(self) -> int:
        """Size of the texels."""
        return self.extents.size * self.texel.nbytes

    @property
    def host_shape(self) -> tuple[int, ...]:
        """The shape of a host or device array of the same content: the channels come last."""
        return (*self.shape, *self.texel.axes)


# What copies texels of every dtype says so with Any: the dtype is the caller's affair.
AnyTexelArray: TypeAlias = TexelArray[Any]
