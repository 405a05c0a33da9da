"""Where the elements of an array lie: extents and strides, and what indexing makes of them.

Plain arithmetic with whole numbers, by NumPy's rules. Strides are in bytes.
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
    """Where elements lie.

    Attributes:
        offset: of the first element, in bytes from that of the layout that it was made of.
        shape: the extents.
        strides: bytes from one element to the next along each axis.
    """

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def at(self, keys: tuple[Key, ...]) -> Layout:
        """What whole numbers, slices, an ellipsis and new axes take of it.

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
        # What has no elements lies anywhere.
        return Layout(0 if 0 in shape else offset, tuple(shape), tuple(strides))

    def transposed(self, axes: Sequence[int]) -> Layout:
        """The same elements with the axes in another order."""
        return Layout(
            0, tuple(self.shape[axis] for axis in axes), tuple(self.strides[axis] for axis in axes)
        )

    def reshaped(self, shape: tuple[int, ...], itemsize: int) -> Layout | None:
        """The same elements in C order in another shape of as many; None where they lie apart.

        Axes of the two are matched in groups of equal size. Within a group the old ones must lie
        together, and the new ones divide them.
        """
        if 0 in shape:
            return Layout(0, shape, dense_strides(shape, itemsize))
        old = [each for each in zip(self.shape, self.strides, strict=True) if each[0] != 1]
        strides, done, taken = [0] * len(shape), 0, 0
        while taken < len(old):
            begin, taken = taken, taken + 1
            first, size, count = done, 1, old[begin][0]
            while size != count:
                if size < count:
                    size *= shape[done]
                    done += 1
                else:
                    count *= old[taken][0]
                    taken += 1
            for (_, outer), (extent, inner) in pairwise(old[begin:taken]):
                if outer != extent * inner:
                    return None
            stride = old[taken - 1][1]
            for axis in reversed(range(first, done)):
                strides[axis] = stride
                stride *= shape[axis]
        for axis in range(done, len(shape)):  # extents of 1, which no group needed
            strides[axis] = itemsize
        return Layout(0, shape, tuple(strides))

    def bounds(self, itemsize: int) -> tuple[int, int]:
        """The first byte and the one behind the last, from the first element; of 0 bytes alike."""
        if 0 in self.shape:
            return 0, 0
        steps = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        return sum(s for s in steps if s < 0), sum(s for s in steps if s > 0) + itemsize

    def each_once(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Extents and strides of axes that lead from the lowest element to each, and to none twice.

        As far as steps of one axis are whole steps of another; `overlaps_itself` tells of others.
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
        """Whether two elements may share a byte; it may say so of some where none do."""
        axes = sorted(
            (abs(stride), n) for n, stride in zip(self.shape, self.strides, strict=True) if n > 1
        )
        behind = itemsize
        for stride, n in axes:
            if stride < behind:
                return 0 not in self.shape
            behind = stride * (n - 1) + behind
        return False


def rows_at(key: int | slice, extent: int) -> tuple[int, tuple[int, ...] | None]:
    """The first of the rows that a number or a slice takes, and their extents: the quick way.

    None instead of these where the rows do not lie together.
    """
    if not isinstance(key, slice):
        return _place(key, extent), ()
    begin, count, step = _slice(key, extent)
    return (begin if count else 0), (count,) if step == 1 else None


def dense_strides(shape: tuple[int, ...], itemsize: int, order: str = "C") -> tuple[int, ...]:
    """The strides of elements that lie one behind the other, the last axis the nearest in "C"."""
    strides, stride = [0] * len(shape), itemsize
    axes = range(len(shape))
    for axis in axes if order == "F" else reversed(axes):
        strides[axis] = stride
        stride *= max(shape[axis], 1)
    return tuple(strides)


def is_dense(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether elements lie in C order, one behind the other."""
    if 0 in shape:
        return True
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1:  # the stride of a single one does not matter
            if stride != itemsize:
                return False
            itemsize *= extent
    return True


def checked_shape(shape: Shape) -> tuple[int, ...]:
    """The shape as a tuple of extents of 0 or more."""
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
    """Raise where elements that take no bytes are more along an axis than Python counts by."""
    if shape and max(shape) > border.LARGEST:
        raise errors.ArgumentValueError(f"shape {shape}: extents are at most {border.LARGEST}")


def extents_of(shape: Shape) -> tuple[int, ...]:
    """The whole numbers that a shape is given as."""
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


def filled_in(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """A shape of `size` elements, whose one extent of -1 is found.

    Raises:
        InvalidValueError: it has another number of elements.
    """
    known = math.prod(extent for extent in shape if extent != -1)
    if shape.count(-1) == 1 and known and size % known == 0:
        shape = tuple(size // known if extent == -1 else extent for extent in shape)
    if (shape and min(shape) < 0) or math.prod(shape) != size:
        raise errors.InvalidValueError(f"{size} elements do not reshape to {shape}")
    return shape


def checked_axes(axes: Sequence[SupportsIndex], ndim: int) -> tuple[int, ...]:
    """An order of all axes, as numbers from 0.

    Raises:
        ArgumentIndexError: one is missing, or is there twice.
    """
    places = extents_of(tuple(axes))
    found = tuple(axis + ndim if axis < 0 else axis for axis in places)
    if sorted(found) != list(range(ndim)):
        raise errors.ArgumentIndexError(f"axes {places} are not each of the {ndim} axes once")
    return found


def _spelled_out(keys: tuple[Key, ...], ndim: int) -> Iterator[SupportsIndex | slice | None]:
    """The keys with whole axes in the place of an ellipsis."""
    taken = sum(1 for key in keys if key is not None and key is not Ellipsis)
    if taken > ndim:
        raise errors.ArgumentIndexError(f"{taken} indices for an array of {ndim} dimensions")
    if sum(1 for key in keys if key is Ellipsis) > 1:
        raise errors.ArgumentIndexError("an index has one ellipsis ('...') at most")
    for key in keys:
        if key is Ellipsis:
            yield from (slice(None),) * (ndim - taken)
        else:
            yield key


def _slice(key: slice, extent: int) -> tuple[int, int, int]:
    """The first place that a slice takes of an axis, how many, and the step."""
    try:
        start, stop, step = key.indices(extent)
    except ValueError as error:  # a step of 0
        raise errors.InvalidValueError(f"{key}: {error}") from None
    except TypeError as error:
        raise errors.ArgumentTypeError(f"{key} is no slice of whole numbers") from error
    return start, len(range(start, stop, step)), step


def _place(key: SupportsIndex, extent: int) -> int:
    """The position that an index names on an axis."""
    try:
        place = index(key)
    except TypeError:
        place = None
    if place is None or isinstance(key, bool):
        what = f"whole numbers, slices, ... and None, not {type(key).__name__}"
        raise errors.ArgumentTypeError(f"a device array is indexed by {what}")
    if not -extent <= place < extent:
        raise errors.ArgumentIndexError(f"index {place} is out of range for an axis of {extent}")
    return place % extent
