"""Compare results with those of a GPU, by form, and name the reason of each known difference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .case import Bits, Case

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Allowed:
    """A difference that is known and explained: docs/hardware.md has the facts.

    Attributes:
        forms: a pattern of their names.
        why: the reason.
        ulps: units in the last place of the GPU's result.
        absolute: a difference, where units are too small, as near zeros of a function.
        relative: a share of the GPU's result.
    """

    forms: str
    why: str
    ulps: int = 0
    absolute: float = 0.0
    relative: float = 0.0


_TABLE: Final = "the function of the hardware is a table that is not published"
ALLOWED: Final = (
    Allowed(r"div\.(approx|full)(\.ftz)?\.f32", _TABLE, 2),
    Allowed(r"rcp\.approx(\.ftz)?\.f32", _TABLE, 1),
    Allowed(r"(ex2|sqrt|rsqrt)\.approx(\.ftz)?\.f32", _TABLE, 2),
    Allowed(r"rsqrt\.approx\.f64", _TABLE, 1),
    Allowed(r"(rcp|rsqrt)\.approx\.ftz\.f64", _TABLE, relative=1e-6),
    Allowed(r"(sin|cos)\.approx(\.ftz)?\.f32", _TABLE, absolute=2.0**-21),
    Allowed(r"lg2\.approx(\.ftz)?\.f32", _TABLE, 2, absolute=2.0**-22),
    Allowed(r"tanh\.approx\.f32", _TABLE, absolute=8e-6),
    Allowed(r"(ex2|tanh)\.approx(\.ftz)?\.b?f16(x2)?", _TABLE, 1),
)
"""The only forms whose results may differ."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A form, or a program, whose results differ from the GPU's.

    Attributes:
        name: of the form, or of the case.
        count: of the threads whose results differ more than is allowed.
        emulator, gpu: the first of them, as bits.
        threads: the numbers of the first threads.
    """

    name: str
    count: int
    emulator: tuple[str, ...]
    gpu: tuple[str, ...]
    threads: tuple[int, ...]

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.count} threads differ: threads {self.threads}, "
            f"emulator {', '.join(self.emulator)}, GPU {', '.join(self.gpu)}"
        )


def differences(
    case: Case, got: Sequence[Bits], gpu: Sequence[Bits], orders: Sequence[Sequence[Bits]] = ()
) -> Iterator[Difference]:
    """Yield the results of a case that differ and are not explained.

    Args:
        case: the kernel.
        got: the results of the emulator.
        gpu: those of the GPU.
        orders: further results of the emulator, in other orders of its threads. Integers that
            depend on the order are not compared. Floats lie within twice the spread of all orders.
    """
    for number, (mine, other) in enumerate(zip(got, gpu, strict=True)):
        name = case.forms[number] if case.forms else case.name
        rows = mine.reshape(case.threads, -1), other.reshape(case.threads, -1)
        wrong = (rows[0] != rows[1]).any(axis=1)
        allowed = allowed_for(name) if case.forms else None
        if orders:
            wrong = ~_is_within(name, [mine, *(each[number] for each in orders)], other)
        elif allowed is not None:
            wrong &= ~is_near(name, allowed, *rows)
        threads = np.flatnonzero(wrong)
        if threads.size:
            first = threads[:_SHOWN]
            mine_shown, gpu_shown = (tuple(_hex(part[k]) for k in first) for part in rows)
            yield Difference(name, threads.size, mine_shown, gpu_shown, tuple(map(int, first)))


def _is_within(form: str, orders: Sequence[Bits], gpu: Bits) -> NDArray[np.bool_]:
    """Return for each thread whether its results are those of some order of the threads."""
    results = [each.reshape(-1, 2, 8) for each in (*orders, gpu)]
    is_float = _format(form) in ("f16", "f32", "f64")
    near = []
    for column in range(2):
        *found, other = (np.ascontiguousarray(each[:, column]) for each in results)
        depends = any((each != found[0]).any() for each in found)
        if not depends:
            near.append((found[0] == other).all(axis=1))
        elif is_float:
            values = np.array([_values(form, each)[:, 0] for each in found])
            spread = np.ptp(values)
            value = _values(form, other)[:, 0]
            # An H200 was three times the spread of eight orders from the nearest, and within 16.
            low, high = values.min() - 2 * spread, values.max() + 2 * spread
            near.append((low <= value) & (value <= high))
    return np.all(near, axis=0) if near else np.ones(len(results[0]), np.bool_)


def allowed_for(form: str) -> Allowed | None:
    """Return what a form may differ by; None if its bits must be the GPU's."""
    return next((each for each in ALLOWED if re.fullmatch(each.forms, form)), None)


def _hex(row: Bits) -> str:
    return f"0x{int.from_bytes(row.tobytes(), 'little'):x}"


def is_near(form: str, allowed: Allowed, mine: Bits, gpu: Bits) -> NDArray[np.bool_]:
    """Return for each thread whether all of its values are as near as is allowed."""
    got, want = _values(form, mine), _values(form, gpu)
    with np.errstate(all="ignore"):
        apart, size = np.abs(got - want), np.abs(want)
        limit = np.maximum(allowed.absolute, allowed.relative * size)
        limit = np.maximum(limit, allowed.ulps * _unit(form, size))
        near = (got == want) | (np.isfinite(got) & np.isfinite(want) & (apart <= limit))
    same = np.isnan(got) & np.isnan(want) & (_bits(form, mine) == _bits(form, gpu))
    return np.asarray((near | same).all(axis=1), np.bool_)


def _format(form: str) -> str:
    return form.rpartition(".")[2].removesuffix("x2")


def _bits(form: str, rows: Bits) -> Bits:
    """Return the bits of each value: each result takes eight bytes of a row."""
    width = {"f64": 8, "f32": 4}.get(_format(form), 2)
    count = 2 if form.endswith("x2") else 1
    words = rows.reshape(len(rows), -1, 8)[:, :, : width * count]
    return np.ascontiguousarray(words).view(f"<u{width}").reshape(len(rows), -1)


def _values(form: str, rows: Bits) -> NDArray[np.float64]:
    bits = _bits(form, rows)
    if _format(form) == "bf16":
        return np.asarray((bits.astype("<u4") << 16).view("<f4"), np.float64)
    return np.asarray(bits.view(bits.dtype.str.replace("u", "f")), np.float64)


def _unit(form: str, size: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a unit in the last place of each value."""
    digits, least = {"f64": (52, -1022), "f32": (23, -126), "f16": (10, -14), "bf16": (7, -126)}[
        _format(form)
    ]
    exponent = np.maximum(np.frexp(np.where(np.isfinite(size), size, 1.0))[1] - 1, least)
    return np.asarray(np.ldexp(1.0, exponent - digits), np.float64)
