"""``python -m cudadrv compile``: compile a source to an image file, and describe the image."""

from __future__ import annotations

import argparse
from pathlib import Path

import ptx
from ptx.ordinary_files import read_text, write_bytes

from ..driver.device import list_devices
from ..errors import CudadrvError
from ..stream import cuda_context_for
from .command_line import Commands, add_command
from .output import print_error, print_table, print_text

FAULTS = (OSError, ValueError, CudadrvError)
"""What a file or a device may raise."""

_SUFFIX = {
    ptx.ImageKind.PTX: ".ptx",
    ptx.ImageKind.CUBIN: ".cubin",
    ptx.ImageKind.LTOIR: ".ltoir",
}


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "compile",
        "Compile a CUDA C++ file to an image file.",
        example="twice.cu --target compute_80 --out twice.ptx",
        statuses={
            "0": "every image was written",
            "1": "the source does not compile, or a file fails",
            "2": "the command line is wrong",
        },
    )
    add_compile_options(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: beside the source")
    parser.set_defaults(run=run_compile)


def add_compile_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a compilation; lines of a prewarm list have them, too."""
    parser.add_argument("file", type=Path, metavar="FILE.cu", help="the source")
    parser.add_argument(
        "--target",
        "--arch",
        action="append",
        default=[],
        metavar="ARCH",
        help="sm_90, sm_90a, compute_90, lto_90; may be repeated; default: the first device's",
    )
    kind = parser.add_mutually_exclusive_group()
    for name, value in (
        ("ptx", ptx.ImageKind.PTX),
        ("cubin", ptx.ImageKind.CUBIN),
        ("lto", ptx.ImageKind.LTOIR),
    ):
        kind.add_argument(
            f"--{name}", dest="kind", action="store_const", const=value, help=f"make {value.value}"
        )
    parser.add_argument(
        "--name", action="append", default=[], metavar="EXPR", help='a name expression: "f<float>"'
    )
    parser.add_argument(
        "-I",
        dest="include",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a folder of headers",
    )
    parser.add_argument(
        "-D", dest="define", action="append", default=[], metavar="NAME[=TEXT]", help="a macro"
    )
    parser.add_argument("--std", default="c++17", help="the C++ standard; default: c++17")
    parser.add_argument("--use-fast-math", action="store_true", help="faster, less exact functions")
    parser.add_argument("--no-fma", action="store_true", help="round a*b+c twice")
    parser.add_argument("--lineinfo", action="store_true", help="add line numbers for profilers")
    parser.add_argument("--debug", action="store_true", help="add debug information")
    parser.add_argument("--maxrregcount", type=int, metavar="N", help="most registers per thread")
    parser.add_argument(
        "--split-compile", type=int, metavar="N", help="threads that optimise; 0: one for each CPU"
    )
    parser.add_argument("--option", action="append", default=[], help="any other NVRTC option")


def requests_of(options: argparse.Namespace) -> list[ptx.CompileRequest]:
    """Return one request for each target.

    Raises:
        OSError: the file cannot be read.
        ValueError: an option has a bad value.
    """
    source = read_text(options.file)
    defines: dict[str, str | int | None] = {}
    for define in options.define:
        name, equals, text = define.partition("=")
        defines[name] = text if equals else None
    return [
        ptx.CompileRequest.of(
            source,
            ptx.CompileOptions(
                target=target,
                std=options.std,
                include_paths=tuple(options.include),
                defines=defines,
                fmad=False if options.no_fma else None,
                use_fast_math=options.use_fast_math,
                lineinfo=options.lineinfo,
                debug=options.debug,
                maxrregcount=options.maxrregcount,
                split_compile=options.split_compile,
                extra=tuple(options.option),
            ),
            str(options.file),
            options.name,
            None,
        )
        for target in _targets(options.target, options.kind)
    ]


def run_compile(options: argparse.Namespace) -> int:
    """Compile for each target and write the images; return 1 if one fails."""
    try:
        requests = requests_of(options)
        if options.out is not None and len(requests) > 1:
            raise ValueError("--out is one file, but there are several targets: leave out --out")
        for request in requests:
            image = ptx.default_cache().get_or_build(request)
            path = options.out or options.file.with_name(
                f"{options.file.stem}.{request.target.arch}{_SUFFIX[request.target.kind]}"
            )
            write_bytes(path, image.data)
            _describe(image, path)
    except FAULTS as error:
        return failed(options.file, error)
    return 0


def failed(file: Path, error: Exception) -> int:
    """Print an error of a file, which compile errors name themselves; return 1."""
    names_file = str(error).startswith(str(file))
    print_error(error if names_file else f"{file}: {error}")
    return 1


def _targets(names: list[str], kind: ptx.ImageKind | None) -> list[ptx.Target]:
    targets = [default_target()] if not names else [ptx.Target.parse(name) for name in names]
    return targets if kind is None else [target.as_kind(kind) for target in targets]


def default_target() -> ptx.Target:
    """Return the first device's target; without a device, the default of `ptx.compile`."""
    try:
        if list_devices():
            return cuda_context_for(0).target
    except CudadrvError as error:
        why = str(error).partition("\n")[0]
        print_error(f"{why}: compiling to {ptx.DEFAULT_TARGET}; --target chooses another")
    return ptx.DEFAULT_TARGET


def _describe(image: ptx.Image, path: Path) -> None:
    print_text(f"{path}: {image.target}, {len(image.data)} bytes, {image.origin.value}")
    if image.log:
        print_error(image.log)
    if image.kind is ptx.ImageKind.PTX and not image.signatures:
        hint = 'a kernel is a __global__ function, and a template needs --name "f<float>"'
        print_error(f"warning: {path} has no kernel: {hint}")
    names = {lowered: expression for expression, lowered in image.lowered_names.items()}
    if image.signatures:
        print_table(
            "kernels",
            ("kernel", "parameters", "shared bytes"),
            [
                (
                    names.get(name, name),
                    ", ".join(f"{param.ptx_type}[{param.nbytes}]" for param in signature.params),
                    str(signature.shared_bytes),
                )
                for name, signature in image.signatures.items()
            ],
        )
