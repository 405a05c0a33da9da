"""`CaseReport`: what a page shows of one verified case, as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ptx.emulate.model.geometry import WARP, Dim3
from ptx.isa.model import Instruction, source_place
from ptx.isa.module import parse
from ptx.isa.signature import reachable_functions

from ...emulator import Counts
from .. import verify  # before its files: else two threads could wait for each other
from ..budget import numbers_of
from ..strategies import DrawnArray
from ..verify.example_run import CompiledCase, MeasuredRun
from ..verify.search import drawn_examples
from ..verify.verification import compiled_case
from .access_map import AccessMap, access_maps
from .launch_bounds import LaunchBounds, launch_bounds

if TYPE_CHECKING:
    from ...emulator import EmulatedDevice

_NO_FILE: Final = ""


@dataclass(frozen=True, slots=True)
class PtxLine:
    """An instruction: its line of PTX, and the text."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class FindingMark:
    """A finding on one line of source.

    Attributes:
        number: of the finding in its verdict, from 1.
        check: of the finding.
        what: the operation there, such as "write".
    """

    number: int
    check: str
    what: str


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A line of source, with everything that belongs to it.

    Attributes:
        number: the line, from 1; 0 for instructions without a line.
        text: its text; "" if that is unknown.
        numbers: the counts of the line, by the names of budgets; empty if it did not run.
        ptx: its instructions.
        marks: the findings there.
    """

    number: int
    text: str
    numbers: Mapping[str, int]
    ptx: tuple[PtxLine, ...]
    marks: tuple[FindingMark, ...]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the kernel.

    Attributes:
        name: without its folder; "" for instructions without a line of source.
        is_whole: whether it has all lines, and not only those with instructions.
        rows: ascending.
    """

    name: str
    is_whole: bool
    rows: tuple[SourceRow, ...]


@dataclass(frozen=True, slots=True)
class StreamOperation:
    """An operation of a stream in the measured run.

    Attributes:
        number: counts the operations in the order of their calls, from 1.
        name: the kernel's name, or the kind of the operation.
        is_kernel: whether it is a kernel.
        stream: the number of its stream, from 1 in the order of first use.
        begins, ends: its steps; None if it did not run, or a fault ended it.
        waits_for: the numbers of operations of other streams that it came after.
        place: file and line of the call, of a case with `program=`; else "".
    """

    number: int
    name: str
    is_kernel: bool
    stream: int
    begins: int | None
    ends: int | None
    waits_for: tuple[int, ...]
    place: str


