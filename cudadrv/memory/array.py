"""`DeviceArray`: a typed array in device memory, and views of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    NoReturn,
    Protocol,
    SupportsIndex,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

import numpy as np

from ptx.read_only import ReadOnly

from .. import border, errors
from ..driver.stream import BaseStream
from ..errors import InvalidValueError
from .array_hints import missing_attribute
from .buffer import BufferView, DeviceBuffer, DeviceData, View, alloc, owning
from .dtypes import NAMED, NUMBERS, AnyDType, TypedDType, checked_dtype
from .export import Exported
from .layout import (
    Keys,
    Layout,
    Shape,
    checked_axes,
    checked_shape,
    dense_strides,
    extents_of,
    filled_in,
    is_dense,
    require_countable,
    rows_at,
)

if TYPE_CHECKING:
    import numpy.typing as npt

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
_OtherT = TypeVar("_OtherT", bound=np.generic)

_new: Final = object.__new__


if TYPE_CHECKING:  # making a protocol slows a start more than most modules

    class Assigning(Protocol):
        """Assignment as an array's stream does it; its layer is above this one."""

        def assign(self, dst: AnyDeviceArray, value: object) -> None:
            """Assign the elements of an array from another array, or from one value."""


class DeviceArray(DeviceData, Exported, Generic[_ScalarT]):
    """An array of one dtype in device memory.

    Made by `Stream.empty`, `Stream.zeros` and `Stream.to_device`. Views share the memory and keep
    it alive: those by `reshape`, `view`, `transpose`, indexing and fields, and
    ``DeviceArray(buffer, ...)``. Elements lie in C order, one after the other, except in views that
    select some of them or reorder the axes (`is_contiguous`).

    Attributes:
        ptr: the address of the first element; reading it after `close` raises `ClosedError`.
        shape: the extents.
        dtype: the NumPy dtype.
        nbytes: the size of the elements in bytes.
        buffer: the memory.
        stream: the stream that allocated the memory.
        context: the context of the memory.
        closed: whether the memory was freed.
        is_read_only: whether another library exported the memory as read-only.
    """

    __slots__ = ("_dtype", "_shape")

    _dtype: np.dtype[_ScalarT]
    dtype: ReadOnly[np.dtype[_ScalarT]] = ReadOnly("_dtype")
    _shape: tuple[int, ...]
    shape: ReadOnly[tuple[int, ...]] = ReadOnly("_shape")

    if not TYPE_CHECKING:  # a type checker would accept any name

        def __getattr__(self, name: str) -> object:
            error = missing_attribute(self, name)
            if error is None:
                return object.__getattribute__(self, name)  # raises, as without this method
            raise error

    @overload
    def __new__(
        cls,
        buffer: DeviceBuffer,
        shape: Shape,
        dtype: TypedDType[_ScalarT],
        offset: int = 0,
        strides: Sequence[int] | None = None,
    ) -> DeviceArray[_ScalarT]: ...
    # A dtype given as text has no static type.
    @overload
    def __new__(
        cls,
        buffer: DeviceBuffer,
        shape: Shape,
        dtype: npt.DTypeLike,
        offset: int = 0,
        strides: Sequence[int] | None = None,
    ) -> AnyDeviceArray: ...
    def __new__(
        cls,
        buffer: DeviceBuffer,
        shape: Shape,
        dtype: npt.DTypeLike,
        offset: int = 0,
        strides: Sequence[int] | None = None,
    ) -> AnyDeviceArray:
        """Return an array in a buffer, `offset` bytes from its beginning; strides are in bytes."""
        kind: np.dtype[_ScalarT] = checked_dtype(dtype)
        extents = checked_shape(shape)
        if type(offset) is not int:
            offset = border.integer("DeviceArray: offset", offset)
        if not isinstance(buffer, DeviceBuffer):
            raise border.wrong_type("DeviceArray: buffer", buffer, "give a DeviceBuffer")
        if strides is None:
            steps, first, end = None, 0, math.prod(extents) * kind.itemsize
        else:
            steps = extents_of(strides)
            if len(steps) != len(extents):
                raise errors.InvalidValueError(f"strides {steps} for the shape {extents}")
            first, end = Layout(0, extents, steps).bounds(kind.itemsize)
        start = buffer.ptr
        if offset < 0 or offset + first < 0 or offset + end > buffer.nbytes:
            raise errors.InvalidValueError(
                f"an array of {end - first} bytes at offset {offset + first} does not fit a buffer "
                f"of {buffer.nbytes} bytes"
            )
        return view_of(buffer, start + offset, extents, kind, steps)

    @property
    def _closed_text(self) -> str:
        return f"the device array of shape {self._shape} {self._dtype} was closed"

    def __repr__(self) -> str:
        strides = "" if self.is_contiguous else f" of strides {self.strides}"
        state = ", closed" if self.closed else ", read-only" if self.is_read_only else ""
        location = f"on device {self.context.ordinal}{state}"
        return f"<DeviceArray {self._shape} {self._dtype}{strides} {location}>"

    # Python would pass the address, by `__index__`, where the caller may mean the element.
    def __int__(self) -> NoReturn:
        raise errors.ArgumentTypeError(
            f"{self!r} is not a number: read it with Stream.to_host; its address is `ptr`"
        )

    def __len__(self) -> int:
        if not self._shape:
            raise errors.ArgumentTypeError("a device array of no dimensions has no length")
        return self._shape[0]

    def __bool__(self) -> NoReturn:
        raise errors.ArgumentTypeError(
            f"whether {self!r} is true only its elements say: use Stream.to_host"
        )

    def __iter__(self) -> Iterator[DeviceArray[_ScalarT]]:
        """Yield the rows of the first axis, each a view."""
        return (self[row] for row in range(len(self)))

    # The dtype of a field is known at run time.
    @overload
    def __getitem__(self, key: str) -> DeviceArray[Any]: ...
    @overload
    def __getitem__(self, key: Keys) -> DeviceArray[_ScalarT]: ...
    def __getitem__(self, key: Keys | str) -> DeviceArray[Any]:
        """Return a view of the elements at `key`, by NumPy's rules: integers, slices, ..., None.

        Text selects a field of a structured dtype.

        Raises:
            IndexError: the array has no such element, axis or field.
        """
        if isinstance(key, str):
            return self._field(key)
        if isinstance(key, (int, slice)) and self._shape and self.is_contiguous:
            begin, rows = rows_at(key, self._shape[0])
            if rows is not None:
                row = self._nbytes // (self._shape[0] or 1)
                return view_of(self, self.ptr + begin * row, rows + self._shape[1:], self._dtype)
        view = self._layout.at(key if isinstance(key, tuple) else (key,))
        return view_of(self, self.ptr + view.offset, view.shape, self._dtype, view.strides)

    def __setitem__(self, key: Keys | str, value: object) -> None:
        """Assign the elements at `key` from a device or host array, or from one value.

        Same as `Stream.assign` on the stream that allocated the memory.
        """
        cast("Assigning", self.stream).assign(self[key], value)

    def _field(self, name: str) -> DeviceArray[Any]:
        """Return the field of every element, with the field's own axes after the array's."""
        fields = self._dtype.fields
        if fields is None or name not in fields:
            raise errors.ArgumentIndexError(f"{self!r} has no field {border.shown_name(name)}")
        kind, offset = fields[name][:2]
        kind, inner = kind.subdtype or (kind, ())
        strides = (*self.strides, *dense_strides(inner, kind.itemsize))
        return view_of(self, self.ptr + offset, (*self._shape, *inner), kind, strides)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self._shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
        return dense_strides(self._shape, self._dtype.itemsize)

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in C order, one after the other, as kernels require."""
        return True

    @property
    def origin(self) -> DeviceBuffer:
        """The memory from the first element on, for kernels that take strides as well."""
        return BufferView(self._root, self.ptr, self._layout.bounds(self._dtype.itemsize)[1])

    @property
    def _layout(self) -> Layout:
        return Layout(0, self._shape, self.strides)

    @property
    def T(self) -> DeviceArray[_ScalarT]:  # noqa: N802  # NumPy's name
        """A view with the axes in the reverse order."""
        return self.transpose()

    def transpose(self, *axes: SupportsIndex) -> DeviceArray[_ScalarT]:
        """Return a view with the axes in another order; reversed if none is given.

        Raises:
            IndexError: they are not each of the axes once.
        """
        if not axes:
            return view_of(self, self.ptr, self._shape[::-1], self._dtype, self.strides[::-1])
        view = self._layout.transposed(checked_axes(axes, self.ndim))
        return view_of(self, self.ptr, view.shape, self._dtype, view.strides)

    @overload
    def reshape(self, shape: Shape, /) -> DeviceArray[_ScalarT]: ...
    @overload
    def reshape(self, *shape: SupportsIndex) -> DeviceArray[_ScalarT]: ...
    def reshape(self, *extents: Shape) -> DeviceArray[_ScalarT]:
        """Return a view of the same elements in C order; one extent may be -1.

        Raises:
            InvalidValueError: the shape has another number of elements, or the strides allow no
                view.
        """
        # Several arguments are extents, or the only one is; anything else fails there.
        new_extents = extents_of(extents[0] if len(extents) == 1 else extents)  # type: ignore[arg-type]
        shape = filled_in(new_extents, self.size)
        if self.is_contiguous:
            return view_of(self, self.ptr, shape, self._dtype)
        view = self._layout.reshaped(shape, self._dtype.itemsize)
        if view is None:
            raise errors.InvalidValueError(
                f"{self!r} has no view of the shape {shape}: make it contiguous by "
                "Stream.contiguous first"
            )
        return view_of(self, self.ptr, shape, self._dtype, view.strides)

    @overload
    def view(self, dtype: TypedDType[_OtherT]) -> DeviceArray[_OtherT]: ...
    # A dtype given as text has no static type.
    @overload
    def view(self, dtype: npt.DTypeLike) -> DeviceArray[Any]: ...
    def view(self, dtype: npt.DTypeLike) -> DeviceArray[Any]:
        """Return a view of the same bytes as another dtype; the last extent changes with its size.

        Raises:
            InvalidValueError: the last extent's bytes are not a multiple of the new item size, or
                not contiguous.
        """
        # The address is another object, as launches take one object for arrays of one dtype.
        new, size = checked_dtype(dtype), self._dtype.itemsize
        if new.itemsize == size:
            steps = None if self.is_contiguous else self.strides
            return view_of(self, self.ptr + 0, self._shape, new, steps)
        last = self._shape[-1:]
        row, surplus = divmod(math.prod(last) * size, new.itemsize)
        if surplus or not last or not (self.strides[-1] == size or last in ((0,), (1,))):
            raise errors.InvalidValueError(f"{self!r} has no view as {new}")
        strides = (*self.strides[:-1], new.itemsize)
        return view_of(self, self.ptr + 0, (*self._shape[:-1], row), new, strides)


class ArrayView(View, DeviceArray[_ScalarT]):
    """An array in the memory of another one, or of a buffer."""

    __slots__ = ()


class StridedArray(ArrayView[_ScalarT]):
    """A view whose elements do not lie in C order, one after the other.

    It has no `_address`: code that reads contiguous bytes from an address queries that and raises
    instead of reading wrong elements.
    """

    __slots__ = ("_start", "_strides")

    _start: int
    _strides: tuple[int, ...]

    if not TYPE_CHECKING:  # the slot of another class, which the type checker sees

        @property
        def _address(self) -> NoReturn:
            raise AttributeError("the elements of a strided view do not lie together")

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
        return self._strides

    @property
    def ptr(self) -> int:
        """The device address of the first element.

        Raises:
            ClosedError: the memory was freed.
        """
        self._memory  # noqa: B018  # raises once it was
        return self._start

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in C order, one after the other, as kernels require."""
        return False


