"""Run the blocks of pages: ``python -m tests.documents [--write] PAGE...``.

The blocks of one page run in order in one process and one folder, on the driver of the environment.
``python`` blocks share their names, ``console`` blocks are commands. An ``output`` block has what
the block before it printed, or the error that it raised; ``--write`` writes it anew.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

from .blocks import Block, blocks_of

ROOT = Path(__file__).parents[2]
_ADDRESS = re.compile(r"0x[0-9a-f]{3,}")
_FOLDER = re.compile(r"^ {4}\S*[/\\]\S+\n", re.MULTILINE)  # where headers were searched
_NUMBER = re.compile(r"\b\d+\.\d+ (s|ms|µs)\b")
# The plugin as where cudadrv is installed, and output that is the same everywhere.
_ENVIRONMENT = {"PYTEST_PLUGINS": "cudadrv.testing", "COLUMNS": "80", "NO_COLOR": "1"}
_PTX_LINE = re.compile(r"\bPTX line \d+")  # another one with another NVRTC


class Page:
    """A page whose blocks are run.

    Attributes:
        said: what each block printed or raised, by its place in the page; "" for nothing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.said: dict[int, str] = {}
        self._names: dict[str, object] = {"__name__": "__main__"}

    def run(self) -> list[tuple[Block, str]]:
        """Run all blocks; answers the `output` blocks, each with what it should be.

        Raises:
            AssertionError: a block does not do what the page says.
        """
        outputs: list[tuple[Block, str]] = []
        said = ""
        for block in blocks_of(self.path):
            if block.language == "output":
                outputs.append((block, said))
            elif block.file is not None:
                block.write_to(Path())
            elif block.not_run is None:
                said = plain(self._run(block))
        return outputs

    def _run(self, block: Block) -> str:
        if block.language == "python":
            return self._run_python(block)
        if block.language == "console":
            return "".join(map(self._run_command, commands(block)))
        return ""

    def _run_python(self, block: Block) -> str:
        said = io.StringIO()
        # The block's own lines, so that a place in an error is one that the reader sees.
        code = compile(block.text, "example.py", "exec", dont_inherit=True)
        try:
            with contextlib.redirect_stdout(said):
                exec(code, self._names)
        except Exception as error:
            if block.mark == "raises":
                return said.getvalue() + told(error, block)
            raise AssertionError(f"{self.path}:{block.line}: the block raised") from error
        assert block.mark != "raises", f"{self.path}:{block.line}: the block raised nothing"
        return said.getvalue()

    def _run_command(self, command: Command) -> str:
        done = subprocess.run(
            command.words,
            env=os.environ | _ENVIRONMENT | command.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        place = f"{self.path}:{command.line}: {command.words}"
        assert (done.returncode != 0) == command.fails, f"{place}\n{done.stdout}"
        return done.stdout


class Command:
    """A line of a console block, without a shell: assignments, words, a comment."""

    def __init__(self, text: str, line: int, *, fails: bool) -> None:
        words = shlex.split(text, comments=True)
        self.environment: dict[str, str] = {}
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            name, _, value = words.pop(0).partition("=")
            self.environment[name] = value
        self.words = [sys.executable if word == "python" else word for word in words]
        if self.words[:1] == ["pytest"]:
            self.words[:1] = [sys.executable, "-m", "pytest"]
        self.line = line
        self.fails = fails


def commands(block: Block) -> list[Command]:
    """The commands of a console block."""
    return [
        Command(part, block.line + number, fails=block.mark == "fails")
        for number, line in enumerate(block.text.splitlines())
        for part in line.split(" && ")
        if part.strip()
    ]


def told(error: Exception, block: Block) -> str:
    """An error with the user's line, as a traceback without the library's frames has it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == "example.py"]
    number = frames[-1].lineno or 1
    line = block.text.splitlines()[number - 1].strip()
    notes = "".join(f"{note}\n" for note in getattr(error, "__notes__", ()))
    text = f"{type(error).__name__}: {error}\n{notes}"
    return f'File "example.py", line {number}\n  {line}\n{text}'


def plain(text: str) -> str:
    """The text without what changes from run to run: addresses, times and folders."""
    text = text.replace(f"{Path.cwd()}{os.sep}", "")
    text = _ADDRESS.sub("0x…", _FOLDER.sub("", text))
    return _PTX_LINE.sub("PTX line …", _NUMBER.sub(r"… \1", text))


def check(path: Path, *, write: bool) -> int:
    """Run a page; answers how many of its outputs are not as it says."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        outputs = Page(path).run()
    text = path.read_text()
    wrong = [(block, said) for block, said in outputs if not agrees(block.text, said)]
    for block, said in reversed(wrong):
        if write:
            text = text[: block.start] + said + text[block.end :]
        else:
            print(f"{path}:{block.line}: the page says\n{block.text}\nand it is\n{said}")
    if write and wrong:
        path.write_text(text)
    return 0 if write else len(wrong)


def agrees(shown: str, said: str) -> bool:
    """Whether a page shows what was said; a line ``...`` stands for any lines."""
    parts = re.split(r"^\.\.\.\n", plain(shown), flags=re.MULTILINE)
    return re.fullmatch("(?s:.*)".join(map(re.escape, parts)), plain(said)) is not None


def main() -> int:
    """Run the pages of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.documents", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the outputs anew")
    parser.add_argument("pages", nargs="+", type=Path, metavar="PAGE")
    options = parser.parse_args()
    return sum(check(page.resolve(), write=options.write) for page in options.pages)


if __name__ == "__main__":
    sys.exit(main())
