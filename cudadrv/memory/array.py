"""`DeviceArray`: a typed, C-contiguous array in device memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from operator import index
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    NoReturn,
    SupportsIndex,
    TypeAlias,
    TypeVar,
    overload,
)  # fmt: skip

import numpy as np

from .. import border, errors
from ..driver.stream_core import StreamCore
from ..errors import DTypeError
from .buffer import DeviceBuffer, DeviceMemory, View
from .export import DL_CUDA, CudaArrayInterface, array_interface, dlpack_capsule

if TYPE_CHECKING:
    import numpy.typing as npt

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
_OtherT = TypeVar("_OtherT", bound=np.generic)

_new: Final = object.__new__

Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
Key: TypeAlias = SupportsIndex | slice
TypedDType: TypeAlias = type[_ScalarT] | np.dtype[_ScalarT]
"""A dtype whose scalar type the type checker knows, such as ``np.float32``."""


class DeviceArray(DeviceMemory, Generic[_ScalarT]):
    """A C-contiguous array of one dtype in device memory.

    Made by `Stream.empty`, `Stream.zeros` and `Stream.to_device`. Views made by `reshape`, `view`
    and slicing share the memory and keep it alive; so does ``DeviceArray(buffer, ...)``.

    Attributes:
        ptr: the address of the first element; reading it after `close` raises `ClosedError`.
        shape: the extents.
        dtype: the NumPy dtype.
        nbytes: the size in bytes.
        buffer: the memory.
        stream: the stream that the memory came from.
        context: the context of the memory.
        closed: whether the memory was given back.
    """

    __slots__ = ("dtype", "shape")

    dtype: np.dtype[_ScalarT]
    shape: tuple[int, ...]

    def __new__(
        cls, buffer: DeviceBuffer, shape: Shape, dtype: npt.DTypeLike, offset: int = 0
    ) -> DeviceArray[_ScalarT]:
        """An array in a buffer, `offset` bytes behind its beginning."""
        kind: np.dtype[_ScalarT] = checked_dtype(dtype)
        extents = checked_shape(shape)
        if type(offset) is not int:
            offset = border.integer("DeviceArray: offset", offset)
        if not isinstance(buffer, DeviceBuffer):
            raise border.refused("DeviceArray: buffer", buffer, "give a DeviceBuffer")
        nbytes = math.prod(extents) * kind.itemsize
        start = buffer.ptr
        if not 0 <= offset <= buffer.nbytes - nbytes:
            raise errors.InvalidValueError(
                f"an array of {nbytes} bytes at offset {offset} does not fit a buffer of "
                f"{buffer.nbytes} bytes"
            )
        return _view(buffer, start + offset, extents, kind, nbytes)

    @property
    def _closed_text(self) -> str:
        return f"the device array of shape {self.shape} {self.dtype} was closed"

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<DeviceArray {self.shape} {self.dtype} on device {self.context.ordinal}{state}>"

    # Python would hand over the address, by `__index__`, where the caller may mean the element.
    def __int__(self) -> NoReturn:
        raise errors.ArgumentTypeError(
            f"{self!r} is no number: read it with Stream.to_host; its address is `ptr`"
        )

    def __len__(self) -> int:
        if not self.shape:
            raise errors.ArgumentTypeError("a device array of no dimensions has no length")
        return self.shape[0]

    def __bool__(self) -> NoReturn:
        raise errors.ArgumentTypeError(
            f"whether {self!r} is true only its elements say: use Stream.to_host"
        )

    def __iter__(self) -> Iterator[DeviceArray[_ScalarT]]:
        """The rows of the first axis, each a view."""
        return (self[row] for row in range(len(self)))

    def __getitem__(self, key: Key | tuple[Key, ...]) -> DeviceArray[_ScalarT]:
        """The elements at `key`, as a view: whole numbers, and slices of step 1.

        They must lie together in memory: behind a slice of several, the other axes are whole.

        Raises:
            IndexError: the array has no such element or axis.
            InvalidValueError: the elements do not lie together.
        """
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) > self.ndim:
            raise errors.ArgumentIndexError(
                f"{len(keys)} indices for an array of {self.ndim} dimensions"
            )
        shape: list[int] = []
        start_at = address = self.ptr
        row, together, several = self.nbytes, True, False
        for key, extent in zip(keys, self.shape, strict=False):
            row = row // extent if extent else 0
            if isinstance(key, slice):
                try:
                    start, stop, step = key.indices(extent)
                except (TypeError, ValueError) as error:
                    raise errors.ArgumentTypeError(f"{key} is no slice of whole numbers") from error
                if step != 1:
                    raise errors.InvalidValueError(
                        f"a device array takes slices of step 1, not {step}"
                    )
                shape.append(max(stop - start, 0))
                taken = shape[-1]
            else:
                start, taken = _place(key, extent), 1
            together &= not several or taken == extent
            several |= taken > 1
            address += start * row
        shape += self.shape[len(keys) :]
        if 0 in shape:  # what has no elements lies anywhere
            address = start_at
        elif not together:
            raise errors.InvalidValueError(
                f"{self!r} has no view at {keys}: its elements do not lie together"
            )
        return _view(
            self, address, tuple(shape), self.dtype, math.prod(shape) * self.dtype.itemsize
        )

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @overload
    def reshape(self, shape: Shape, /) -> DeviceArray[_ScalarT]: ...
    @overload
    def reshape(self, *shape: SupportsIndex) -> DeviceArray[_ScalarT]: ...
    def reshape(self, *extents: Shape) -> DeviceArray[_ScalarT]:
        """A view of the same elements in C order; one extent may be -1.

        Raises:
            InvalidValueError: the shape has another number of elements.
        """
        # Several are extents, or the one is; whatever else fails there.
        shape = _extents(extents[0] if len(extents) == 1 else extents)  # type: ignore[arg-type]
        known = math.prod(extent for extent in shape if extent != -1)
        if shape.count(-1) == 1 and known and self.size % known == 0:
            shape = tuple(self.size // known if extent == -1 else extent for extent in shape)
        if -1 in shape or math.prod(shape) != self.size:
            raise errors.InvalidValueError(f"{self.size} elements do not reshape to {shape}")
        return _view(self, self.ptr, shape, self.dtype, self.nbytes)

    @overload
    def view(self, dtype: TypedDType[_OtherT]) -> DeviceArray[_OtherT]: ...
    # A dtype given as text says nothing to a type checker.
    @overload
    def view(self, dtype: npt.DTypeLike) -> DeviceArray[Any]: ...
    def view(self, dtype: npt.DTypeLike) -> DeviceArray[Any]:
        """A view of the same bytes as another dtype; the last extent changes with its size.

        Raises:
            InvalidValueError: the last extent's bytes are no multiple of the new item size.
        """
        new = checked_dtype(dtype)
        if not self.shape:
            shape: tuple[int, ...] = ()
            fits = new.itemsize == self.dtype.itemsize
        else:
            row, rest = divmod(self.shape[-1] * self.dtype.itemsize, new.itemsize)
            shape = (*self.shape[:-1], row)
            fits = rest == 0
        if not fits:
            raise errors.InvalidValueError(f"{self.shape} of {self.dtype} has no view as {new}")
        return _view(self, self.ptr, shape, new, self.nbytes)

    @property
    def __cuda_array_interface__(self) -> CudaArrayInterface:
        """Version 3 of the interface; consumers order themselves after the stream it names.

        That stream comes after everything that was done to the array, on every stream. Where it was
        closed, none is named, and its work is waited for here.
        """
        return array_interface(self)

    def __dlpack_device__(self) -> tuple[int, int]:
        """(kDLCUDA, ordinal)."""
        return DL_CUDA, self.context.ordinal

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A DLPack capsule over the array, ordered before the consumer's `stream`.

        Raises:
            DTypeError: DLPack has no such dtype.
            ExportError: a copy or another device is asked for.
        """
        border.optional("__dlpack__: copy", copy, bool)
        if dl_device is not None:
            # Producers give its kind as an enumeration or as a plain number.
            border.instance("__dlpack__: dl_device", dl_device, tuple)
            dl_device = tuple(border.integer("__dlpack__: dl_device", n) for n in dl_device)  # type: ignore[assignment]  # compared, of whatever length
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise errors.ExportError(
                "a device array is exported in place: no copy, no other device"
            )
        if stream is not None:
            stream = border.whole("__dlpack__: stream", stream, -1, 2**64 - 1)
        return dlpack_capsule(self, stream)


