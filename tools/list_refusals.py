"""Lists each refusal of the emulator's driver calls, with where a GPU was seen to refuse the same.

`python -m tools.list_refusals` prints a line for each: the function, the code, the text, and a test
or "not measured". A refusal counts as measured if a test provokes it that runs unchanged on a GPU:
those of `tests/contract`, and those of `tests/emulator` that take any driver. They pass on an H200
with driver 580.

`python -m tools.list_refusals --measure TESTS` runs tests on the emulator, and adds the refusals
that they provoke to `tests/emulator/measured_refusals.txt`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from cudadrv.driver._api import CUresult
from cudadrv.emulator import call_error
from ptx.errors import PtxError

ROOT: Final = Path(__file__).parents[1]
EMULATOR: Final = ROOT / "cudadrv" / "emulator"
RECORD: Final = ROOT / "tests" / "emulator" / "measured_refusals.txt"
_CODES: Final = {
    "invalid_value": "CUDA_ERROR_INVALID_VALUE",
    "invalid_handle": "CUDA_ERROR_INVALID_HANDLE",
    "not_supported": "CUDA_ERROR_NOT_SUPPORTED",
}


@dataclass(frozen=True, slots=True, order=True)
class Refusal:
    """A place of the emulator that makes a call fail.

    Attributes:
        function: its file and function, such as `calls/texture.py cuTexObjectCreate`.
        code: the name of the CUresult; `...` if the place computes it.
        text: the reason, with `{}` for what it computes.
        lines: the first and the last line of the statement.
    """

    function: str
    code: str
    text: str
    lines: tuple[int, int] = (0, 0)

    @property
    def key(self) -> str:
        """What stays the same when lines move."""
        return f"{self.function}: {self.code}: {self.text}"


def refusals() -> list[Refusal]:
    """Return all refusals, in the order of the files."""
    return [each for path in sorted(EMULATOR.rglob("*.py")) for each in _of_file(path)]


def _of_file(path: Path) -> Iterator[Refusal]:
    tree = ast.parse(path.read_text())
    name = path.relative_to(EMULATOR).as_posix()
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            made, arguments = node.func.id, list(node.args)
            code = _CODES.get(made, "")
            if made == "CallError" and arguments:
                code = ast.unparse(arguments.pop(0)).rpartition(".")[2]
                code = code if code.startswith("CUDA_") else "..."
            if code and path.name != "call_error.py":
                text = _text(arguments[0]) if arguments else ""
                lines = node.lineno, node.end_lineno or node.lineno
                yield Refusal(f"{name} {function.name}", code, text, lines)


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    return "{}"


def measured() -> dict[str, str]:
    """Return the tests that provoke refusals on any driver, by the refusals' keys."""
    lines = RECORD.read_text().splitlines()
    return dict(line.rsplit(" | ", 1) for line in lines if " | " in line)


class _Recorder:
    """A plugin of pytest that notes the refusals of tests for any driver."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self._test = ""
        places = {
            (path, line): each
            for each in refusals()
            for path in (str(EMULATOR / each.function.partition(" ")[0]),)
            for line in range(each.lines[0], each.lines[1] + 1)
        }
        original = call_error.CallError.__init__

        def note(
            error: call_error.CallError,
            code: CUresult,
            text: str = "",
            cause: PtxError | None = None,
        ) -> None:
            original(error, code, text, cause)
            frame = sys._getframe(1)
            while frame.f_back is not None and frame.f_code.co_filename == call_error.__file__:
                frame = frame.f_back
            place = places.get((frame.f_code.co_filename, frame.f_lineno))
            if self._test and place is not None:
                self.found.setdefault(place.key, self._test)

        call_error.CallError.__init__ = note  # type: ignore[assignment, method-assign]  # a tool of developers

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Note the refusals while a test runs that is for any driver."""
        is_for_any = item.nodeid.startswith("tests/contract/") or "[emulator" in item.nodeid
        self._test = item.nodeid.partition("[")[0] if is_for_any else ""
        try:
            return (yield)
        finally:
            self._test = ""


def main(arguments: list[str]) -> int:
    """Print the list, or measure."""
    if arguments[:1] == ["--measure"]:
        recorder = _Recorder()
        pytest.main(["-q", "-p", "no:cacheprovider", *arguments[1:]], plugins=[recorder])
        both = {**recorder.found, **measured()}
        known = {each.key for each in refusals()}
        lines = [f"{key} | {test}\n" for key, test in sorted(both.items()) if key in known]
        RECORD.write_text("".join(lines))
        return 0
    tests = measured()
    for each in refusals():
        print(f"{each.key} | {tests.get(each.key, 'not measured')}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
