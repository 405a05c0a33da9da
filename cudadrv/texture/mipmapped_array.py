"""`MipmappedArray`: a CUDA array and its halves, quarters and so on, which one texture reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from ptx.read_only import ReadOnly

from .. import border
from ..driver._api import CUmipmappedArray
from ..driver.context import BaseContext, require_context
from ..driver.driver_selection import checked
from ..errors import TextureError
from ..memory.dtypes import TypedDType
from ..memory.layout import Shape, checked_shape
from .array_layout import ArrayExtents, Texel, creation_error, descriptor_of
from .cuda_array import CudaArray, MipmapMemory, Texels

if TYPE_CHECKING:
    import numpy.typing as npt

_ScalarT = TypeVar("_ScalarT", bound=np.generic)


class MipmappedArray(Texels[_ScalarT]):
    """Levels of texels, each half as large along every dimension as the one before.

    Each level is a `CudaArray`, to be filled by copies or, with `surface`, by kernels.

    Args:
        context: where it is.
        shape: of level 0, as of `CudaArray`.
        dtype: of a channel.
        levels: how many; as many as there can be if left out.
        channels, layered, cubemap, surface: as of `CudaArray`.

    Attributes:
        context: the context.
        levels: how many levels there are.
        handle: the CUmipmappedArray; reading it after `close` raises `ClosedError`.
        closed: True once it was closed.

    Raises:
        TextureError: there is no such array on the device, or there are no so many levels.
        DTypeError: there are no such channels.
        OutOfMemoryError: with the request and the free and total bytes.

    Source: CUDA Driver API, cuMipmappedArrayCreate.
    """

    __slots__ = ("_levels", "_of_levels")

    levels: ReadOnly[int] = ReadOnly("_levels")

    _handle: MipmapMemory
    # Added to the error of a kernel argument.
    argument_hint = "kernels read it through a Texture over it"

    @overload
    def __init__(
        self,
        context: BaseContext,
        shape: Shape,
        dtype: TypedDType[_ScalarT],
        *,
        levels: int | None = None,
        channels: int = 1,
        layered: bool = False,
        cubemap: bool = False,
        surface: bool = False,
    ) -> None: ...
    # A type checker learns nothing from a dtype given as text.
    @overload
    def __init__(
        self: MipmappedArray[Any],
        context: BaseContext,
        shape: Shape,
        dtype: npt.DTypeLike,
        *,
        levels: int | None = None,
        channels: int = 1,
        layered: bool = False,
        cubemap: bool = False,
        surface: bool = False,
    ) -> None: ...
    def __init__(
        self,
        context: BaseContext,
        shape: Shape,
        dtype: npt.DTypeLike,
        *,
        levels: int | None = None,
        channels: int = 1,
        layered: bool = False,
        cubemap: bool = False,
        surface: bool = False,
    ) -> None:
        texel = Texel.of(dtype, channels)
        extents = ArrayExtents(checked_shape(shape), layered, cubemap, surface, gather=False)
        extents.check()
        most = extents.most_levels
        if levels is not None:
            levels = border.integer("MipmappedArray: levels", levels)
        if levels is not None and not 1 <= levels <= most:
            raise TextureError(
                f"{levels} levels of a CUDA array of shape {extents.shape}: use 1 to {most}"
            )
        self._levels: int = most if levels is None else levels
        box = require_context("MipmappedArray: context", context)._handle
        memory, descriptor = MipmapMemory(box, None, None), descriptor_of(extents, texel)
        code = memory.make(box.api.cuMipmappedArrayCreate, descriptor, self._levels)
        if code:
            raise creation_error(context, extents, texel, code, "cuMipmappedArrayCreate")
        self._context = context
        self._extents = extents
        self._texel = texel
        self._of_levels: list[CudaArray[_ScalarT]] = []
        self._own(memory)
        memory.public = self._key
        context._adopt(self)
        self._find_levels()

    def _find_levels(self) -> None:
        box, extents = self._handle, self.extents
        for number in range(self._levels):
            outcome = box.api.cuMipmappedArrayGetLevel(box.raw, number)
            doing = f"level {number} of {self!r}"
            handle = checked(box.api, "cuMipmappedArrayGetLevel", outcome, doing)
            level = CudaArray.of_level(self.context, extents, self.texel, handle, box)
            self._adopt(level)
            self._of_levels.append(level)
            extents = extents.halved()

    @property
    def _closed_text(self) -> str:
        return f"the mipmapped array of shape {self.shape} was closed"

    @property
    def handle(self) -> CUmipmappedArray:
        """The CUmipmappedArray.

        Raises:
            ClosedError: it was closed.
        """
        return self._handle.raw

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return (
            f"<MipmappedArray {self.shape} {self.texel}, {self._levels} levels, on device "
            f"{self.context.ordinal}{state}>"
        )

    @property
    def nbytes(self) -> int:
        """Size of the texels of all levels."""
        return sum(level.nbytes for level in self._of_levels)

    def level(self, number: int) -> CudaArray[_ScalarT]:
        """Return a level; 0 is the largest. The same number gives the same object while it is open.

        Raises:
            ClosedError: the array was closed.
            TextureError: there is none of this number.
        """
        box = self._handle
        box.raw  # noqa: B018  # raises once it is closed
        number = border.integer("MipmappedArray.level: number", number)
        if not 0 <= number < self._levels:
            raise TextureError(f"{self!r} has no level {number}")
        level = self._of_levels[number]
        if level.closed:
            extents, handle = level._extents, level._array
            level = CudaArray.of_level(self.context, extents, self.texel, handle, box)
            self._adopt(level)
            self._of_levels[number] = level
        return level

    def close(self) -> None:
        """Free the texels, and the levels and the textures over them. Idempotent.

        When the driver frees them, it waits for the work of the context. Texels that a texture or a
        graph uses stay until that is gone.
        """
        super().close()
