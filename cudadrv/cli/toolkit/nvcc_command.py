"""``nvcc`` for an emulated device: NVRTC compiles device code to PTX.

It makes a cubin, a fatbin or PTX of one source. The next `nvcc` on PATH does everything else, such
as compiling host code.
"""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ptx

_FOLDER: Final = Path(__file__).resolve().parent
_SUFFIXES: Final = {
    "-cubin": ".cubin", "--cubin": ".cubin", "-fatbin": ".fatbin", "--fatbin": ".fatbin",
    "-ptx": ".ptx", "--ptx": ".ptx",
}  # fmt: skip
_HOST_HEADERS: Final = "host_headers.cuh"
_HOST_NAMES: Final = (
    "assert.h", "cassert", "cfloat", "climits", "cmath", "cstddef", "cstdint", "cstdio", "cstdlib",
    "cstring", "float.h", "limits.h", "math.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h",
    "string.h",
)  # fmt: skip
"""The host's headers, of which device code may use a part; that is there without them too."""
_RENAMED: Final = {
    "surface_functions.h": "surface_indirect_functions.h",
    "texture_fetch_functions.h": "texture_indirect_functions.h",
}
"""Headers of older toolkits, and where their content is."""
_PREPROCESS: Final = frozenset({"--preprocess", "-E"})
# Options of the host compiler, of other tools, and of temporary files: without effect here.
# So is --restrict, which NVRTC would apply to all later compilations.
_IGNORED_WITH_VALUE: Final = frozenset({
    "-Xcompiler", "--compiler-options", "-Xptxas", "--ptxas-options", "-Xlinker", "-ccbin",
    "--compiler-bindir", "-keep-dir", "--keep-dir", "-t", "--threads", "-code", "--gpu-code",
    "-x", "--x", "-odir", "--output-directory", "-l", "--library", "-L", "--library-path",
    "-Xfatbin", "--fatbin-options", "-Xnvlink", "--nvlink-options", "-m", "--machine", "-Werror",
    "--Werror",
})  # fmt: skip
_IGNORED: Final = frozenset({
    "-m64", "--keep", "-keep", "-v", "--verbose", "-w", "-g", "--debug",
    "-expt-relaxed-constexpr", "--expt-relaxed-constexpr", "-restrict", "--restrict",
})  # fmt: skip
_IGNORED_STARTS: Final = (
    "-O", "--optimize", "-Xptxas=", "-Xcompiler=", "--ptxas-options=", "--compiler-options=", "-l",
    "-L", "--library", "-Wno-", "--machine=", "-Xfatbin=", "-Xnvlink=",
)  # fmt: skip
_MOST_OF_FRONT: Final = 4096  # bytes; a real nvcc is larger, or another script
_READ: Final = frozenset({"-lineinfo"})  # not a library "ineinfo"
_JOINED: Final = {
    "-o": "-o", "--output-file": "-o", "-arch": "-arch", "--gpu-architecture": "-arch",
    "-gencode": "-gencode", "--generate-code": "-gencode", "-I": "-I", "--include-path": "-I",
    "-D": "-D", "--define-macro": "-D", "-U": "-U", "--undefine-macro": "-U", "-std": "-std",
    "--std": "-std", "-maxrregcount": "--maxrregcount", "--maxrregcount": "--maxrregcount",
}  # fmt: skip
"""Options with a value, which may be the next word, and the form that is read here."""


@dataclass
class _Command:
    """A command line.

    Attributes:
        flags: those for NVRTC.
    """

    suffix: str = ""
    preprocesses: bool = False
    output: str = ""
    arch: str = ""
    flags: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    @property
    def has_cubin(self) -> bool:
        """Whether a cubin is in the output."""
        of_machine = not self.arch or "sm_" in self.arch
        return self.suffix == ".cubin" or (self.suffix == ".fatbin" and of_machine)


