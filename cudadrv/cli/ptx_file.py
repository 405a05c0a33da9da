"""``python -m cudadrv ptx``: list the contents of a PTX file, or of a CUDA file's PTX."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import ptx
from ptx.isa.effects import Effects, effects_of
from ptx.isa.model import Instruction
from ptx.isa.module import PtxModule, parse
from ptx.isa.signature import reachable_functions, signatures_of
from ptx.ordinary_files import read_text
from ptx.source_text import SourceText

from .command_line import Commands, add_command
from .compile import FAULTS, add_compile_options, failed, requests_of
from .output import print_error, print_table, print_text

# The assembler's lines about each kernel.
_COMPILED: Final = re.compile(r"Compiling entry function '([^']+)'")
_USED: Final = re.compile(r"Used (\d+) registers")
_SPILLED: Final = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores")


@dataclass(slots=True)
class KernelSummary:
    """A kernel of the file.

    Attributes:
        parameters: the PTX type and size in bytes of each.
        shared_bytes: static shared memory.
        registers: of a thread, by the assembler; None if it did not run.
        stack_bytes: of a thread, likewise.
        spill_bytes: likewise.
        instructions: how often each opcode occurs, in the kernel and its functions.
        effects: what it may touch.
    """

    name: str
    parameters: list[str]
    shared_bytes: int
    registers: int | None
    stack_bytes: int | None
    spill_bytes: int | None
    instructions: dict[str, int]
    effects: Effects


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "ptx",
        "Show the kernels of a PTX or CUDA file: parameters, registers and instructions.",
        example="twice.cu --source",
        statuses={
            "0": "printed",
            "1": "the file cannot be read or compiled, or has no such kernel",
            "2": "the command line is wrong",
        },
    )
    add_compile_options(parser)
    parser.add_argument("--kernel", metavar="NAME", help="only this kernel")
    parser.add_argument(
        "--source",
        action="store_true",
        help="the PTX of each line of the CUDA source, beside it; of a .ptx file without its text",
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    try:
        text, source = _texts(options)
        module = parse(text)
        names = _chosen(module, options.kernel)
        if options.source:
            _print_by_source_line(module, names, source)
            return 0
        entries = list(_entries(module, names))
    except FAULTS as error:
        return failed(options.file, error)
    if options.json:
        print_text(json.dumps([asdict(entry) for entry in entries], indent=2))
    else:
        _print(entries)
    return 0


def _texts(options: argparse.Namespace) -> tuple[str, SourceText]:
    """Return the PTX, and the text of its source as far as it is known."""
    if options.file.suffix == ".ptx":
        return read_text(options.file), SourceText("")
    options.kind, options.lineinfo = ptx.ImageKind.PTX, True
    requests = requests_of(options)
    if len(requests) != 1:
        raise ValueError("give one --target")
    image = ptx.default_cache().get_or_build(requests[0])
    return image.data.decode(), SourceText.of(requests[0])


def _chosen(module: PtxModule, kernel: str | None) -> list[str]:
    names = [entry.name for entry in module.entries]
    if kernel is None:
        return names
    matching = [name for name in names if kernel in name]
    if not matching:
        raise ValueError(f"there is no kernel {kernel!r}; there are: {', '.join(names) or 'none'}")
    return matching


def _entries(module: PtxModule, names: list[str]) -> Iterator[KernelSummary]:
    signatures = signatures_of(module.text)
    assembled = _assembled(module)
    for name in names:
        mix = Counter(instruction.opcode for instruction in _instructions(module, name))
        registers, stack, spilled = assembled.get(name, (None, None, None))
        yield KernelSummary(
            name,
            [f"{param.ptx_type}[{param.nbytes}]" for param in signatures[name].params],
            signatures[name].shared_bytes,
            registers,
            stack,
            spilled,
            dict(mix.most_common()),
            effects_of(module, name),
        )


def _instructions(module: PtxModule, name: str) -> Iterator[Instruction]:
    for function in reachable_functions(module, name):
        if module.functions[function].span is not None:
            for statement in module.body(function).statements:
                if isinstance(statement, Instruction):
                    yield statement


def _assembled(module: PtxModule) -> dict[str, tuple[int, int, int]]:
    """Return each kernel's registers, stack and spills; empty if no assembler accepts the PTX."""
    target = ptx.Target.parse(module.target).as_kind(ptx.ImageKind.CUBIN)
    image = ptx.Image.from_ptx(module.text)
    try:
        options = ptx.LinkOptions(extra=("-Xptxas=-v",))
        log = ptx.link([image], target, options, cache=False).log
    except ptx.PtxError as error:
        print_error(f"no registers: {error}")
        return {}
    return dict(_used(log))


def _used(log: str) -> Iterator[tuple[str, tuple[int, int, int]]]:
    for part in re.split(r"(?=ptxas info    : Compiling)", log):
        name, registers, spilled = (form.search(part) for form in (_COMPILED, _USED, _SPILLED))
        if name and registers:
            stack, stores = (int(spilled[1]), int(spilled[2])) if spilled else (0, 0)
            yield name[1], (int(registers[1]), stack, stores)


def _print(entries: Iterable[KernelSummary]) -> None:
    for entry in entries:
        rows = [
            ("parameters", ", ".join(entry.parameters) or "none"),
            ("shared bytes", str(entry.shared_bytes)),
        ]
        if entry.registers is not None:
            rows.append(("registers", str(entry.registers)))
            rows.append(("stack bytes", f"{entry.stack_bytes}, {entry.spill_bytes} spilled"))
        mix = ", ".join(f"{name} {count}" for name, count in entry.instructions.items())
        rows.append((f"{sum(entry.instructions.values())} instructions", mix or "none"))
        rows += _effect_rows(entry.effects)
        print_table(entry.name, ("what", "value"), rows)


def _effect_rows(effects: Effects) -> Iterator[tuple[str, str]]:
    """Yield what a kernel may touch, where there is any."""
    for what, names in (
        ("may read", effects.reads), ("may write", effects.writes),
        ("may update or copy", effects.updates), ("kept for the next launch", effects.kept),
        ("of the hardware", effects.hardware), ("calls", effects.calls),
        ("atomics", effects.atomics),
    ):  # fmt: skip
        if names:
            yield what, ", ".join(names)


def _print_by_source_line(module: PtxModule, names: list[str], source: SourceText) -> None:
    lines: dict[tuple[int, int], list[str]] = {}
    texts = module.text.split("\n")
    for name in names:
        for ptx_instruction in _instructions(module, name):
            location = ptx_instruction.location
            key = (location.file, location.line) if location else (0, 0)
            lines.setdefault(key, []).append(texts[ptx_instruction.line - 1].strip())
    for (number, line), instructions in sorted(lines.items()):
        file = module.files.get(number, "?")
        print_text(f"{Path(file).name}:{line}: {source.line(file, line)}".rstrip())
        for instruction in instructions:
            print_text(f"        {instruction}")
