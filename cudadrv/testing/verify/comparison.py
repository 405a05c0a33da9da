"""Compare the arrays of a kernel with those of its reference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ... import border
from ...errors import ArgumentValueError
from .verdict import CannotVerifyError

Host: TypeAlias = npt.NDArray[np.generic]
Mask: TypeAlias = npt.NDArray[np.bool_]
_RELATIVE: Final = {2: 1e-2, 4: 1e-5, 8: 1e-12}
"""By the bytes of a float, where no tolerance is given."""
_ABSOLUTE: Final = {2: 1e-2, 4: 1e-5, 8: 1e-12}


class ReferenceArrays(dict[str, Host]):
    """The arrays of a reference, by argument.

    Attributes:
        opened: the elements that it leaves unwritten, of arrays that have such.
    """

    __slots__ = ("opened",)

    def __init__(self, arrays: Mapping[str, Host], opened: Mapping[str, Mask]) -> None:
        super().__init__(arrays)
        self.opened: Mapping[str, Mask] = opened

    def open_elements(self, name: str) -> Mask:
        """Return which elements of an array the kernel may leave unwritten, too."""
        mask = self.opened.get(name)
        return np.zeros(self[name].shape, np.bool_) if mask is None else mask

    @property
    def compares_anything(self) -> bool:
        """Return whether an element has a value that the kernel's must equal."""
        return any(not self.open_elements(name).all() for name in self if self[name].size)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a float may be from the reference. Integers must be equal.

    Without arguments it depends on the type: 1e-2 of float16, 1e-5 of float32 and 1e-12 of float64,
    relative and absolute. NaN equals NaN, and an infinity the same infinity.

    Attributes:
        relative: a share of the reference.
        absolute: a difference.
        ulps: units in the last place of the kernel's type, instead of both others.
    """

    relative: float | None = None
    absolute: float | None = None
    ulps: int | None = None

    def __post_init__(self) -> None:
        if self.ulps is not None and (self.relative is not None or self.absolute is not None):
            raise ArgumentValueError("Tolerance: give ulps, or relative and absolute")
        for name in ("relative", "absolute"):
            value = getattr(self, name)
            # Infinity times a reference of zero is NaN, which nothing is near to.
            if value is not None and not 0 <= border.real(f"Tolerance: {name}", value) < math.inf:
                raise ArgumentValueError(
                    f"Tolerance: {name} is {border.shown(value)}: give a finite number of 0 or more"
                )
        border.integer_fields(self, "ulps", least=0)

    def scaled(self, expected: Host) -> Tolerance:
        """Return the tolerance of small numbers: zeros must not pass for them.

        Without arguments the absolute difference is a share of the largest number, if that is
        below one.
        """
        width = expected.dtype.itemsize
        if self != Tolerance() or expected.dtype.kind != "f" or width not in _RELATIVE:
            return self
        finite = np.abs(expected[np.isfinite(expected)]).astype(np.float64)
        most = min(1.0, float(np.max(finite, initial=0)))
        return Tolerance(relative=_RELATIVE[width], absolute=_ABSOLUTE[width] * most)

    def differs(self, actual: Host, expected: Host) -> npt.NDArray[np.bool_]:
        """Return which elements are too far from the reference."""
        if actual.dtype.kind not in "fcV":
            return np.asarray(actual != expected, np.bool_)
        wide = np.complex128 if actual.dtype.kind == "c" else np.float64
        with np.errstate(all="ignore"):
            kernel, reference = actual.astype(wide), expected.astype(wide)
            is_same = (kernel == reference) | (np.isnan(kernel) & np.isnan(reference))
            apart = np.abs(kernel - reference)
            is_near = apart <= self._allowed_difference(actual.dtype, reference)
            # A reference that is finite in a wider type overflows in the kernel's.
            is_overflow = np.isinf(kernel) & (reference.astype(actual.dtype).astype(wide) == kernel)
        finite = np.isfinite(kernel) & np.isfinite(reference)
        return np.asarray(~(is_same | is_overflow | (is_near & finite)), np.bool_)

    def _allowed_difference(
        self, dtype: np.dtype[np.generic], reference: Host
    ) -> npt.NDArray[np.float64]:
        size = np.abs(reference).astype(np.float64)
        if self.ulps is not None:
            units = np.spacing(np.abs(reference).astype(dtype)).astype(np.float64)
            return self.ulps * np.where(np.isfinite(units), units, 0)
        width = dtype.itemsize // (2 if dtype.kind == "c" else 1)
        is_given = self.relative is not None or self.absolute is not None
        relative = (
            (0 if is_given else _RELATIVE.get(width, 1e-2))
            if self.relative is None
            else (self.relative)
        )
        absolute = (
            (0 if is_given else _ABSOLUTE.get(width, 1e-2))
            if self.absolute is None
            else (self.absolute)
        )
        allowed: npt.NDArray[np.float64] = absolute + relative * size
        return allowed


def checked_reference(name: str, value: object, actual: Host) -> Host:
    """Return the reference's array of an argument.

    Raises:
        CannotVerifyError: it has another shape, or a type that the kernel's cannot hold.
    """
    expected: Host = np.asarray(value)
    if expected.shape != actual.shape:
        if expected.ndim:
            raise CannotVerifyError(
                f"the reference's {name} has shape {expected.shape}, the kernel's {actual.shape}\n"
                "  return an array of the kernel's shape"
            )
        expected = np.full(actual.shape, expected)
    if not np.can_cast(expected.dtype, actual.dtype, "same_kind") and not (
        expected.dtype.kind in "iub" and actual.dtype.kind in "iub"
    ):
        raise CannotVerifyError(
            f"the reference's {name} has dtype {expected.dtype}, the kernel's {actual.dtype}\n"
            f"  return {actual.dtype}, or a wider type of the same kind"
        )
    return expected


def difference(
    name: str, actual: Host, expected: Host, tolerance: Tolerance, skipped: Mask | None = None
) -> str:
    """Return in words how an array differs from the reference; "" if it does not.

    `skipped` selects elements that are not compared.
    """
    wrong = tolerance.differs(actual, expected)
    wrong = wrong if skipped is None else wrong & ~skipped
    count = int(np.count_nonzero(wrong))
    if not count:
        return ""
    index = tuple(int(coordinate) for coordinate in np.argwhere(wrong)[0])
    place = _place(name, index)
    return (
        f"values: {place} is {actual[index]!s}, the reference has {expected[index]!s}\n"
        f"  {count} of {actual.size} elements of {name} differ"
    )


def bits_differ(first: Host, second: Host) -> Mask:
    """Return which elements of two arrays of one type have other bits."""
    pairs = (np.ascontiguousarray(each).reshape(-1, 1).view(np.uint8) for each in (first, second))
    one, other = pairs
    return np.asarray(np.any(one != other, axis=1).reshape(first.shape), np.bool_)


def input_difference(name: str, actual: Host, before: Host) -> str:
    """Return in words how a kernel changed the bits of an input."""
    size = before.dtype.itemsize
    bits = (
        np.ascontiguousarray(each).view(np.uint8).reshape(-1, size) for each in (actual, before)
    )
    first, second = bits
    changed = np.any(first != second, axis=1)
    number = int(np.flatnonzero(changed)[0])
    index = tuple(int(coordinate) for coordinate in np.unravel_index(number, before.shape))
    return (
        f"values: {_place(name, index)} is {actual[index]!s} after the kernel, and "
        f"{before[index]!s} before\n"
        f"  {int(np.count_nonzero(changed))} of {before.size} elements of {name} change, which the "
        "reference only reads"
    )


def within(actual: Host, expected: Host, allowed: npt.NDArray[np.float64]) -> Mask:
    """Return which elements are at most as far from the reference as is allowed."""
    with np.errstate(all="ignore"):
        apart = np.abs(actual.astype(np.complex128) - expected.astype(np.complex128))
    return np.asarray((apart <= allowed) | np.isinf(allowed), np.bool_)


def unwritten_elements(name: str, unwritten: Mask) -> str:
    """Return in words which elements nothing has written; "" if there are none."""
    count = int(np.count_nonzero(unwritten))
    if not count:
        return ""
    index = tuple(int(coordinate) for coordinate in np.argwhere(unwritten)[0])
    return (
        f"init: {_place(name, index)} has a value in the reference, and the kernel does not write "
        f"it\n  {count} of {unwritten.size} elements of {name} are unwritten: does the grid cover "
        "them?"
    )


def _place(name: str, index: tuple[int, ...]) -> str:
    return f"{name}[{', '.join(map(str, index))}]" if index else name
