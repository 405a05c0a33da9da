"""Code of C in a program of Python, which calls the driver as native libraries do."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
CALLS: Final = """
import ctypes as C

class Call(C.Structure):
    _fields_ = [("called", C.c_void_p), ("arguments", C.c_long * 6), ("result", C.c_long)]

class Calls(C.Structure):
    _fields_ = [("first", C.POINTER(Call)), ("count", C.c_long)]

def in_threads(*threads, together=False, library=None):
    # Each thread is a list of calls: a function and its arguments. Gives their results.
    made = []
    for calls in threads:
        each = [
            Call(C.cast(function, C.c_void_p), tuple(
                C.addressof(a) if isinstance(a, (C._SimpleCData, C.Array)) else a or 0
                for a in arguments))
            for function, *arguments in calls]
        made.append((Call * len(each))(*each))
    all_calls = (Calls * len(made))(*(Calls(each, len(each)) for each in made))
    (library or native).in_threads(all_calls, C.c_long(len(made)), C.c_long(together))
    return [[call.result for call in each] for each in made]
"""
"""Python that calls `native_calls.c`, whose library is `native`."""


def _compile(source: Path, target: Path, *options: str) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a compiler of C")
    command = [compiler, *options, str(source), "-o", str(target), "-ldl", "-lpthread"]
    subprocess.run(command, check=True)


def compiled(folder: Path, source: str | Path) -> Path:
    """The library of some source of C; without a compiler the test is skipped."""
    if isinstance(source, str):
        text, source = source, folder / "source.c"
        source.write_text(text)
    library = folder / f"{source.stem}.so"
    _compile(source, library, "-shared", "-fPIC")
    return library


def compiled_program(folder: Path, source: Path) -> Path:
    """The program of a source of C; without a compiler the test is skipped."""
    program = folder / source.stem
    _compile(source, program)
    return program


def calling(folder: Path) -> str:
    """Python that has `in_threads`."""
    library = compiled(folder, HERE / "native_calls.c")
    return f"{CALLS}\nnative = C.CDLL({str(library)!r})\n"
