"""The positions of an array's elements: extents and strides, and how indexing changes them.

Plain integer arithmetic, by NumPy's rules. Strides are in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import index
from types import EllipsisType
from typing import NamedTuple, SupportsIndex, TypeAlias

from .. import border, errors

Shape: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
Key: TypeAlias = SupportsIndex | slice | EllipsisType | None
Keys: TypeAlias = Key | tuple[Key, ...]


class Layout(NamedTuple):
    """The positions of elements.

    Attributes:
        offset: of the first element, in bytes from the first one of the layout that it comes from.
        shape: the extents.
        strides: bytes from one element to the next along each axis.
    """

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def at(self, keys: tuple[Key, ...]) -> Layout:
        """Return the layout that integers, slices, an ellipsis and new axes select.

        Raises:
            ArgumentIndexError: there is no such element or axis.
            ArgumentTypeError: a key is something else.
        """
        offset, axis = 0, 0
        shape: list[int] = []
        strides: list[int] = []
        for key in _spelled_out(keys, len(self.shape)):
            if key is None:
                shape.append(1)
                strides.append(0)
                continue
            extent, stride = self.shape[axis], self.strides[axis]
            axis += 1
            if isinstance(key, slice):
                start, count, step = _slice(key, extent)
                offset += start * stride
                shape.append(count)
                strides.append(stride * step)
            else:
                offset += _place(key, extent) * stride
        shape += self.shape[axis:]
        strides += self.strides[axis:]
        # A layout without elements may have any offset.
        return Layout(0 if 0 in shape else offset, tuple(shape), tuple(strides))

    def transposed(self, axes: Sequence[int]) -> Layout:
        """Return the same elements with the axes in another order."""
        return Layout(
            0,
            tuple([self.shape[axis] for axis in axes]),
            tuple([self.strides[axis] for axis in axes]),
        )

    def reshaped(self, shape: tuple[int, ...], itemsize: int) -> Layout | None:
        """Return the layout in another shape, in C order; None where no strides express it.

        Axes of the two are matched in groups of equal size. Within a group the old ones must lie
        together, and the new ones divide them.
        """
        if 0 in shape:
            return Layout(0, shape, dense_strides(shape, itemsize))
        old = [
            dimension
            for dimension in zip(self.shape, self.strides, strict=True)
            if dimension[0] != 1
        ]
        strides, new_axis, old_axis = [0] * len(shape), 0, 0
        while old_axis < len(old):
            begin, old_axis = old_axis, old_axis + 1
            first, size, count = new_axis, 1, old[begin][0]
            while size != count:
                if size < count:
                    size *= shape[new_axis]
                    new_axis += 1
                else:
                    count *= old[old_axis][0]
                    old_axis += 1
            for (_, outer), (extent, inner) in pairwise(old[begin:old_axis]):
                if outer != extent * inner:
                    return None
            stride = old[old_axis - 1][1]
            for axis in reversed(range(first, new_axis)):
                strides[axis] = stride
                stride *= shape[axis]
        for axis in range(new_axis, len(shape)):  # extents of 1, which no group needed
            strides[axis] = itemsize
        return Layout(0, shape, tuple(strides))

    def bounds(self, itemsize: int) -> tuple[int, int]:
        """Return the offsets of the first byte and after the last, equal if there are no bytes."""
        if 0 in self.shape:
            return 0, 0
        steps = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        return sum(s for s in steps if s < 0), sum(s for s in steps if s > 0) + itemsize

    def each_once(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return extents and strides of axes that lead to each element exactly once.

        They start at the lowest element. This works only as far as steps of one axis are whole
        steps of another; `overlaps_itself` reports other layouts.
        """
        axes: list[tuple[int, int]] = []
        for stride, n in sorted((abs(s), n) for n, s in zip(self.shape, self.strides, strict=True)):
            if stride == 0 or n == 1:
                continue
            step, count = axes[-1] if axes else (1, 0)
            if stride % step == 0 and stride <= step * count:
                axes[-1] = step, count + (n - 1) * (stride // step)
            else:
                axes.append((stride, n))
        axes.reverse()
        return tuple(n for _, n in axes), tuple(stride for stride, _ in axes)

    def overlaps_itself(self, itemsize: int) -> bool:
        """Return whether two elements may share a byte; it may return True where none do."""
        axes = sorted(
            (abs(stride), n) for n, stride in zip(self.shape, self.strides, strict=True) if n > 1
        )
        span = itemsize
        for stride, n in axes:
            if stride < span:
                return 0 not in self.shape
            span = stride * (n - 1) + span
        return False


def rows_at(key: int | slice, extent: int) -> tuple[int, tuple[int, ...] | None]:
    """Return the first of the rows that an index selects, and their extents: the fast path.

    None instead of these if the rows are not contiguous.
    """
    if not isinstance(key, slice):
        return _place(key, extent), ()
    begin, count, step = _slice(key, extent)
    return (begin if count else 0), (count,) if step == 1 else None


def dense_strides(shape: tuple[int, ...], itemsize: int, order: str = "C") -> tuple[int, ...]:
    """Return strides of elements one after the other; in "C" the last axis is the innermost."""
    strides, stride = [0] * len(shape), itemsize
    axes = range(len(shape))
    for axis in axes if order == "F" else reversed(axes):
        strides[axis] = stride
        stride *= max(shape[axis], 1)
    return tuple(strides)


def is_dense(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Return whether elements lie in C order, one after the other."""
    if 0 in shape:
        return True
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1:  # the stride of a single one does not matter
            if stride != itemsize:
                return False
            itemsize *= extent
    return True


def checked_shape(shape: Shape) -> tuple[int, ...]:
    """Return the shape as a tuple of extents of 0 or more."""
    if type(shape) is tuple:  # the most frequent form
        for extent in shape:
            if type(extent) is not int or extent < 0:
                break
        else:
            return shape
    extents = extents_of(shape)
    if extents and min(extents) < 0:
        raise errors.InvalidValueError(f"shape {extents}: extents are 0 or more")
    return extents


def require_countable(shape: tuple[int, ...]) -> None:
    """Raise if an axis of elements without bytes has more of them than Python can index."""
    if shape and max(shape) > border.LARGEST:
        raise errors.ArgumentValueError(f"shape {shape}: extents are at most {border.LARGEST}")


def extents_of(shape: Shape) -> tuple[int, ...]:
    """Return the integers of a shape."""
    if type(shape) is int:
        return (shape,)
    try:
        if type(shape) is tuple or isinstance(shape, Sequence):  # the quick test first
            return tuple(map(border.index_of, shape))
        return (border.index_of(shape),)
    except TypeError:
        pass
    try:
        # Such as an array of extents.
        return tuple(map(border.index_of, shape))  # type: ignore[arg-type]
    except TypeError:
        expected = f"an integer or several, not {border.shown(shape)}"
        raise errors.ArgumentTypeError(f"a shape is {expected}") from None


def filled_in(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Return a shape of `size` elements, with its one extent of -1 filled in.

    Raises:
        InvalidValueError: it has another number of elements.
    """
    if -1 in shape:
        product = math.prod([extent for extent in shape if extent != -1])
        if shape.count(-1) == 1 and product and size % product == 0:
            shape = tuple([size // product if extent == -1 else extent for extent in shape])
    if (shape and min(shape) < 0) or math.prod(shape) != size:
        raise errors.InvalidValueError(f"{size} elements do not reshape to {shape}")
    return shape


def checked_axes(axes: Sequence[SupportsIndex], ndim: int) -> tuple[int, ...]:
    """Return an order of all axes, as numbers from 0.

    Raises:
        ArgumentIndexError: one is missing, or appears twice.
    """
    numbers = extents_of(tuple(axes))
    order = tuple(axis + ndim if axis < 0 else axis for axis in numbers)
    if sorted(order) != list(range(ndim)):
        raise errors.ArgumentIndexError(f"axes {numbers} are not each of the {ndim} axes once")
    return order


def _spelled_out(keys: tuple[Key, ...], ndim: int) -> Iterator[SupportsIndex | slice | None]:
    """Yield the keys with whole axes in place of an ellipsis."""
    n_indexed = sum(1 for key in keys if key is not None and key is not Ellipsis)
    if n_indexed > ndim:
        raise errors.ArgumentIndexError(f"{n_indexed} indices for an array of {ndim} dimensions")
    if sum(1 for key in keys if key is Ellipsis) > 1:
        raise errors.ArgumentIndexError("an index has one ellipsis ('...') at most")
    for key in keys:
        if key is Ellipsis:
            yield from (slice(None),) * (ndim - n_indexed)
        else:
            yield key


def _slice(key: slice, extent: int) -> tuple[int, int, int]:
    """Return the first index that a slice selects on an axis, the count, and the step."""
    try:
        start, stop, step = key.indices(extent)
    except ValueError as error:  # a step of 0
        raise errors.InvalidValueError(f"{key}: {error}") from None
    except TypeError as error:
        raise errors.ArgumentTypeError(f"{key} is not a slice of integers") from error
    return start, len(range(start, stop, step)), step


def _place(key: SupportsIndex, extent: int) -> int:
    """Return the position that an index selects on an axis."""
    try:
        position = index(key)
    except TypeError:
        position = None
    if position is None or isinstance(key, bool):
        expected = f"integers, slices, ... and None, not {type(key).__name__}"
        raise errors.ArgumentTypeError(f"a device array is indexed by {expected}")
    if not -extent <= position < extent:
        raise errors.ArgumentIndexError(f"index {position} is out of range for an axis of {extent}")
    return position % extent
