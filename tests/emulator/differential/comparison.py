"""Whether results are those of a recording, and how far off approximate ones are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.emulator.differential.case import Bound, Case
from tests.emulator.differential.recording import Bits, Result

_FLOATS = {2: "f2", 4: "f4", 8: "f8"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came out for one case.

    Attributes:
        problems: a line for each part that differs; empty where all is well.
        worst_ulp: the largest difference of an approximate result, in units in the last place.
        worst_share: the largest difference as a share of what the bound allows.
        compared: elements.
    """

    problems: tuple[str, ...]
    worst_ulp: float = 0.0
    worst_share: float = 0.0
    compared: int = 0


def compare(case: Case, recorded: list[Result], got: list[Bits]) -> Comparison:
    """Hold the arrays of a run against the recorded ones."""
    problems: list[str] = []
    worst_ulp = worst_share = 0.0
    for number, (want, bits) in enumerate(zip(recorded, got, strict=True)):
        if bits.dtype.str[1:] != want.dtype or len(bits) != want.count:
            problems.append(f"array {number}: {len(bits)} of {bits.dtype}, recorded another shape")
        elif case.bound is None:
            problems += _exact(case, number, want, bits)
        else:
            found = _approximate(case, case.bound, want, bits)
            problems += found.problems
            worst_ulp = max(worst_ulp, found.worst_ulp)
            worst_share = max(worst_share, found.worst_share)
    compared = sum(len(bits) for bits in got)
    return Comparison(tuple(problems), worst_ulp, worst_share, compared)


def _row(case: Case, position: int, count: int) -> str:
    return case.rows[position * len(case.rows) // count] if case.rows else ""


def _named(case: Case, position: int, count: int) -> str:
    return f" ({_row(case, position, count)})" if case.rows else ""


def _exact(case: Case, number: int, want: Result, got: Bits) -> list[str]:
    if want.part:
        at, problems = set(want.wrong_parts(got)), []
        kept, have = want.values(), want.sample_of(got)
        starts = np.arange(0, want.count, want.part)
        samples = len(kept) // len(starts) or 1
        for part in sorted(at):
            begin = int(starts[part])
            if _row(case, begin, want.count) in case.open_rows:
                continue
            text = f"array {number} from element {begin}{_named(case, begin, want.count)} differs"
            for lane in range(part * samples, min((part + 1) * samples, len(kept))):
                if kept[lane] != have[lane]:
                    text += (
                        f": lane {lane - part * samples} is {have[lane]:#x}, not {kept[lane]:#x}"
                    )
                    break
            problems.append(text)
        return problems
    kept = want.values()
    return [
        f"array {number}, element {i}{_named(case, i, want.count)}: {got[i]:#x}, not {kept[i]:#x}"
        for i in np.flatnonzero(kept != got).tolist()
    ]


def _approximate(case: Case, bound: Bound, want: Result, got: Bits) -> Comparison:
    kept = want.values()
    bfloat = "bf16" in case.name
    x, y = _numbers(got, case, bfloat), _numbers(kept, case, bfloat)
    bits, wanted = (each.view(f"u{x.itemsize}") for each in (x, y))
    with np.errstate(all="ignore"):
        ulps = np.abs(_ordered(bits) - _ordered(wanted)).astype(np.float64)
        if bfloat:
            ulps /= 65536
        difference = np.abs(x.astype(np.float64) - y.astype(np.float64))
        allowed = np.maximum(bound.relative * np.abs(y.astype(np.float64)), bound.absolute)
        shares = np.fmin(
            np.where(ulps == 0, 0.0, ulps / bound.ulp if bound.ulp else np.inf),
            np.where(difference == 0, 0.0, difference / allowed),
        )
    shares = np.where(np.isnan(x) & np.isnan(y), 0.0, shares)
    ulps = np.where(np.isnan(x) & np.isnan(y), 0.0, ulps)
    shares = np.where(np.isnan(x) != np.isnan(y), np.inf, shares)
    problems = [
        f"element {i}{_named(case, i, len(x))}: {x[i]!r}, not {y[i]!r}, {ulps[i]:.6g} ulp off"
        for i in np.flatnonzero(shares > 1).tolist()
    ]
    finite = np.isfinite(shares)
    return Comparison(
        tuple(problems),
        max(ulps[finite].tolist(), default=0.0),
        max(shares[finite].tolist(), default=0.0),
    )


def _numbers(bits: Bits, case: Case, bfloat: bool) -> Bits:
    """The floats that bits are; bfloats and pairs are taken apart."""
    if bfloat:
        return (bits.view("<u2").astype(np.uint32) << np.uint32(16)).view("f4")
    return bits.view("<f2") if "f16" in case.name else bits.view(_FLOATS[bits.itemsize])


def _ordered(bits: Bits) -> Bits:
    """Integers in the order of the floats, so that neighbours differ by one."""
    width = bits.itemsize * 8
    signed = bits.astype(np.uint64).astype(np.int64)
    if width == 64:
        magnitude = signed & np.int64(0x7FFFFFFFFFFFFFFF)
        return np.where(signed < 0, -magnitude, magnitude)
    top = 1 << (width - 1)
    return np.where(signed >= top, top - signed, signed)
