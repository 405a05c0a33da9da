"""Where the formatter is switched off: only after a table, which is read in rows."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("benchmarks", "campaigns", "cudadrv", "docs", "examples", "ptx", "tests", "tools")
_SKIP = "# fmt: skip"
_FEWEST = 4  # elements of a table


def without_table(text: str) -> list[int]:
    """The lines with the comment whose statement has no table."""
    if text.count(_SKIP) == 0:
        return []
    lines = text.split("\n")
    ends = [number for number, line in enumerate(lines) if line.endswith(_SKIP)]
    return [end + 1 for end in ends if not _has_table(_statement(lines, end))]


def _statement(lines: list[str], end: int) -> ast.AST:
    """The statement that ends there: the fewest lines that are one."""
    for start in range(end, -1, -1):
        if _indent(lines[start]) > _indent(lines[end]):
            continue
        body = dedent("\n".join(lines[start : end + 1])).removeprefix("@")
        try:
            return ast.parse(body + "\n    pass" if ":  #" in lines[end] else body)
        except SyntaxError:
            continue
    raise AssertionError(f"no statement ends at line {end + 1}")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _has_table(statement: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Dict | ast.List | ast.Set | ast.Tuple)
        and node.end_lineno != node.lineno
        and len(node.values if isinstance(node, ast.Dict) else node.elts) >= _FEWEST
        for node in ast.walk(statement)
    )


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_formatter_is_off_only_after_tables(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    assert [
        f"{file.relative_to(ROOT)}:{line}"
        for file in files
        for line in without_table(file.read_text())
    ] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = (\n 1, 2,\n 3, 4,\n)  # fmt: skip", []),
        ("x = (1, 2, 3, 4)  # fmt: skip", [1]),
        ("x = (\n 1, 2,\n 3,\n)  # fmt: skip", [4]),
        ("if x:\n  f({\n 1: '(', 3: 4,\n 5: 6, 7: 8,\n})  # fmt: skip", []),
        ("f(1, 2, 3,\n  4, 5, 6)  # fmt: skip", [2]),
        ("def f(\n a, b,\n c, d):  # fmt: skip\n  pass", [3]),
        ("x = (\n 1, 2,\n 3, 4,\n)\ny = f(1)  # fmt: skip", [5]),
    ],
)
def test_a_table_has_four_elements_on_several_lines(text: str, expected: list[int]) -> None:
    assert without_table(text) == expected
