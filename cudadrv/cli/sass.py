"""``python -m cudadrv sass``: print the machine code of a kernel, beside its source and its PTX."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import ptx
from ptx.ordinary_files import read_bytes, read_text
from ptx.source_text import SourceText

from .command_line import Commands, add_command
from .compile import FAULTS, add_compile_options, default_target, failed, requests_of
from .output import print_text


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "sass",
        "Print the machine code of a CUDA, PTX, cubin or fatbin file, beside its source and PTX.",
        example="twice.cu twice --arch sm_90",
        statuses={
            "0": "printed",
            "1": "the file cannot be read, compiled or disassembled, or has no such kernel",
            "2": "the command line is wrong",
        },
    )
    add_compile_options(parser)
    parser.add_argument("kernel", nargs="?", metavar="KERNEL", help="a part of the kernel's name")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    try:
        image, target, source = _image(options)
        names = image.lowered_names if isinstance(image, ptx.Image) else {}
        functions = _chosen(ptx.disassemble(image, target), options.kernel, names)
    except FAULTS as error:
        return failed(options.file, error)
    if options.json:
        print_text(json.dumps([_as_json(function) for function in functions], indent=2))
    else:
        for function in functions:
            _print(function, source)
    return 0


def _image(
    options: argparse.Namespace,
) -> tuple[ptx.Image | bytes, ptx.Target | None, SourceText]:
    """Return the image of a file, the target to assemble it for, and its source as far as known."""
    unknown = SourceText("")
    if options.file.suffix == ".cubin":
        return read_bytes(options.file), None, unknown
    targets = [ptx.Target.parse(name) for name in options.target] or [default_target()]
    if len(targets) != 1:
        raise ValueError("give one --arch")
    target = targets[0].as_kind(ptx.ImageKind.CUBIN)
    if options.file.suffix == ".fatbin":
        return ptx.Fatbin.read(options.file).image(), target, unknown
    if options.file.suffix == ".ptx":
        return ptx.Image.from_ptx(read_text(options.file)), target, unknown
    options.target, options.kind, options.lineinfo = [target.real], None, not options.debug
    (request,) = requests_of(options)
    return ptx.default_cache().get_or_build(request), target, SourceText.of(request)


def _chosen(
    functions: Sequence[ptx.SassFunction], kernel: str | None, lowered_names: Mapping[str, str]
) -> list[ptx.SassFunction]:
    """Return the functions whose names have a part, or of a name expression; all without one.

    Raises:
        ValueError: there is none.
    """
    lowered = lowered_names.get(kernel or "", kernel or "")
    matching = [function for function in functions if lowered in function.name]
    if not matching and kernel is not None:
        names = ", ".join(function.name for function in functions if function.is_kernel) or "none"
        raise ValueError(f"there is no kernel {kernel!r}; there are: {names}")
    return matching


# JSON holds numbers, texts and further objects.
def _as_json(function: ptx.SassFunction) -> dict[str, object]:
    return {
        "name": function.name,
        "is_kernel": function.is_kernel,
        "arch": function.target.arch,
        "instructions": [asdict(instruction) for instruction in function.instructions],
    }


def _print(function: ptx.SassFunction, source: SourceText) -> None:
    """Print the instructions; each source or PTX line comes before its instructions."""
    kind = "kernel" if function.is_kernel else "function"
    print_text(f"{kind} {function.name}: {function.target.arch}")
    texts, printed = function.ptx.split("\n"), ("", 0, 0)
    instructions = list(function.instructions)
    while instructions and instructions[-1].text == "NOP":  # they fill the last line of the cache
        instructions.pop()
    for instruction in instructions:
        location = instruction.file, instruction.line, instruction.ptx_line
        if location[:2] != printed[:2] and instruction.line:
            print_text(
                f"{Path(instruction.file).name}:{instruction.line}: "
                f"{source.line(instruction.file, instruction.line)}".rstrip()
            )
        if location != printed and 0 < instruction.ptx_line <= len(texts):
            print_text(f"    {' '.join(texts[instruction.ptx_line - 1].split())}")
        printed = location
        for label in instruction.labels:
            if label != function.name:
                print_text(f"      {label}:")
        print_text(f"        {instruction.address:04x}  {instruction.text}")
    print_text()
