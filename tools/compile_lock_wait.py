"""Compile `cudadrv/emulator/shared_libraries/lock_wait.c` into `lock_wait_code.py` beside it.

Run `python -m tools.compile_lock_wait` after each change of the source, on x86-64 with gcc.
"""

from __future__ import annotations

import base64
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[1] / "cudadrv/emulator/shared_libraries"
SOURCE: Final = FOLDER / "lock_wait.c"
OUTPUT: Final = FOLDER / "lock_wait_code.py"
_SYMBOLS: Final = ("acquire", "acquire_at_start", "release", "on_signal", "given", "now")
_FLAGS: Final = (
    "-O2", "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-ffreestanding", "-fpie",
    "-fvisibility=hidden", "-fno-stack-protector", "-fno-asynchronous-unwind-tables",
    "-fcf-protection=none", "-fno-tree-loop-distribute-patterns",
)  # fmt: skip
_ROW: Final = 92
_SCRIPT: Final = """
SECTIONS {
  . = 0;
  .text : { *(.text.entry) *(.text .text.*) *(.rodata .rodata.*) }
  . = ALIGN(4096);
  .given : { *(.given) }
  . = ALIGN(4096);
  .now : { *(.now) }
  /DISCARD/ : { *(.comment) *(.note*) *(.eh_frame*) }
}
"""
"""Code, what is set once, and what changes, each on pages of its own."""


def compiled() -> str:
    """Return the content of the output."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "script").write_text(_SCRIPT)
        _run(folder, "gcc", *_FLAGS, "-c", str(SOURCE), "-o", "code.o")
        _run(folder, "ld", "-T", "script", "-e", "0", "code.o", "-o", "code.elf")
        _run(folder, "objcopy", "-O", "binary", "code.elf", "code.bin")
        lines = _run(folder, "nm", "code.elf").splitlines()
        code = (folder / "code.bin").read_bytes().rstrip(b"\0")
    places = {name: int(at, 16) for at, _, name in map(str.split, lines)}
    offsets = "".join(f'    "{name}": {places[name]},\n' for name in _SYMBOLS)
    text = base64.b85encode(code).decode()
    rows = [text[at : at + _ROW] for at in range(0, len(text), _ROW)]
    return (
        '"""The code of `lock_wait.c` for x86-64, which `tools/compile_lock_wait.py` writes."""\n\n'
        "from typing import Final\n\n"
        f'SOURCE: Final = "{source_digest()}"\n"""The SHA-256 of the source."""\n'
        f"OFFSETS: Final = {{\n{offsets}}}\n"
        "CODE: Final = (\n" + "".join(f'    "{line}"\n' for line in rows) + ")\n"
        '"""In base 85; the rest of the pages is zero."""\n'
    )


def source_digest() -> str:
    """Return the SHA-256 of the source."""
    return sha256(SOURCE.read_bytes()).hexdigest()


def _run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


if __name__ == "__main__":
    OUTPUT.write_text(compiled())
