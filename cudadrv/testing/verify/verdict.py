"""`Verdict` and `Finding`: the result of a verification, as values that JSON can hold."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from ...emulator.timeline.schedule import Schedule, read_schedule
from ...errors import CudadrvError
from ...launch.config import LaunchConfig
from ..strategies import DrawnArray

# JSON holds numbers, texts and further objects.
Json: TypeAlias = dict[str, Any]
Argument: TypeAlias = "int | float | np.generic | DrawnArray"
Outcome: TypeAlias = Literal["verified", "found"]
StreamKind: TypeAlias = Literal["default", "new"]
RepairKind: TypeAlias = Literal[
    "barrier", "warp barrier", "mask", "fence", "scope", "atomic", "volatile", "wait", "bound",
    "operator", "guard", "launch", "initial",
]  # fmt: skip
FORMAT: Final = 1
_MOST_SHOWN: Final = 8
_MOST_REPAIRS: Final = 3


class CannotVerifyError(CudadrvError):
    """A case that cannot be verified: its source, its reference or its arguments are wrong."""


class VerificationError(CudadrvError, AssertionError):
    """A kernel that is not right.

    Attributes:
        verdict: the verdict, with its findings.
    """

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        super().__init__(str(verdict))


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line that a finding names.

    Attributes:
        what: the operation there, such as "write" or "stopped".
        file, line: of CUDA; None if unknown.
        ptx_line: of PTX; None if unknown.
        block, thread: the thread that executed it; None if unknown.
        text: the line of CUDA, without the spaces around it; "" if unknown.
    """

    what: str
    file: str | None = None
    line: int | None = None
    ptx_line: int | None = None
    block: tuple[int, ...] | None = None
    thread: tuple[int, ...] | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """The input of one run of a case.

    Attributes:
        arguments: of the kernel, by name, in the order of its parameters.
        config: the launch configuration.
        schedule: when queued operations run.
        stream: the context's default stream, or a new one.
        alternatives: other configurations for the same arguments; JSON does not have them.
    """

    arguments: Mapping[str, Argument]
    config: LaunchConfig
    schedule: Schedule = field(default_factory=lambda: Schedule("immediate"))
    stream: StreamKind = "default"
    alternatives: tuple[LaunchConfig, ...] = field(default=(), repr=False, compare=False)

    def to_json(self) -> Json:
        """Return it as JSON; arrays and NumPy numbers as the base64 text of their bytes."""
        config = self.config
        return {
            "arguments": {
                name: argument_to_json(argument) for name, argument in self.arguments.items()
            },
            "launch": {
                "grid": list(config.grid),
                "block": list(config.block),
                "shared_bytes": config.shared_bytes,
                "cluster": None if config.cluster is None else list(config.cluster),
                "cooperative": config.cooperative,
            },
            "schedule": str(self.schedule),
            "stream": self.stream,
        }

    @classmethod
    def from_json(cls, fields: Json) -> Example:
        """Return the example that `to_json` wrote."""
        arguments = {
            name: argument_from_json(argument) for name, argument in fields["arguments"].items()
        }
        config = LaunchConfig(**fields["launch"])
        return cls(arguments, config, read_schedule(fields["schedule"]), fields["stream"])

    def __str__(self) -> str:
        lines = [
            f"launch: {launch_text(self.config)}"
            f"{f', {self.config.shared_bytes} bytes shared' if self.config.shared_bytes else ''}"
            f", order {self.schedule}, {self.stream} stream",
        ]
        lines += [f"{name} = {_shown(argument)}" for name, argument in self.arguments.items()]
        return "\n".join(lines)


