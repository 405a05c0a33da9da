"""Explain the differences of a trial: `python -m campaigns.hardware.explained FOLDER [options]`.

The folder is a trial of forms and programs: `trial.py`, `cases.jsonl.gz`, `ptx`, and the GPU's
results in `h200.tar.xz`. A form is explained if its results are within the bound of an approximate
instruction. A kernel is explained if the emulator gives the GPU's bits for the text with changes
that the assembler is known to make. The command prints a table, and fails if anything is left.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import re
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from .assembled import KINDS, Change, changed, changes
from .case import Bits
from .comparison import allowed_for, is_near
from .nan_bits import with_other_nans

OPEN: Final = "bits of a NaN"
"""The kind of values that change with the bits of some NaN, and so are not defined by PTX."""
_OPEN_WHY: Final = "the values change with bits of a NaN that PTX leaves open"
_VARIANTS: Final = 8
_SEEDS: Final = 2
_SECONDS_OF_A_CASE: Final = 600.0
_WIDTHS: Final = {"f8": 8, "i8": 8, "f4": 4, "i4": 4, "f2": 2, "i2": 2, "i1": 1}
Count = Callable[[str, Sequence[str]], Counter[str]]
"""Returns the values that differ for a text, by the form, or "" of a program.

The second argument has variants of the text. A value that differs among them does not count.
"""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a kernel's results differ.

    Attributes:
        kinds: of the changes without which some values differ, in their order in `KINDS`.
        left: the values that differ with all of them, by their form.
    """

    kinds: tuple[str, ...]
    left: Counter[str]


def explanation(ptx: str, count: Count, seconds: float = _SECONDS_OF_A_CASE) -> Explanation:
    """Return the fewest kinds of changes with which no value differs, if there are such.

    Args:
        ptx: the kernel, of which some value differs.
        count: compares the emulator's results for a text with the GPU's.
        seconds: the most time to search.
    """
    end = time.monotonic() + seconds
    known = changes(ptx)
    chosen = {each.line: each for each in reversed(known) if each.is_certain}
    left = _count(ptx, chosen, count)
    is_better = True
    while left and is_better and time.monotonic() < end:
        is_better = False
        for each in known:
            if each.is_certain or not left:
                continue
            tried = {**chosen, each.line: each}
            found = _count(ptx, tried, count)
            if found.total() < left.total():
                chosen, left, is_better = tried, found, True
    kinds = _needed(ptx, chosen, left, count)
    if left:
        text = changed(ptx, list(chosen.values()))
        defined = count(text, [with_other_nans(text, seed) for seed in range(_VARIANTS)])
        if defined.total() < left.total():
            return Explanation((*kinds, OPEN), defined)
    return Explanation(kinds, left)


def _count(ptx: str, chosen: dict[int, Change], count: Count) -> Counter[str]:
    return count(changed(ptx, list(chosen.values())), ())


def _needed(
    ptx: str, chosen: dict[int, Change], left: Counter[str], count: Count
) -> tuple[str, ...]:
    """Return the kinds of which some change is needed."""
    needed = []
    for kind in KINDS:
        others = {line: each for line, each in chosen.items() if each.kind != kind}
        if len(others) == len(chosen):
            continue
        if _count(ptx, others, count).total() <= left.total():
            chosen = others
        else:
            needed.append(kind)
    return tuple(needed)


class _Trial:
    """The cases of a folder, and the GPU's results."""

    def __init__(self, folder: Path) -> None:
        self._module = _module_of(folder / "trial.py")
        with tarfile.open(folder / "h200.tar.xz") as tar:
            self._stored = {
                member.name.removeprefix("./"): file.read()
                for member in tar
                if (file := tar.extractfile(member)) is not None
            }
        with gzip.open(folder / "cases.jsonl.gz", "rt") as lines:
            self.cases: list[dict[str, Any]] = [json.loads(line) for line in lines]  # of JSON

    def text(self, case: dict[str, Any]) -> str:
        """Return the PTX of a case."""
        text: str = self._module.load_text(case["file"])
        return text

    def count(self, case: dict[str, Any], text: str, variants: Sequence[str] = ()) -> Counter[str]:
        """Return the values of a case that differ more than is allowed, by form.

        Values that differ among the variants of the text do not count.
        """
        emulator, *others = (
            self._module.Emu(each, case.get("globals", [])) for each in (text, *variants)
        )
        found: Counter[str] = Counter()
        for number, launch in enumerate(case["launches"]):
            for seed in case["seeds"][:_SEEDS]:
                gpu = _buffers(self._stored[f"{case['id']}.{number}.{seed}"])
                mine = emulator.run(launch, seed)
                for each in others:
                    gpu = _where_equal(mine, each.run(launch, seed), gpu)
                for each in self._module.compare(mine, gpu, launch):
                    form = each.get("form", "")
                    found[form] += _differing(form, each, mine, gpu)
        return +found


