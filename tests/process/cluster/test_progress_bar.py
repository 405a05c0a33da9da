from __future__ import annotations

import io
import sys

import pytest

from cudadrv.cluster import Progress, TerminalBar
from cudadrv.errors import RuntimeDependencyUnavailable


def test_a_bar_reports_how_far_it_is_and_what_went_wrong() -> None:
    console = pytest.importorskip("rich.console", reason="needs rich")
    text = io.StringIO()
    draw = TerminalBar("paths", console=console.Console(file=text, width=100))
    draw(Progress(8, 3, 0, 80, 30, 0, 1.0, False))
    draw(Progress(8, 7, 1, 80, 70, 2, 2.0, True))
    line = text.getvalue().splitlines()[-1]
    assert line.startswith("paths")
    assert "8/8" in line
    assert "1 failed, 2 again" in line
    draw(Progress(2, 2, 0, 2, 2, 0, 1.0, True))
    assert "2/2" in text.getvalue()


def test_a_bar_without_rich_is_rejected_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    with pytest.raises(RuntimeDependencyUnavailable, match=r"cudadrv\[cli\]"):
        TerminalBar()