def view_of(
    data: DeviceData,
    address: int,
    shape: tuple[int, ...],
    dtype: np.dtype[_ScalarT],
    strides: tuple[int, ...] | None = None,
) -> DeviceArray[_ScalarT]:
    """Return a view of elements from an address on; without strides they lie in C order."""
    view: ArrayView[_ScalarT]
    if strides is None or is_dense(shape, strides, dtype.itemsize):
        view = _new(ArrayView)
        view._address = address
    else:
        view = strided = _new(StridedArray)
        strided._start, strided._strides = address, strides
    view._base = data._root
    view._pointer, view._nbytes = None, math.prod(shape) * dtype.itemsize
    view._shape, view._dtype = shape, dtype
    if not view._nbytes:
        require_countable(shape)
    return view


AnyDeviceArray: TypeAlias = DeviceArray[Any]


# cuMemAllocPitch rounds to this on the devices of today; textures need 32 (driver 580, H100).
_PITCH_BYTES: Final = 512


C_ORDER: Final = "C"
"""The usual order of axes; `is_fortran` checks every other object."""


def empty(self: BaseStream, shape: Shape, dtype: npt.DTypeLike, order: str = "C") -> AnyDeviceArray:
    """Return a device array, not initialised; in the order "F" the first axis is innermost."""
    kind: AnyDType
    if dtype.__class__ in NUMBERS:
        kind = dtype
        nbytes = kind.itemsize
    else:
        try:
            kind, nbytes = NAMED[dtype]
        except (KeyError, TypeError):
            kind = checked_dtype(dtype)
            nbytes = kind.itemsize
    if type(shape) is int and shape >= 0:
        extents: tuple[int, ...] = (shape,)
        nbytes *= shape
    elif type(shape) is tuple and len(shape) == 1 and type(shape[0]) is int and shape[0] >= 0:
        extents = (shape[0],)
        nbytes *= shape[0]
    else:
        extents = checked_shape(shape)
        nbytes *= math.prod(extents)
        if not nbytes:
            require_countable(extents)
    array: AnyDeviceArray = _new(DeviceArray)
    array._shape, array._dtype = extents, kind
    array._allocate(self, nbytes)
    if order is not C_ORDER and is_fortran(order):
        array._shape = extents[::-1]
        return owning(array.T)
    return array


def is_fortran(order: object) -> bool:
    """Return whether the first axis is the innermost; called if an order is not `C_ORDER`."""
    if isinstance(order, str) and order in ("C", "F"):
        return order == "F"
    raise border.wrong_type("the order of an array", order, 'give "C" or "F"')


def empty_pitched(self: BaseStream, shape: Shape, dtype: npt.DTypeLike) -> AnyDeviceArray:
    """Return a device array, not initialised, whose rows begin at multiples of 512 bytes."""
    kind, extents = checked_dtype(dtype), checked_shape(shape)
    if not extents:
        raise InvalidValueError("an array of no dimensions has no rows: give one extent or more")
    row = extents[-1] * kind.itemsize
    # A pitch of whole elements, since other libraries count strides in elements.
    unit = math.lcm(_PITCH_BYTES, kind.itemsize)
    pitch = -(-row // unit) * unit
    rows = math.prod(extents[:-1])
    strides = (*dense_strides(extents[:-1], pitch), kind.itemsize)
    buffer = alloc(self, pitch * rows)
    return owning(view_of(buffer, buffer.ptr, extents, kind, strides))