def launch_text(config: LaunchConfig) -> str:
    """Return the grid and the block in words."""
    grid, block = (_extent_text(extent) for extent in (config.grid, config.block))
    return (
        f"{_counted(config.blocks, 'block')}{grid} of {_counted(config.threads, 'thread')}{block}"
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _extent_text(extent: tuple[int, ...]) -> str:
    return f" {extent}" if max(extent[1:]) > 1 else ""


def _shown(value: Argument) -> str:
    if not isinstance(value, DrawnArray):
        return f"{value!s}{f' ({value.dtype})' if isinstance(value, np.generic) else ''}"
    array = value.contents
    shape = "x".join(map(str, array.shape)) or "1"
    if not value.is_written:
        return f"{array.dtype}[{shape}], unwritten"
    flat = array.reshape(-1)
    if flat.size and not np.any(flat != flat[0]):
        return f"{array.dtype}[{shape}], all {flat[0]!s}"
    shown = ", ".join(str(element) for element in flat[:_MOST_SHOWN])
    more = ", ..." if flat.size > _MOST_SHOWN else ""
    return f"{array.dtype}[{shape}]: {shown}{more}"


def argument_to_json(value: Argument) -> Json:
    """Return an argument as JSON."""
    if isinstance(value, DrawnArray):
        array = np.ascontiguousarray(value.contents)
        return {
            "kind": "array", "dtype": array.dtype.str, "shape": list(array.shape),
            "written": value.is_written, "data": base64.b64encode(array.tobytes()).decode(),
        }  # fmt: skip
    if isinstance(value, np.generic):
        data = base64.b64encode(value.tobytes()).decode()
        return {"kind": "number", "dtype": value.dtype.str, "data": data}
    return {"kind": "python", "value": value}


def argument_from_json(fields: Json) -> Argument:
    """Return the argument that `argument_to_json` wrote."""
    if fields["kind"] == "python":
        number: int | float = fields["value"]
        return number
    flat = np.frombuffer(base64.b64decode(fields["data"]), np.dtype(fields["dtype"])).copy()
    if fields["kind"] == "number":
        scalar: np.generic = flat[0]
        return scalar
    return DrawnArray(flat.reshape(fields["shape"]), is_written=fields["written"])


@dataclass(frozen=True, slots=True)
class Repair:
    """One change that was tried for a finding: of the PTX, the launch or the streams.

    Attributes:
        kind: a barrier, fence or wait that was inserted, a full member mask, a wider scope,
            atomic or volatile accesses, another bound, operator, guard or launch, or initial
            contents.
        change: the change without its line, such as "__syncthreads()".
        text: the change with its line, in words.
        line: the line of source, and the line of PTX; None of a change of the launch.
        healed: True if no example that ran again shows a fault.
        leaves: the check that reports a fault after the change; "" if it healed.
    """

    kind: RepairKind
    change: str
    text: str
    line: SourceLine | None
    healed: bool = False
    leaves: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of a kernel, with the smallest example that shows it.

    Attributes:
        check: "values" (the kernel and the reference differ), "fault" (a failure that belongs to
            no check), or a check of docs/checks.md, or "order".
        kernel: the kernel's name.
        text: the fault in words, of one or more lines.
        lines: the lines of source, in the order in which they ran.
        variable: the argument or variable, or "".
        example: the smallest example that shows it.
        repeat: the command that shows it again, or "".
        repairs: the changes that were tried, in their order.
        note: why the launch cannot be smaller, or "".
    """

    check: str
    kernel: str
    text: str
    lines: tuple[SourceLine, ...]
    variable: str
    example: Example
    repeat: str = ""
    repairs: tuple[Repair, ...] = ()
    note: str = ""

    def to_json(self) -> Json:
        """Return it as JSON."""
        return {
            "check": self.check,
            "kernel": self.kernel,
            "text": self.text,
            "lines": [asdict(line) for line in self.lines],
            "variable": self.variable,
            "example": self.example.to_json(),
            "repeat": self.repeat,
            "repairs": [asdict(repair) for repair in self.repairs],
            "note": self.note,
        }

    @classmethod
    def from_json(cls, fields: Json) -> Finding:
        """Return the finding that `to_json` wrote."""
        lines = tuple(_line_of(line) for line in fields["lines"])
        example = Example.from_json(fields["example"])
        repairs = tuple(
            Repair(
                **{**repair, "line": None if repair["line"] is None else _line_of(repair["line"])}
            )
            for repair in fields.get("repairs", ())
        )
        return cls(**{**fields, "lines": lines, "example": example, "repairs": repairs})

    def __str__(self) -> str:
        parts = [self.text]
        shown = dict.fromkeys(
            f"  {Path(line.file).name}:{line.line}: {line.text}"
            for line in self.lines
            if line.text and line.file is not None
        )
        parts += [*shown, "  smallest failing example:", _indented(str(self.example), 4)]
        parts += [f"  note: {self.note}"] if self.note else []
        parts += [f"  {line}" for line in self._repair_lines()]
        parts += [f"  repeat: {self.repeat}"] if self.repeat else []
        return "\n".join(parts)

    def _repair_lines(self) -> Iterator[str]:
        """Yield the repairs in words: those that heal it, and each other change once."""
        healing = {repair.change: repair for repair in reversed(self.repairs) if repair.healed}
        others = [repair for repair in self.repairs if repair.change not in healing]
        for repair in list(reversed(healing.values()))[:_MOST_REPAIRS]:
            yield f"repair: {repair.text} heals it"
        without = {
            repair.change: "" if repair.leaves == self.check else f" (leaves {repair.leaves})"
            for repair in sorted(others, key=lambda repair: repair.leaves != self.check)
        }
        shown = [f"{change}{leaves}" for change, leaves in without.items()]
        if shown:
            more = f" and {len(shown) - _MOST_SHOWN} more" if len(shown) > _MOST_SHOWN else ""
            yield f"does not heal it: {', '.join(shown[:_MOST_SHOWN])}{more}"


def _line_of(fields: Json) -> SourceLine:
    block, thread = (None if coordinates is None else tuple(coordinates)
                     for coordinates in (fields["block"], fields["thread"]))  # fmt: skip
    return SourceLine(**{**fields, "block": block, "thread": thread})


def _indented(text: str, spaces: int) -> str:
    return "\n".join(" " * spaces + line for line in text.split("\n"))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of verifying one case.

    Attributes:
        case: the case's name.
        kernel: the kernel's name.
        outcome: "verified" or "found".
        findings: at most one for each check.
        checks: the checks that ran, "values" first.
        seed: of the generated examples.
        examples: how many examples ran.
        seconds: how long it took.
        is_complete: False if the limit of seconds ended it early.
        ptx: the PTX that ran, with its source lines.
    """

    case: str
    kernel: str
    outcome: Outcome
    findings: tuple[Finding, ...]
    checks: tuple[str, ...]
    seed: int
    examples: int
    seconds: float
    is_complete: bool
    ptx: str

    @property
    def is_verified(self) -> bool:
        """True if there are no findings."""
        return self.outcome == "verified"

    def raise_findings(self) -> None:
        """Raise a `VerificationError` if there are findings."""
        if not self.is_verified:
            raise VerificationError(self)

    def to_json(self) -> Json:
        """Return it as JSON."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        findings = [finding.to_json() for finding in self.findings]
        return {**plain, "format": FORMAT, "findings": findings, "checks": list(self.checks)}

    @classmethod
    def from_json(cls, fields: Json) -> Verdict:
        """Return the verdict that `to_json` wrote.

        Raises:
            CannotVerifyError: another version of cudadrv wrote it, in another format.
        """
        rest = dict(fields)
        version = rest.pop("format", None)
        if version != FORMAT:
            raise CannotVerifyError(
                f"a verdict has format {version!r}: this cudadrv reads {FORMAT}"
            )
        findings = tuple(Finding.from_json(finding) for finding in fields["findings"])
        return cls(**{**rest, "findings": findings, "checks": tuple(fields["checks"])})

    def __str__(self) -> str:
        early = "" if self.is_complete else ", ended by the limit of seconds"
        effort = f"{_counted(self.examples, 'example')}, {self.seconds:.1f} s{early}"
        if self.is_verified:
            return f"{self.case}: verified ({effort}; {', '.join(self.checks)})"
        names = ", ".join(finding.check for finding in self.findings)
        findings = [_indented(str(finding), 2) for finding in self.findings]
        return "\n".join([f"{self.case}: found {names}", *findings, f"  {effort}"])