def run(arguments: Sequence[str]) -> int:
    """Compile, or let the next nvcc do it; return the exit status."""
    # The packages may be a source tree that is on no path.
    sys.path[0] = str(_FOLDER.parents[2])
    import ptx
    from ptx.cubin_mark import CUBIN_MARK
    from ptx.visible_text import visible

    if {"--version", "-V"} & {*arguments}:
        release = ".".join(map(str, ptx.nvrtc_version()))
        print("nvcc: compiler of cudadrv's emulator, which makes PTX by NVRTC")
        print(f"Cuda compilation tools, release {release}, V{release}.0")
        return 0
    command = _read(arguments)
    if not command.suffix and not command.preprocesses:
        return _passed_on(arguments)
    try:
        if len(command.files) != 1:
            raise ValueError(f"name one source, not {len(command.files)}")
        source = Path(command.files[0])
        with open(source, errors="surrogateescape", newline="") as file:
            text = file.read().replace("\r\n", "\n")  # a "\r" alone ends no line
        if command.preprocesses:
            # NVRTC has no preprocessor alone. Callers hash this text, so it stays as it is.
            print(text)
            return 0
        image = _compiled(command, source, text)
        output = Path(command.output or source.with_suffix(command.suffix).name)
        end = b"" if command.suffix == ".ptx" else CUBIN_MARK.encode() * command.has_cubin + b"\0"
        output.write_bytes(image.data + end)
    except (OSError, ValueError, ptx.PtxError) as error:
        print(visible(f"nvcc fatal   : {error}"), file=sys.stderr)
        return 1
    if image.log:
        print(visible(image.log), file=sys.stderr)
    return 0


def _compiled(command: _Command, source: Path, text: str) -> ptx.Image:
    """Return the PTX of a source. Its log is for the caller to print."""
    import ptx  # as in `run`

    # NVRTC rejects functions of the host, such as declarations of headers.
    flags = ["-default-device", *command.flags, f"-arch=compute_{_number(command.arch)}"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptx.CompileWarning)
        return ptx.compile(
            f'#include "{_HOST_HEADERS}"\n#line 1\n{text}',
            ptx.CompileOptions.from_flags(*flags),
            name=str(source),
            headers={
                _HOST_HEADERS: (_FOLDER / _HOST_HEADERS).read_text(),
                **dict.fromkeys(_HOST_NAMES, ""),
                **{name: f"#include <{now}>" for name, now in _RENAMED.items()},
            },
        )


def _number(arch: str) -> str:
    """Return the architecture number of `sm_80`, `compute_80` or `arch=compute_80,code=...`."""
    number = arch.removeprefix("arch=").partition(",")[0].rpartition("_")[2]
    return number if number[:-1].isdecimal() else "75"


def _read(arguments: Sequence[str]) -> _Command:
    command = _Command()
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.partition("=")
        joined = next((short for short in ("-I", "-D", "-U", "-o") if word.startswith(short)), "")
        if word in _SUFFIXES:
            command.suffix = _SUFFIXES[word]
        elif word in _PREPROCESS:
            command.preprocesses = True
        elif word in _IGNORED_WITH_VALUE:
            del waiting[:1]
        elif word not in _READ and (word in _IGNORED or word.startswith(_IGNORED_STARTS)):
            continue
        elif name in _JOINED:
            value = value if equals else "".join(waiting[:1])
            del waiting[: not equals]
            _take(command, _JOINED[name], value)
        elif joined:
            _take(command, joined, word.removeprefix(joined))
        elif word.startswith("-"):
            command.flags.append(word)
        else:
            command.files.append(word)
    return command


def _take(command: _Command, name: str, value: str) -> None:
    """Store an option that has a value."""
    if name == "-o":
        command.output = value
    elif name in ("-arch", "-gencode"):
        command.arch = value
    elif name in ("-I", "-D", "-U"):
        command.flags.append(name + value)
    else:
        command.flags.append(f"{name}={value}")


def _passed_on(arguments: Sequence[str]) -> int:
    """Become the next nvcc on PATH."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    other_folders = [folder for folder in folders if not _is_own(Path(folder or ".", "nvcc"))]
    nvcc = shutil.which("nvcc", path=os.pathsep.join(other_folders))
    if sys.stdout is not None:
        sys.stdout.flush()
    try:
        os.execv(nvcc or os.devnull, ["nvcc", *arguments])
    except OSError:
        print(
            "nvcc fatal   : under cudadrv's emulator nvcc makes a cubin, a fatbin or PTX\n"
            "  use -cubin, -fatbin or -ptx, or install a CUDA toolkit for host code",
            file=sys.stderr,
        )
        return 1


def _is_own(nvcc: Path) -> bool:
    """Return whether a file starts this program, in the package or in a toolkit folder."""
    try:
        return nvcc.stat().st_size < _MOST_OF_FRONT and Path(__file__).name in nvcc.read_text()
    except (OSError, ValueError):
        return False


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