@dataclass(frozen=True, slots=True)
class CaseReport:
    """A verdict, and the measurements of one launch.

    Attributes:
        verdict: the verdict.
        example: the example that was measured.
        reason: why this example, in words.
        device: the emulated device.
        stopped_by: the fault that ended the measured run, or "".
        files: the sources, the case's own first.
        most: the largest count of any line, by the names of budgets; only those above 0.
        launches: the launches, with their bounds.
        block, warp: the warp whose accesses are shown.
        accesses: of that warp, by instruction.
        operations: those of the streams, in the order of their calls.
    """

    verdict: verify.Verdict
    example: verify.Example
    reason: str
    device: EmulatedDevice
    stopped_by: str
    files: tuple[SourceFile, ...]
    most: Mapping[str, int]
    launches: tuple[LaunchBounds, ...]
    block: Dim3
    warp: int
    accesses: tuple[AccessMap, ...]
    operations: tuple[StreamOperation, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The content of a page.

    Attributes:
        cases: the verified cases.
        errors: cases that cannot be verified: name and reason.
    """

    cases: tuple[CaseReport, ...]
    errors: tuple[tuple[str, str], ...] = ()


def report_case(
    case: verify.KernelCase, verdict: verify.Verdict, options: verify.VerifyOptions | None = None
) -> CaseReport:
    """Run one example of a verified case again, and return what a page shows of it.

    It is the smallest example of the first finding. Without findings it is the drawn example with
    the most bytes in its arrays.

    Args:
        case: the case.
        verdict: its verdict.
        options: those of the verification.

    Raises:
        CannotVerifyError: the source does not compile.
    """
    options = options or verify.VerifyOptions(seed=verdict.seed)
    compiled = compiled_case(case, options, verdict.case)
    example, reason = _chosen_example(compiled, verdict, options)
    block, warp = _chosen_warp(verdict, example)
    run = compiled.measure(example, block, warp)
    extent = next(
        (launch.block for launch in run.launches if launch.symbol == compiled.kernel),
        example.config.block,
    )
    signatures = compiled.image.signatures
    shared = {name: signature.shared_bytes for name, signature in signatures.items()}
    lines = _counts_by_line(run)
    numbers = [numbers_of(counts) for counts in lines.values()]
    most = (
        {name: max(line_numbers[name] for line_numbers in numbers) for name in numbers_of(Counts())}
        if numbers
        else {}
    )
    return CaseReport(
        verdict=verdict,
        example=example,
        reason=reason,
        device=run.device,
        stopped_by=run.stopped_by,
        files=_files(compiled, verdict.findings, run, lines),
        most={name: number for name, number in most.items() if number},
        launches=launch_bounds(run.launches, run.failed, run.device, shared),
        block=block,
        warp=warp,
        accesses=access_maps(run.accesses, extent, run.place_of),
        operations=_operations(run, has_places=case.program is not None),
    )


def _chosen_example(
    compiled: CompiledCase, verdict: verify.Verdict, options: verify.VerifyOptions
) -> tuple[verify.Example, str]:
    if verdict.findings:
        finding = verdict.findings[0]
        return finding.example, f"the smallest example that shows the finding “{finding.check}”"
    drawn = drawn_examples(compiled, options.seed, options.examples)
    most = max(
        drawn,
        key=lambda example: (_nbytes(example), example.config.blocks * example.config.threads),
    )
    return most, f"of {len(drawn)} drawn examples the one with the largest arrays"


def _nbytes(example: verify.Example) -> int:
    arrays = [
        argument for argument in example.arguments.values() if isinstance(argument, DrawnArray)
    ]
    return sum(array.contents.nbytes for array in arrays)


def _chosen_warp(verdict: verify.Verdict, example: verify.Example) -> tuple[Dim3, int]:
    """Return the block and the warp of the first thread that a finding names, else the first."""
    width, height, _ = example.config.block
    for line in verdict.findings[0].lines if verdict.findings else ():
        if line.block is not None and line.thread is not None:
            x, y, z = line.thread
            first, second, third = line.block
            return (first, second, third), (x + width * (y + height * z)) // WARP
    return (0, 0, 0), 0


def _operations(run: MeasuredRun, *, has_places: bool) -> tuple[StreamOperation, ...]:
    """Return the operations of a run; a kernel has the name of its launch."""
    kernels = [operation for operation in run.operations if operation.is_kernel and operation.ends]
    kernels.sort(key=lambda operation: (operation.ends or 0, operation.begins or 0))
    names = {
        operation.number: launch.kernel
        for operation, launch in zip(kernels, run.launches, strict=False)
    }
    return tuple(
        StreamOperation(
            operation.number,
            names.get(operation.number, operation.kind),
            operation.is_kernel,
            operation.stream,
            operation.begins,
            operation.ends,
            operation.waits_for,
            Path(operation.place).name if has_places else "",
        )
        for operation in run.operations
    )


def _counts_by_line(run: MeasuredRun) -> dict[tuple[str, int], Counts]:
    """Return the sums of all launches, by file and line."""
    sums: dict[tuple[str, int], Counts] = {}
    for launch in run.launches:
        for line, counts in launch.lines.items():
            place = line.file, line.number
            sums[place] = sums.get(place, Counts()) + counts
    return sums


def _ptx_by_line(compiled: CompiledCase, run: MeasuredRun) -> dict[tuple[str, int], list[PtxLine]]:
    """Return the instructions of each line of source, of the kernels that ran."""
    text = compiled.image.data.decode()
    module, lines = parse(text), text.split("\n")
    kernels = dict.fromkeys([launch.symbol for launch in run.launches] or [compiled.kernel])
    reached = dict.fromkeys(
        name for kernel in kernels for name in reachable_functions(module, kernel)
    )
    by_line: dict[tuple[str, int], list[PtxLine]] = {}
    for name in reached:
        if module.functions[name].span is None:
            continue
        for statement in module.body(name).statements:
            if isinstance(statement, Instruction):
                file, line = source_place(statement.location, module.files)
                place = (_NO_FILE, 0) if file is None or line is None else (file, line)
                shown = " ".join(lines[statement.line - 1].split())
                by_line.setdefault(place, []).append(PtxLine(statement.line, shown))
    return by_line


def _files(
    compiled: CompiledCase,
    findings: Sequence[verify.Finding],
    run: MeasuredRun,
    counts: Mapping[tuple[str, int], Counts],
) -> tuple[SourceFile, ...]:
    case = compiled.case
    ptx = _ptx_by_line(compiled, run)
    marks: dict[tuple[str, int], list[FindingMark]] = {}
    for file, line, mark in _marks(findings):
        known = marks.setdefault((file, line), [])
        known += [mark] if mark not in known else []
    own = Path(case.source_file).name
    places = {*ptx, *counts, *marks}
    named = sorted({file for file, _ in places if Path(file).name != own and file})
    own_paths = sorted({file for file, _ in places if Path(file).name == own}) or [own]

    def row(file: str, number: int, text: str) -> SourceRow:
        place = file, number
        numbers = numbers_of(counts[place]) if place in counts else {}
        return SourceRow(
            number, text, numbers, tuple(ptx.get(place, ())), tuple(marks.get(place, ()))
        )

    source = case.read_source().split("\n")
    files = [
        SourceFile(own, True, tuple(row(own_paths[0], n, text) for n, text in enumerate(source, 1)))
    ]
    for file in named:
        numbers = sorted({line for other, line in places if other == file})
        rows = tuple(row(file, line, compiled.source.line(file, line)) for line in numbers)
        files.append(SourceFile(Path(file).name, False, rows))
    if (_NO_FILE, 0) in ptx:
        files.append(SourceFile("", False, (row(_NO_FILE, 0, ""),)))
    return tuple(files)


def _marks(findings: Sequence[verify.Finding]) -> Iterator[tuple[str, int, FindingMark]]:
    for number, finding in enumerate(findings, 1):
        for line in finding.lines:
            if line.file is not None and line.line is not None:
                yield line.file, line.line, FindingMark(number, finding.check, line.what)
