"""`MipmappedArray`: a CUDA array and its halves, quarters and so on, which one texture reads."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

import numpy as np

from ..driver._api import CUmipmappedArray
from ..driver.in_use import Bound, Handle, failure
from ..errors import ClosedError, TextureError
from ..memory.array import Shape, TypedDType, checked_shape
from .array import CudaArray, Dependent
from .descriptor import descriptor_of, refused
from .extents import Extents
from .storage import Storage
from .texel import Texel

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..driver.context import Context

_ScalarT = TypeVar("_ScalarT", bound=np.generic)


class MipmappedArray(Handle, Generic[_ScalarT]):
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
        closed: whether it was closed.

    Raises:
        TextureError: there is no such array on the device, or there are no so many levels.
        DTypeError: there are no such channels.
        OutOfMemoryError: with the request and the free and total bytes.

    Source: CUDA Driver API, cuMipmappedArrayCreate.
    """

    __slots__ = (
        "__weakref__", "_dependents", "_levels", "_storage", "closed", "context", "extents",
        "handle", "levels", "texel",
    )  # fmt: skip

    handle: CUmipmappedArray
    # What an argument's refusal adds.
    argument_hint = "kernels read it through a Texture over it"

    @overload
    def __init__(
        self,
        context: Context,
        shape: Shape,
        dtype: TypedDType[_ScalarT],
        *,
        levels: int | None = None,
        channels: int = 1,
        layered: bool = False,
        cubemap: bool = False,
        surface: bool = False,
    ) -> None: ...
    # A dtype given as text says nothing to a type checker.
    @overload
    def __init__(
        self: MipmappedArray[Any],
        context: Context,
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
        context: Context,
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
        extents = Extents(checked_shape(shape), layered, cubemap, surface, gather=False)
        extents.check()
        most = extents.most_levels
        if levels is not None and not 1 <= levels <= most:
            raise TextureError(
                f"{levels} levels of a CUDA array of shape {extents.shape}: it has 1 to {most}"
            )
        self.levels = most if levels is None else levels
        api = context.api
        with Bound(api, context.handle):
            code, handle = api.cuMipmappedArrayCreate(descriptor_of(extents, texel), self.levels)
        if code:
            raise refused(context, extents, texel, code, "cuMipmappedArrayCreate")
        self.context = context
        self.extents = extents
        self.texel = texel
        self.handle = handle
        self.closed = False
        self._levels: list[CudaArray[_ScalarT]] = []
        self._storage: Storage[CUmipmappedArray] | None = Storage(
            context, handle, api.cuMipmappedArrayDestroy
        )
        self._dependents: weakref.WeakSet[Dependent] = weakref.WeakSet()
        context.adopt(self)
        self._find_levels(self._storage)

    def _find_levels(self, storage: Storage[CUmipmappedArray]) -> None:
        api, extents = self.context.api, self.extents
        for number in range(self.levels):
            code, handle = api.cuMipmappedArrayGetLevel(self.handle, number)
            if code:
                raise failure(api, code, "cuMipmappedArrayGetLevel", f"level {number} of {self!r}")
            self._levels.append(
                CudaArray.of_level(self.context, extents, self.texel, handle, storage)
            )
            extents = extents.halved()

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> object:
            if name == "handle":
                raise ClosedError(f"the mipmapped array of shape {self.shape} was closed")
            raise AttributeError(f"a MipmappedArray has no attribute {name!r}")

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return (
            f"<MipmappedArray {self.shape} {self.texel}, {self.levels} levels, on device "
            f"{self.context.ordinal}{state}>"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of level 0, in texels."""
        return self.extents.shape

    @property
    def dtype(self) -> np.dtype[_ScalarT]:
        """The dtype of a channel."""
        return self.texel.dtype

    @property
    def channels(self) -> int:
        """Numbers in a texel."""
        return self.texel.channels

    @property
    def nbytes(self) -> int:
        """Size of the texels of all levels."""
        return sum(level.nbytes for level in self._levels)

    def level(self, number: int) -> CudaArray[_ScalarT]:
        """A level, from 0, the largest, on; always the same object.

        Raises:
            TextureError: there is none of this number.
        """
        if not 0 <= number < self.levels:
            raise TextureError(f"{self!r} has no level {number}")
        return self._levels[number]

    def adopt(self, dependent: Dependent) -> None:
        """Remember what stands over the array, to be closed with it."""
        self._dependents.add(dependent)

    def close(self) -> None:
        """Give the texels back, with the levels and the textures over them. Idempotent.

        It waits for the work of the context. Texels that a graph copies go with the graph.
        """
        self.discard()
        self._storage = None

    def discard(self) -> None:
        """Take the handle away: the array is destroyed, or its context is."""
        if not self.closed:
            self.closed = True
            for dependent in tuple(self._dependents):
                dependent.close()
            for level in self._levels:
                level.close()
            del self.handle