class ArrayView(View, DeviceArray[_ScalarT]):
    """An array in the memory of another one, or of a buffer."""

    __slots__ = ()


def _view(
    of: DeviceMemory,
    address: int,
    shape: tuple[int, ...],
    dtype: np.dtype[_ScalarT],
    nbytes: int,
) -> DeviceArray[_ScalarT]:
    view: ArrayView[_ScalarT] = _new(ArrayView)
    view._base = of._root
    view._address, view._pointer, view.nbytes = address, None, nbytes
    view.shape, view.dtype = shape, dtype
    return view


def empty(stream: StreamCore, shape: Shape, dtype: npt.DTypeLike) -> AnyDeviceArray:
    """A device array, not initialised."""
    kind: AnyDType
    if dtype.__class__ in _NUMBERS:
        kind = dtype
        nbytes = kind.itemsize
    else:
        try:
            kind, nbytes = _NAMED[dtype]
        except (KeyError, TypeError):
            kind = checked_dtype(dtype)
            nbytes = kind.itemsize
    if type(shape) is int and shape >= 0:
        extents: tuple[int, ...] = (shape,)
        nbytes *= shape
    else:
        extents = checked_shape(shape)
        nbytes *= math.prod(extents)
    array: AnyDeviceArray = _new(DeviceArray)
    array.shape, array.dtype = extents, kind
    array._allocate(stream, nbytes)
    return array


