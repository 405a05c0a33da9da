"""``toolkit``: a folder with the layout of a CUDA toolkit, for programs that look for one.

It has NVRTC and the headers as far as they are installed, the emulator's libraries, and `nvcc`,
`ptxas` and `nvidia-smi`. It links to files where they are, and copies none.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from ..emulator.shared_libraries.library_files import library_folder, private_folders
from ..emulator.shared_libraries.nvrtc_files import nvrtc_file
from ..errors import DriverSelectionError
from .command_line import Commands, add_command
from .output import print_error, print_text

VARIABLES: Final = ("CUDA_PATH", "CUDA_HOME")
"""The variables that name a toolkit to programs."""
_FRONTS: Final = Path(__file__).parent / "toolkit"
_TOOLS: Final = {
    "nvcc": "CUDADRV_NO_STAND_IN=1 ",
    "ptxas": "CUDADRV_NO_STAND_IN=1 ",
    "nvidia-smi": "",
}
"""The tools, and what the shell sets for each: the first two need no emulator."""
_OTHER_NAMES: Final = {
    "lib": "lib64",
    "lib64/stubs": ".",
    "targets/x86_64-linux/lib": "../../lib64",
    "targets/x86_64-linux/include": "../../include",
}
"""Links within the folder, for programs that look elsewhere in it."""
_PARTS_12: Final = (
    "cuda_runtime", "cuda_nvcc", "cuda_cccl", "cuda_nvrtc", "cuda_profiler_api", "curand",
    "cublas", "cufft",
)  # fmt: skip
_SUMS: Final = "complete"
_NONE: Final = 1


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "toolkit",
        "Print a folder for CUDA_PATH and CUDA_HOME: NVRTC, headers, the emulator's libraries, nvcc"
        " and ptxas.",
        example="",
        statuses={"0": "the folder is there", str(_NONE): "there is no place for it"},
    )
    parser.set_defaults(run=_run)


def _run(_: argparse.Namespace) -> int:
    try:
        folder = toolkit_folder(library_folder())
    except DriverSelectionError as error:
        print_error(f"cudadrv: {error}")
        return _NONE
    if folder is None:
        print_error("cudadrv: no folder for a toolkit")
        return _NONE
    print_text(folder)
    return 0


def toolkit_folder(libraries: Path | None) -> Path | None:
    """Return the folder, which is made if it is missing; None if there is no place for it.

    Args:
        libraries: the folder of the emulator's libraries.
    """
    nvrtc = nvrtc_file()
    links = dict(_links(libraries, None if nvrtc is None else Path(nvrtc).absolute()))
    scripts = {f"bin/{name}": _script(name) for name in _TOOLS}
    release = "" if nvrtc is None else _release(Path(nvrtc))
    content = repr((sorted(links.items()), sorted(scripts.items()), release))
    digest = sha256(content.encode()).hexdigest()
    for folder in private_folders(f"toolkit-{digest[:16]}"):
        with suppress(OSError):
            folder.ensure()
            if folder.read_literal(_SUMS) != digest:
                _fill(folder.path, links, scripts, release)
                folder.write_literal(_SUMS, digest)
            return folder.path.absolute()
    return None


def _fill(folder: Path, links: Mapping[str, str], scripts: Mapping[str, str], release: str) -> None:
    # Programs read a toolkit's version there.
    version = f'{{"cuda": {{"name": "CUDA SDK", "version": "{release}.0"}}}}\n'
    for name, text in {**scripts, **({"version.json": version} if release else {})}.items():
        path = folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.with_name(f".new-{os.getpid()}-{path.name}")
        temporary.write_text(text)
        temporary.chmod(0o700)
        temporary.replace(path)
    for name, target in links.items():
        path = folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.with_name(f".new-{os.getpid()}-{path.name}")
        temporary.symlink_to(target)
        temporary.replace(path)


def _links(libraries: Path | None, nvrtc: Path | None) -> Iterator[tuple[str, str]]:
    """Yield the names of the links, and where they lead."""
    yield from _OTHER_NAMES.items()
    for each in () if libraries is None else sorted(libraries.glob("lib*.so*")):
        yield f"lib64/{each.name}", str(each)
    if nvrtc is None:
        return
    for each in sorted(nvrtc.parent.glob("libnvrtc*.so.*")):
        yield f"lib64/{each.name}", str(each)
    yield "lib64/libnvrtc.so", str(nvrtc)
    yield from (("nvvm", str(folder)) for folder in _parts(nvrtc, "nvvm")[:1])
    headers: dict[str, str] = {}
    for include in _parts(nvrtc, "include"):
        for each in sorted(include.iterdir()):
            headers.setdefault(each.name, str(each))
    yield from ((f"include/{name}", target) for name, target in headers.items())


def _parts(nvrtc: Path, name: str) -> list[Path]:
    """Return the folders of this name beside an NVRTC: of its packages, or of its toolkit."""
    folder = nvrtc.parent.parent
    candidates = [folder / name]
    if folder.name == "cuda_nvrtc":
        candidates = [folder.parent / part / name for part in _PARTS_12]
    elif not candidates[0].is_dir():
        candidates = [folder.parents[1] / name]  # NVRTC is in targets/x86_64-linux/lib
    return [each for each in candidates if each.is_dir()]


def _script(name: str) -> str:
    program = _FRONTS / f"{name.replace('-', '_')}_command.py"
    return (
        "#!/bin/sh\n"
        f"# Of the emulator of cudadrv; `python -m cudadrv toolkit` makes it.\n"
        f'{_TOOLS[name]}exec "${{CUDADRV_PYTHON:-{sys.executable}}}" "{program}" "$@"\n'
    )


def _release(nvrtc: Path) -> str:
    """Return the version of an NVRTC, which the file of its built-in headers names."""
    builtins = next(nvrtc.parent.glob("libnvrtc-builtins.so.*"), nvrtc)
    return builtins.name.partition(".so.")[2]
