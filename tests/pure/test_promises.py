"""Each promise of the pages for users has the names of the tests that hold it.

`promises.txt` has a promise on one line, and below it, indented, its tests. A promise is a sentence
or a row of a table that says "raises", "rejects", "reports", "never" or "always", in any form.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
LIST: Final = Path(__file__).with_name("promises.txt")
PAGES: Final = (
    ROOT / "README.md",
    *(ROOT / "docs" / name for name in ("lifetimes.md", "checks.md", "testing.md")),
    ROOT / "docs" / "howto" / "verify.md",
    *sorted((ROOT / "docs" / "checks").glob("*.md")),
    *sorted((ROOT / "docs" / "moving").glob("*.md")),
)
PROMISE: Final = re.compile(r"\b(?:rais|reject|report|never\b|always\b)", re.IGNORECASE)
_LEFT_OUT: Final = re.compile(
    r"^```.*?^```$|<!--.*?-->|^\|[^\n]*\n(?=\|[ :|-]+$)|^#[^\n]*$|!\[[^]]*\]\([^)]*\)",
    re.DOTALL | re.MULTILINE,
)
_BLOCK: Final = re.compile(r"\n\s*\n|\n(?=\s*(?:[-|*]|\d+\.) ?)")
_MARK: Final = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
_END: Final = re.compile(r"(?<=[.:;!?])\s+(?=[A-Z`\[(*])")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences and rows of tables of a page; code, headings and pictures are left out.

    A row of a table is one sentence.
    """
    for block in _BLOCK.split(_LEFT_OUT.sub("", text)):
        line = " ".join(_MARK.sub("", block).split())
        yield from [line] if line.startswith("|") else _END.split(line)


def promised(pages: tuple[Path, ...] = PAGES) -> list[str]:
    """The promises of the pages, each once."""
    return list(
        dict.fromkeys(
            sentence
            for page in pages
            for sentence in sentences(page.read_text())
            if PROMISE.search(sentence)
        )
    )


def listed() -> dict[str, list[str]]:
    """The tests of each promise of the list."""
    tests: dict[str, list[str]] = {}
    for line in LIST.read_text().splitlines():
        if line.startswith("    "):
            tests[list(tests)[-1]].append(line.strip())
        elif line and not line.startswith("#"):
            assert line not in tests, f"the list has it twice: {line}"
            tests[line] = []
    return tests


@cache  # by path: the files do not change
def functions_in(path: str) -> frozenset[str]:
    """The test functions of a file, with the classes that they are in."""
    tree = ast.parse((ROOT / path).read_text())
    return frozenset(
        f"{node.name}::{each.name}" if isinstance(node, ast.ClassDef) else each.name
        for node in [tree, *tree.body]
        if isinstance(node, (ast.Module, ast.ClassDef))
        for each in node.body
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
    )


def is_test(name: str) -> bool:
    """Whether a name such as `tests/pure/test_docs.py::test_...` is that of a test."""
    path, _, function = name.partition("::")
    return (ROOT / path).is_file() and function in functions_in(path)


def problems(promises: list[str], tests: Mapping[str, list[str]]) -> list[str]:
    """The promises without an entry or a test, entries without a promise, and absent tests."""
    return [
        *(f"name the tests of: {each}" for each in promises if each not in tests),
        *(f"no page says: {each}" for each in tests if each not in promises),
        *(f"no test is named for: {each}" for each, names in tests.items() if not names),
        *(
            f"no such test: {name}"
            for names in tests.values()
            for name in names
            if not is_test(name)
        ),
    ]


def test_each_promise_of_the_pages_has_tests_and_each_entry_its_sentence() -> None:
    assert problems(promised(), listed()) == []
    assert len(listed()) > 70


def test_a_promise_an_entry_and_a_test_are_missed() -> None:
    own = "tests/pure/test_promises.py::"
    there = f"{own}test_a_promise_an_entry_and_a_test_are_missed"
    gone = [f"{own}test_that_is_gone", f"{own}problems", "tests/pure/gone.py::test_it"]
    found = problems(["a", "b", "c"], {"a": [there], "c": [], "d": [there, *gone]})
    assert found == [
        "name the tests of: b",
        "no page says: d",
        "no test is named for: c",
        *(f"no such test: {name}" for name in gone),
    ]


def test_sentences_are_found_in_paragraphs_lists_and_tables() -> None:
    text = (
        "# It never counts\n\nA use raises\nan error. Another is right: it never fails.\n"
        "1. It always waits. Then it ends.\n- `x` reports.\n\n"
        "| what it reports | page |\n|---|---|\n| It rejects this. And that. | here |\n"
        "```python\nraise ValueError\n```\n<!-- reports -->![never](a.svg)\n"
    )
    found = [each for each in sentences(text) if PROMISE.search(each)]
    assert found == [
        "A use raises an error.", "Another is right: it never fails.", "It always waits.",
        "`x` reports.",
        "| It rejects this. And that. | here |",
    ]  # fmt: skip