def _differing(form: str, found: dict[str, Any], mine: list[bytes], gpu: list[bytes]) -> int:
    """Return how many values differ more than the bound of an approximate form allows."""
    allowed = allowed_for(form) if form else None
    if allowed is None:
        return int(found["count"])
    width = _WIDTHS[found["t"]]
    rows = [_rows(each[found["buf"]], width) for each in (mine, gpu)]
    return int((~is_near(form, allowed, *rows)).sum())


def _where_equal(mine: list[bytes], other: list[bytes], gpu: list[bytes]) -> list[bytes]:
    """Return the GPU's values, but the emulator's where those of two texts differ."""
    found = []
    for parts in zip(mine, other, gpu, strict=True):
        # The narrowest results of programs have 16 bits.
        dtype = "<u2" if len(parts[0]) % 2 == 0 else "u1"
        own, varied, theirs = (np.frombuffer(part, dtype) for part in parts)
        found.append(np.where(own == varied, theirs, own).tobytes())
    return found


def _rows(values: bytes, width: int) -> Bits:
    """Return eight bytes for each value, as cases have them."""
    words = np.frombuffer(values, np.uint8).reshape(-1, width)
    rows = np.zeros((len(words), 8), np.uint8)
    rows[:, :width] = words
    return rows


def _buffers(stored: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(stored):
        size = int.from_bytes(stored[at : at + 8], "little")
        found.append(stored[at + 8 : at + 8 + size])
        at += 8 + size
    return found


def _module_of(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("trial", path)
    assert spec is not None, path
    assert spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def explain(folder: Path, only: str, part: str = "0/1") -> int:
    """Print a line for each case that differs, and the table; return how many are left."""
    trial, table, unexplained = _Trial(folder), Counter[str](), 0
    number, parts = (int(each) for each in part.split("/"))
    chosen = [case for case in trial.cases if re.search(only, case["id"])][number::parts]
    for case in chosen:
        text = trial.text(case)
        exact = trial.count(case, text)
        if not exact:
            continue
        found = explanation(text, partial(trial.count, case))
        names = sorted(name for name in exact if name) or [case["id"]]
        table[", ".join(found.kinds) or "not explained"] += len(names)
        unexplained += len(names) if found.left else 0
        state = f"; left: {dict(found.left)}" if found.left else ""
        kinds = ", ".join(found.kinds) or "nothing known"
        print(f"{', '.join(names)}: {exact.total()} values: {kinds}{state}", flush=True)
    _print_table(table, len(chosen), unexplained)
    return unexplained


def _print_table(table: Counter[str], cases: int, unexplained: int) -> None:
    print(f"\n{cases} cases; forms and programs that differ by more than an approximation's bound:")
    for kinds, number in table.most_common():
        print(f"{number:5d}  {kinds}")
    for kind, why in (*KINDS.items(), (OPEN, _OPEN_WHY)):
        print(f"{kind}: {why}")
    print(f"{unexplained} forms and programs without an explanation")


def main(arguments: Sequence[str] | None = None) -> int:
    """Explain a folder; return 1 if a form or a program has no explanation."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="cases whose names have this pattern")
    parser.add_argument("--part", default="0/1", help="K/N: every Nth case from K on")
    given = parser.parse_args(arguments)
    return int(explain(given.folder, given.only, given.part) > 0)


if __name__ == "__main__":
    sys.exit(main())
