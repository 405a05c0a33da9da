"""``ptxas`` for an emulated device: its output is its input, PTX.

Programs start it once for each kernel, so it imports the standard library alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

RELEASE: Final = "13.5"
"""The toolkit whose PTX the emulated driver takes; programs choose their .version by it."""

CUBIN_MARK: Final = b"\n// cudadrv: in place of a cubin\n"
"""That of `ptx.cubin_mark`: drivers older than the toolkit load such a cubin."""

_VERSION: Final = f"""ptxas: PTX assembler of cudadrv's emulator, which passes PTX on
Cuda compilation tools, release {RELEASE}, V{RELEASE}.0"""
_WITH_VALUE: Final = frozenset({
    "--gpu-name", "-arch", "--output-file", "-o", "--opt-level", "-O", "--maxrregcount",
    "-maxrregcount", "--machine", "-m", "--entry", "-e", "--def-load-cache", "-dlcm",
    "--def-store-cache", "-dscm", "--options-file", "-optf", "--input-as-string", "-ias",
    "--split-compile", "-split-compile",
})  # fmt: skip
_ARCH: Final = re.compile(r"(?:sm|compute)_(\d+)[af]?")
_TARGET: Final = re.compile(r"^\s*\.target\s+sm_(\d+)", re.MULTILINE)
_HEADER: Final = re.compile(r"^\s*\.version\s+\d+\.\d+", re.MULTILINE)


class _WrongError(Exception):
    """A fault of the command line or the input."""


def run(arguments: Sequence[str]) -> int:
    """Check the options and copy the PTX; return the exit status."""
    if {"--version", "-V"} & {*arguments}:
        print(_VERSION)
        return 0
    try:
        _copy(arguments)
    except (_WrongError, OSError) as error:
        print(f"ptxas fatal   : {error}", file=sys.stderr)
        return 255
    return 0


def _copy(arguments: Sequence[str]) -> None:
    options, files = _read(arguments)
    if len(files) != 1:
        raise _WrongError(f"name one file of PTX, not {len(files)}")
    source = Path(files[0])
    with open(source, errors="replace", newline="") as file:
        text = file.read().replace("\r\n", "\n").rstrip("\0")  # a "\r" alone ends no line
    target = _TARGET.search(text)
    if target is None or not _HEADER.search(text):
        raise _WrongError(f"{str(source)!r}: no PTX: it has no .version and .target")
    arch = options.get("--gpu-name") or options.get("-arch")
    match = _ARCH.fullmatch(arch or "sm_75")
    if match is None:
        raise _WrongError(f"Value '{arch}' is not defined for option 'gpu-name'")
    if arch and int(target[1]) > int(match[1]):
        raise _WrongError(f"SM version specified by .target is higher than {arch}")
    output = options.get("--output-file") or options.get("-o") or "elf.o"
    # Callers pass it to the driver as bytes without a length.
    Path(output).write_bytes(text.encode() + CUBIN_MARK + b"\0")
    if {"-v", "--verbose"} & options.keys():
        print("ptxas info    : passed on as PTX to cudadrv's emulator", file=sys.stderr)


def _read(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the options with their values, and the files."""
    options: dict[str, str] = {}
    files: list[str] = []
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.partition("=")
        if not word.startswith("-"):
            files.append(word)
        elif name in _WITH_VALUE and not equals:
            if not waiting:
                raise _WrongError(f"option '{name}' needs a value")
            options[name] = waiting.pop(0)
        else:
            options[name] = value
    return options, files


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