# What takes arrays of every dtype says so with Any: the dtype is the caller's affair.
AnyArray: TypeAlias = "npt.NDArray[Any]"
# A dtype made from text or an object has no static scalar type.
AnyDType: TypeAlias = np.dtype[Any]
AnyDeviceArray: TypeAlias = DeviceArray[Any]


def as_dtype(dtype: npt.DTypeLike) -> AnyDType:
    """What NumPy makes of what is given as a dtype.

    Raises:
        DTypeError: it makes none of it.
    """
    try:
        return np.dtype(dtype)
    except Exception as error:  # NumPy raises whatever the object's parts do
        raise DTypeError(f"{border.described(dtype)}, is no dtype: {error}") from error


# NumPy takes longer to find a dtype than the driver to find memory: here are those of numbers.
_CODES: Final = "?bBhHiIlLqQefdFD"
_NUMBERS: Final = frozenset(np.dtype(code).__class__ for code in _CODES)
_NAMED: Final[dict[object, tuple[AnyDType, int]]] = {
    name: (np.dtype(name), dtype.itemsize)
    for dtype in map(np.dtype, _CODES)
    for name in (dtype.type, dtype.char, dtype.name, dtype.str, dtype.str[1:])
}


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


def checked_shape(shape: Shape) -> tuple[int, ...]:
    """The shape as a tuple of extents of 0 or more."""
    if type(shape) is tuple:  # the most frequent form
        for extent in shape:
            if type(extent) is not int or extent < 0:
                break
        else:
            return shape
    extents = _extents(shape)
    if extents and min(extents) < 0:
        raise errors.InvalidValueError(f"shape {extents}: extents are 0 or more")
    return extents


def _extents(shape: Shape) -> tuple[int, ...]:
    if type(shape) is int:
        return (shape,)
    try:
        if type(shape) is tuple or isinstance(shape, Sequence):  # the quick test first
            return tuple(map(index, shape))
        return (index(shape),)
    except TypeError:
        pass
    try:
        return tuple(map(index, shape))  # type: ignore[arg-type]  # such as an array of extents
    except TypeError:
        what = f"a whole number or several, not {border.shown(shape)}"
        raise errors.ArgumentTypeError(f"a shape is {what}") from None


def _place(key: SupportsIndex, extent: int) -> int:
    """The position that an index names on an axis."""
    try:
        place = index(key)
    except TypeError:
        what = f"whole numbers and slices of step 1, not {type(key).__name__}"
        raise errors.ArgumentTypeError(f"a device array is indexed by {what}") from None
    if not -extent <= place < extent:
        raise errors.ArgumentIndexError(f"index {place} is out of range for an axis of {extent}")
    return place % extent
