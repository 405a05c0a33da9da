"""`page_of`: a report as one HTML file that needs no network and has no script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from ptx.visible_text import visible

from ...errors import RuntimeDependencyUnavailable
from .access_map import AccessMap
from .case_report import CaseReport, FindingMark, Report, SourceFile, SourceRow
from .drawings import RooflineDrawing, StreamDrawing, si

try:
    import jinja2
    from markupsafe import Markup
    from pygments.lexers import CudaLexer
    from pygments.token import Token
except ModuleNotFoundError as _error:
    raise RuntimeDependencyUnavailable(
        f'a report needs {_error.name}: pip install "cudadrv[testing]"'
    ) from None

_CLASS_OF: Final = {Token.Comment: "c", Token.Keyword: "k", Token.Literal.String: "s"}
MOST_MAPS: Final = 200  # drawn ones; a table has the others
_AFTER, _BEFORE, _LEAST_FOLDED = 1, 3, 4  # lines without code that stay beside code, or fold


def page_of(report: Report) -> str:
    """Return the page of a report; equal reports give equal pages."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.filters.update(number=_number, si=si, lanes=lane_ranges, basename=_basename)
    page = environment.get_template("page.html.jinja").render(
        report=report,
        grouped=_grouped,
        most_maps=MOST_MAPS,
        parts_of=_source_parts,
        places_of=_finding_places,
        stream_drawing=StreamDrawing.of,
        roofline_drawing=RooflineDrawing.of,
    )
    return f"{page.strip()}\n"


def _visible(value: object) -> object:
    """Return a value of the page with control characters escaped; they would reorder its text."""
    return value if isinstance(value, Markup) else visible(str(value))


def _grouped(maps: Sequence[AccessMap]) -> list[list[AccessMap]]:
    """Return the maps of each pattern, in the order of the first ones."""
    by_pattern: dict[tuple[object, ...], list[AccessMap]] = {}
    for access_map in maps:
        by_pattern.setdefault(access_map.pattern, []).append(access_map)
    return list(by_pattern.values())


def _number(value: int) -> str:
    return f"{value:,}"


def _basename(file: str) -> str:
    return Path(file).name


def lane_ranges(lanes: Sequence[int]) -> str:
    """Return ascending numbers as text, such as "0 to 7, 9"."""
    starts = [lane for before, lane in pairwise([-2, *lanes]) if lane != before + 1]
    ends = [lane for lane, after in pairwise([*lanes, 1 << 30]) if after != lane + 1]
    ranges = zip(starts, ends, strict=True)
    return ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in ranges)


def _highlighted(file: SourceFile) -> list[list[tuple[str, str]]]:
    """Return the rows of a file as lists of classes and texts; the class of plain text is ""."""
    if not file.is_whole:
        return [[("", row.text)] for row in file.rows]
    rows: list[list[tuple[str, str]]] = [[]]
    lexer = CudaLexer(stripnl=False, ensurenl=False)
    for kind, text in lexer.get_tokens("\n".join(row.text for row in file.rows)):
        name = next((name for known, name in _CLASS_OF.items() if kind in known), "")
        first, *others = text.split("\n")
        rows[-1].append((name, first))
        rows += [[(name, line)] for line in others]
    return rows


@dataclass(frozen=True, slots=True)
class _SourcePart:
    """Successive rows of a file, with classes and texts of each as `_highlighted` has them."""

    rows: tuple[SourceRow, ...]
    tokens: list[list[tuple[str, str]]]
    is_folded: bool


def _source_parts(file: SourceFile) -> list[_SourcePart]:
    """Return the rows of a file in parts; long parts without code of the launch are folded.

    They are other kernels of the file, which may come before and after.
    """
    tokens = _highlighted(file)
    ends = [0, *(edge for run in _folded_runs(file) for edge in run), len(file.rows)]
    return [
        _SourcePart(file.rows[first:end], tokens[first:end], index % 2 == 1)
        for index, (first, end) in enumerate(pairwise(ends))
        if first < end
    ]


def _folded_runs(file: SourceFile) -> list[tuple[int, int]]:
    """Return the first row of each folded part, and the row after its last one."""
    rows = file.rows
    used = [n for n, row in enumerate(rows) if row.ptx or row.numbers or row.marks]
    if not used or not file.is_whole:
        return []
    runs = [(0, used[0] - _BEFORE), (used[-1] + 1 + _AFTER, len(rows))]
    runs += [(before + 1 + _AFTER, after - _BEFORE) for before, after in pairwise(used)]
    return sorted(run for run in runs if run[1] - run[0] >= _LEAST_FOLDED)


@dataclass(frozen=True, slots=True)
class _FindingPlace:
    """A line that a finding names: its file and row among those of the case, from 0."""

    file: int
    name: str
    line: int
    text: str
    mark: FindingMark


def _finding_places(case: CaseReport, number: int) -> list[_FindingPlace]:
    return [
        _FindingPlace(index, file.name, row.number, row.text.strip(), mark)
        for index, file in enumerate(case.files)
        for row in file.rows
        for mark in row.marks
        if mark.number == number
    ]
