"""The tables and the plot."""

from __future__ import annotations

import importlib
import math
import subprocess
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from tools.drawing import GREEN, GREY, Drawing

from .bars import Verdict
from .timing import Row


def table(rows: Sequence[Row]) -> str:
    """Every row; the ratio is to the first of its case."""
    width = max((len(row.who) for row in rows), default=0) + 2
    lines = []
    for (group, case), members in groupby(rows, lambda row: (row.group, row.case)):
        lines.append(f"\n{group}: {case}")
        lines.append(f"  {'':{width}}{'median µs':>12}{'best µs':>12}{'ratio':>12}")
        lines += [f"  {row.who:{width}}{_figures(row)}" for row in members]
    return "\n".join(lines).lstrip("\n")


def _figures(row: Row) -> str:
    if row.error:
        return f"  not measured: {row.error}"
    speed = f"{row.nbytes / row.best / 1e3:9.1f} GB/s" if row.nbytes else ""
    if row.scaling:
        speed = f"{1e6 / row.median:13,.0f} a second, {row.scaling:5.2f} × one thread"
    return f"{row.median:12.2f}{row.best:12.2f}{row.ratio:12.3f}{speed}"


def commit() -> str:
    """The checked out commit, which figures are stored with."""
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    folder = Path(__file__).parent
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def verdicts(title: str, judged: Iterable[Verdict]) -> str:
    """Which bars hold."""
    lines = [title]
    for verdict in judged:
        mark = {True: "ok   ", False: "WORSE", None: "-    "}[verdict.holds]
        value = "not measured" if verdict.value is None else f"{verdict.value:.3f}"
        lines.append(f"  {mark} {value:>12}  (limit {verdict.limit:.3f})  {verdict.bar}")
    return "\n".join(lines)


def plot(rows: Sequence[Row], title: str, path: Path) -> None:
    """Bars of ours against each peer, one panel a case, to a PNG file.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: no case has two figures to compare.
    """
    importlib.import_module("matplotlib").use("agg")
    plt = importlib.import_module("matplotlib.pyplot")

    good = [row for row in rows if not row.error]
    cases = [
        (case, list(members)) for case, members in groupby(good, lambda r: f"{r.group}: {r.case}")
    ]
    cases = [(case, members) for case, members in cases if len(members) > 1]
    if not cases:
        raise ValueError("nothing was measured beside anything else")
    columns = 3
    lines = -(-len(cases) // columns)
    tallest = max((len(members) for _, members in cases), default=1)
    figure, axes = plt.subplots(
        lines, columns, squeeze=False, figsize=(18, lines * (1.2 + 0.22 * tallest))
    )
    for axis in axes.flat[len(cases) :]:
        axis.set_visible(False)
    for axis, (case, members) in zip(axes.flat, cases, strict=False):
        colours = ["tab:orange" if row.who.startswith("cudadrv") else "tab:gray" for row in members]
        axis.barh([row.who for row in members], [row.ratio for row in members], color=colours)
        axis.axvline(1.0, color="black", linewidth=0.7)
        axis.invert_yaxis()
        axis.set_title(case, fontsize=9)
        axis.tick_params(labelsize=7)
    figure.suptitle(f"Time a call over that of the first bar; {title}", fontsize=11)
    figure.tight_layout(rect=(0, 0, 1, 0.98))
    figure.savefig(path, dpi=110)
    plt.close(figure)


def bar_chart(
    title: str, unit: str, bars: Sequence[tuple[str, float]], *, logarithmic: bool = False
) -> str:
    """Horizontal bars with their numbers, as SVG; ours are green."""
    longest = max(value for _, value in bars)
    label = f"{title}: " + ", ".join(f"{name} {value:.3g}" for name, value in bars)
    drawing = Drawing(720, 60 + 34 * len(bars), label)
    scale = " (logarithmic)" if logarithmic else ""
    drawing.text(20, 30, title + scale, size=15, bold=True)
    for row, (name, value) in enumerate(bars):
        share = math.log10(value + 1) / math.log10(longest + 1) if logarithmic else value / longest
        top, width = 48 + 34 * row, round(360 * share)
        drawing.text(230, top + 18, name, anchor="end")
        drawing.box(240, top, width, 26, fill=GREEN if name.startswith("cudadrv") else GREY)
        shown = f"{float(f'{value:.2g}'):,.0f}" if value >= 10 else f"{value:.1f}"
        drawing.text(248 + width, top + 18, f"{shown} {unit}")
    return drawing.svg()
