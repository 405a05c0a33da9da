"""`Verdict` and `Finding`: the result of a verification, as values that JSON can hold."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

import numpy as np

from ...emulator.timeline.schedule import Schedule
from ...errors import CudadrvError, LaunchConfigError
from ...launch.config import NO_ATTRIBUTES, AccessWindow, LaunchAttributes, LaunchConfig
from ..foreign_json import ForeignJsonError, JsonValue
from ..strategies import DrawnArray

# JSON holds numbers, texts and further objects.
Json: TypeAlias = dict[str, object]
Argument: TypeAlias = "int | float | np.generic | DrawnArray"
Outcome: TypeAlias = Literal["verified", "found", "unfinished"]
StreamKind: TypeAlias = Literal["default", "new"]
RepairKind: TypeAlias = Literal[
    "barrier", "warp barrier", "mask", "fence", "scope", "atomic", "volatile", "wait", "bound",
    "operator", "guard", "launch", "initial",
]  # fmt: skip
FORMAT: Final = 1
_OUTCOMES: Final[tuple[Outcome, ...]] = ("verified", "found", "unfinished")
_STREAMS: Final = ("default", "new")
_MOST_DIMENSIONS: Final = 32  # of an array of NumPy 1
_MOST_EXTENT: Final = 2**31 - 1
_MOST_THREADS: Final = 1 << 24  # of a saved launch; the smallest that fails has far fewer
# As `dtype.str` of numbers, times, texts and bytes.
_DTYPE: Final = re.compile(r"[<>|=][biufcmMSUV][1-9]\d{0,6}(?:\[\w{1,9}\])?")
_MOST_SHOWN: Final = 8
_MOST_EARLIER: Final = 64
_VARIED: Final = {
    "shift": 4096,
    "hardware_seed": _MOST_EXTENT,
    "skipped": _MOST_EXTENT,
}  # the most that JSON may have
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
        earlier: launches of the same module before this one.
        shift: the first array begins so many bytes after the start of its allocation, the second
            twice as many, and so on. Guard zones are before and after each.
        hardware_seed: of what no result may depend on, such as the clock: `Limits.hardware_seed`.
        skipped: counters in the module's variables are advanced by so many launches before the
            last one.
        in_place: whether the launches use the same memory; their arrays have the same shapes.
        is_across: whether a multiple of 4 GiB is within each array, as an address.
        left: arrays whose contents the launches leave to the next one, if they use the same memory.
    """

    arguments: Mapping[str, Argument]
    config: LaunchConfig
    schedule: Schedule = field(default_factory=lambda: Schedule("immediate"))
    stream: StreamKind = "default"
    alternatives: tuple[LaunchConfig, ...] = field(default=(), repr=False, compare=False)
    earlier: tuple[Example, ...] = ()
    shift: int = 0
    hardware_seed: int = 0
    skipped: int = 0
    in_place: bool = False
    is_across: bool = False
    left: tuple[str, ...] = ()

    def to_json(self) -> Json:
        """Return it as JSON; arrays and NumPy numbers as the base64 text of their bytes."""
        fields: Json = {
            "arguments": {
                name: argument_to_json(argument) for name, argument in self.arguments.items()
            },
            "launch": _launch_to_json(self.config),
            "schedule": str(self.schedule),
            "stream": self.stream,
        }
        if self.earlier:
            fields["earlier"] = [each.to_json() for each in self.earlier]
            fields["in_place"] = self.in_place
        if self.is_across:
            fields["is_across"] = True
        if self.left:
            fields["left"] = list(self.left)
        return fields | {name: getattr(self, name) for name in _VARIED if getattr(self, name)}

    @classmethod
    def from_json(cls, fields: object) -> Example:
        """Return the example that `to_json` wrote.

        Raises:
            CannotVerifyError: it wrote no such value.
        """
        return _read(fields, "an example", read_example)

    def __str__(self) -> str:
        parts = [launch_text(self.config), *_launch_details(self.config)]
        parts += [f"order {self.schedule}", f"{self.stream} stream"]
        lines = [f"launch: {', '.join(parts)}"]
        lines += [f"{name} = {_shown(argument)}" for name, argument in self.arguments.items()]
        if self.shift:
            lines.append(f"array number k begins k x {self.shift} bytes after a multiple of 256")
        if self.is_across:
            lines.append("a multiple of 4 GiB is within each array, as an address")
        if self.hardware_seed:
            lines.append(f"other multiprocessors and clocks: hardware_seed={self.hardware_seed}")
        if self.skipped:
            lines.append(f"counters in variables advanced by {self.skipped} launches")
        if self.in_place:
            lines.append("all launches use the same memory")
        if self.left:
            lines.append(f"a launch finds {', '.join(self.left)} as the one before leaves it")
        for number, each in enumerate(self.earlier, 1):
            lines += [f"before it, launch {number} of the same module:", _indented(str(each), 2)]
        return "\n".join(lines)


def launch_text(config: LaunchConfig) -> str:
    """Return the grid and the block in words."""
    grid, block = (_extent_text(extent) for extent in (config.grid, config.block))
    return (
        f"{_counted(config.blocks, 'block')}{grid} of {_counted(config.threads, 'thread')}{block}"
    )


def _launch_details(config: LaunchConfig) -> Iterator[str]:
    """Yield all else of a launch in words, without default values."""
    if config.cluster is not None:
        yield f"clusters of {_counted(math.prod(config.cluster), 'block')}" + _extent_text(
            config.cluster
        )
    if config.shared_bytes:
        yield f"{config.shared_bytes} bytes shared"
    if config.cooperative:
        yield "cooperative"
    if config.programmatic:
        yield "programmatic"
    if config.attributes != NO_ATTRIBUTES:
        yield str(config.attributes)


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
            "kind": "array",
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "written": value.is_written,
            "data": base64.b64encode(array.tobytes()).decode(),
        }
    if isinstance(value, np.generic):
        data = base64.b64encode(value.tobytes()).decode()
        return {"kind": "number", "dtype": value.dtype.str, "data": data}
    return {"kind": "python", "value": value}


def read_argument(value: JsonValue) -> Argument:
    """Return the argument that `argument_to_json` wrote.

    Raises:
        ForeignJsonError: it wrote no such value.
    """
    kind = value.field("kind").one_of(("python", "number", "array"))
    if kind == "python":
        return value.field("value").number()
    name = value.field("dtype")
    if not _DTYPE.fullmatch(name.text()):
        raise name.wrong("a dtype of NumPy, such as <f4")
    dtype, data = np.dtype(name.text()), value.field("data")
    try:
        content = base64.b64decode(data.text(), validate=True)
    except ValueError:
        raise data.wrong("text in base64") from None
    shape = (
        ()
        if kind == "number"
        else tuple(extent.integer(0) for extent in value.field("shape").items())
    )
    if len(shape) > _MOST_DIMENSIONS or len(content) != math.prod(shape) * dtype.itemsize:
        raise data.wrong(f"the bytes of a {dtype} array of shape {shape[:_MOST_DIMENSIONS]}")
    flat = np.frombuffer(content, dtype).copy()
    if kind == "number":
        scalar: np.generic = flat[0]
        return scalar
    return DrawnArray(flat.reshape(shape), is_written=value.field("written").boolean())


def read_example(value: JsonValue) -> Example:
    """Return the example that `Example.to_json` wrote.

    Raises:
        ForeignJsonError: it wrote no such value.
    """
    known = (
        "arguments",
        "launch",
        "schedule",
        "stream",
        "earlier",
        "in_place",
        "is_across",
        "left",
    )
    value.fields((*known, *_VARIED))
    fields = value.field("arguments").fields()
    for name in fields:
        if not name.isprintable():
            raise value.field("arguments").wrong("an object of named arguments")
    arguments = {name: read_argument(argument) for name, argument in fields.items()}
    schedule = value.field("schedule")
    try:
        read = Schedule.read(schedule.text())
    except CudadrvError:
        raise schedule.wrong("an order, such as random:7") from None
    stream: StreamKind = "new" if value.field("stream").one_of(_STREAMS) == "new" else "default"
    varied = {
        name: value.field(name).integer(0, most) if value.has(name) else 0
        for name, most in _VARIED.items()
    }
    return Example(
        arguments,
        _read_launch(value.field("launch")),
        read,
        stream,
        earlier=_read_earlier(value),
        shift=varied["shift"],
        hardware_seed=varied["hardware_seed"],
        skipped=varied["skipped"],
        in_place=value.has("in_place") and value.field("in_place").boolean(),
        is_across=value.has("is_across") and value.field("is_across").boolean(),
        left=_read_left(value, arguments),
    )


def _read_left(value: JsonValue, arguments: Mapping[str, Argument]) -> tuple[str, ...]:
    if not value.has("left"):
        return ()
    return tuple(item.one_of(tuple(arguments)) for item in value.field("left").items())


def _read_earlier(value: JsonValue) -> tuple[Example, ...]:
    if not value.has("earlier"):
        return ()
    items = tuple(value.field("earlier").items())
    if len(items) > _MOST_EARLIER or any(item.has("earlier") for item in items):
        raise value.field("earlier").wrong(
            f"at most {_MOST_EARLIER} launches, each without earlier ones"
        )
    return tuple(map(read_example, items))


def _launch_to_json(config: LaunchConfig) -> Json:
    requests = config.attributes
    values = {name: getattr(requests, name) for name in _ATTRIBUTES}
    if requests.access_window is not None:
        values["access_window"] = asdict(requests.access_window)
    return {
        "grid": list(config.grid),
        "block": list(config.block),
        "shared_bytes": config.shared_bytes,
        "cluster": None if config.cluster is None else list(config.cluster),
        "cooperative": config.cooperative,
        "programmatic": config.programmatic,
        "attributes": {name: value for name, value in values.items() if value is not None},
    }


def _read_launch(value: JsonValue) -> LaunchConfig:
    value.fields(LaunchConfig.__dataclass_fields__)
    grid, block = (_read_extents(value.field(name)) for name in ("grid", "block"))
    threads = math.prod(grid) * math.prod(block)
    if threads > _MOST_THREADS:
        raise value.wrong(f"a launch of at most {_MOST_THREADS} threads")
    has_cluster = value.has("cluster") and not value.field("cluster").is_null
    return LaunchConfig(
        grid,
        block,
        value.field("shared_bytes").integer(0, _MOST_EXTENT),
        _read_extents(value.field("cluster")) if has_cluster else None,
        value.field("cooperative").boolean(),
        # Findings of older versions do not have these.
        value.has("programmatic") and value.field("programmatic").boolean(),
        _read_attributes(value.field("attributes")) if value.has("attributes") else NO_ATTRIBUTES,
    )


def _read_extents(value: JsonValue) -> tuple[int, ...]:
    return value.coordinates(3, 1, _MOST_EXTENT)


def _read_attributes(value: JsonValue) -> LaunchAttributes:
    fields: dict[str, Any] = {
        name: _ATTRIBUTES[name](field) for name, field in value.fields(_ATTRIBUTES).items()
    }
    try:
        return LaunchAttributes(**fields)
    except LaunchConfigError as error:
        raise value.wrong(f"attributes of a launch: {error}") from None


def _read_window(value: JsonValue) -> AccessWindow:
    fields = value.fields(AccessWindow.__dataclass_fields__)
    values: dict[str, Any] = {
        name: field.number() if name in _NUMBERS else field.text() for name, field in fields.items()
    }
    try:
        return AccessWindow(**values)
    except (TypeError, LaunchConfigError) as error:  # one is missing, or out of its range
        raise value.wrong(f"an access window: {error}") from None


_NUMBERS: Final = ("address", "nbytes", "hit_ratio")
# `KernelCase` rejects a completion event, which belongs to one session, and `device_updatable`.
_ATTRIBUTES: Final[Mapping[str, Callable[[JsonValue], object]]] = {
    "priority": JsonValue.integer,
    "preferred_cluster": _read_extents,
    "memory_domain": JsonValue.text,
    "shared_carveout": JsonValue.integer,
    "access_window": _read_window,
    "nvlink_centric": JsonValue.boolean,
    "cluster_size_mode": JsonValue.text,
    "shared_memory_mode": JsonValue.text,
}


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
        lines: the lines of source, in the order in which they ran; of a wrong value those that made
            it, beginning with the cause if it is one instruction.
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
    def from_json(cls, fields: object) -> Finding:
        """Return the finding that `to_json` wrote.

        Raises:
            CannotVerifyError: it wrote no such value.
        """
        return _read(fields, "a finding", read_finding)

    def __str__(self) -> str:
        parts = [self.text]
        shown = dict.fromkeys(
            f"  {Path(line.file).name}:{line.line}: {line.text}"
            + (f"\n    {line.what}" if self.check == "values" else "")
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


def read_finding(value: JsonValue) -> Finding:
    """Return the finding that `Finding.to_json` wrote.

    Raises:
        ForeignJsonError: it wrote no such value.
    """
    value.fields(Finding.__dataclass_fields__)
    texts = {name: value.field(name).text() for name in ("check", "kernel", "text", "variable")}
    further = {name: value.field(name).text() for name in ("repeat", "note") if value.has(name)}
    repairs = value.field("repairs").items() if value.has("repairs") else iter(())
    return Finding(
        **texts,
        **further,
        lines=tuple(map(_read_line, value.field("lines").items())),
        example=read_example(value.field("example")),
        repairs=tuple(map(_read_repair, repairs)),
    )


def _read_line(value: JsonValue) -> SourceLine:
    value.fields(SourceLine.__dataclass_fields__)
    file = value.field("file")
    block, thread = (
        None if value.field(name).is_null else value.field(name).coordinates(3, 0, _MOST_EXTENT)
        for name in ("block", "thread")
    )
    return SourceLine(
        value.field("what").text(),
        None if file.is_null else file.text(),
        value.field("line").optional_integer(0),
        value.field("ptx_line").optional_integer(0),
        block,
        thread,
        value.field("text").text(),
    )


def _read_repair(value: JsonValue) -> Repair:
    value.fields(Repair.__dataclass_fields__)
    kinds: tuple[RepairKind, ...] = get_args(RepairKind)
    kind, line = value.field("kind").one_of(kinds), value.field("line")
    return Repair(
        kinds[kinds.index(kind)],
        value.field("change").text(),
        value.field("text").text(),
        None if line.is_null else _read_line(line),
        value.field("healed").boolean(),
        value.field("leaves").text(),
    )


_T = TypeVar("_T")


def _read(fields: object, noun: str, read: Callable[[JsonValue], _T]) -> _T:
    try:
        return read(JsonValue(fields))
    except ForeignJsonError as error:
        raise CannotVerifyError(f"it is not {noun}: {error}") from None


def _indented(text: str, spaces: int) -> str:
    return "\n".join(" " * spaces + line for line in text.split("\n"))


def reject_format(value: JsonValue, noun: str, known: int, remedy: str = "") -> None:
    """Reject a value of another format.

    Raises:
        CannotVerifyError: it has another one.
        ForeignJsonError: it has none.
    """
    version = value.field("format").integer()
    if version != known:
        raise CannotVerifyError(f"{noun} has format {version}: this cudadrv reads {known}{remedy}")


def _read_measure(value: JsonValue) -> Measure:
    value.fields(Measure.__dataclass_fields__)
    texts = {name: value.field(name).text() for name in ("name", "text")}
    return Measure(**texts, runs=value.field("runs").integer(0))


def _read_verdict(value: JsonValue) -> Verdict:
    reject_format(value, "a verdict", FORMAT)
    value.fields((*Verdict.__dataclass_fields__, "format"))
    outcome = value.field("outcome").one_of(_OUTCOMES)
    return Verdict(
        value.field("case").text(),
        value.field("kernel").text(),
        outcome,
        tuple(map(read_finding, value.field("findings").items())),
        tuple(check.text() for check in value.field("checks").items()),
        value.field("seed").integer(),
        value.field("examples").integer(0),
        value.field("seconds").finite(0),
        value.field("is_complete").boolean(),
        value.field("ptx").text(),
        tuple(map(_read_line, value.field("contractions").items())),
        # Verdicts of older versions do not have these.
        tuple(map(_read_measure, value.field("measures").items())) if value.has("measures") else (),
        tuple(each.text() for each in value.field("suspicions").items())
        if value.has("suspicions")
        else (),
        tuple(each.text() for each in value.field("left_out").items())
        if value.has("left_out")
        else (),
        tuple(each.text() for each in value.field("unreached").items())
        if value.has("unreached")
        else (),
    )


@dataclass(frozen=True, slots=True)
class Measure:
    """One way in which a kernel was verified, beside drawn examples.

    Attributes:
        name: such as "launches".
        text: what it did, or why it was left out.
        runs: how many examples it ran.
    """

    name: str
    text: str
    runs: int = 0

    def __str__(self) -> str:
        runs = f" ({_counted(self.runs, 'run')})" if self.runs else ""
        return f"{self.name}: {self.text}{runs}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of verifying one case.

    Attributes:
        case: the case's name.
        kernel: the kernel's name.
        outcome: "verified", "found", or "unfinished" if nothing was found, and `left_out` or
            `unreached` is not empty.
        findings: at most one for each check.
        checks: the checks that ran, "values" first.
        seed: of the generated examples.
        examples: how many examples ran.
        seconds: how long it took.
        is_complete: False if the limit of seconds ended it early.
        ptx: the PTX that ran, with its source lines; with fused operations if only these fail.
        contractions: the sums and differences that ptxas may fuse with a product, so that a GPU can
            round otherwise than the emulator (docs/hardware.md).
        measures: what else was done, one line of the report each.
        suspicions: what a reader should look at, in words. They do not change the outcome.
        left_out: the measures that the limit of seconds ended, or left out.
        unreached: outcomes of comparisons with kept variables that no launch had, and for which the
            values are wrong.
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
    contractions: tuple[SourceLine, ...] = ()
    measures: tuple[Measure, ...] = ()
    suspicions: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()

    @property
    def is_verified(self) -> bool:
        """True if there are no findings, no measure is left out, and no outcome is unreached."""
        return self.outcome == "verified"

    def raise_findings(self) -> None:
        """Raise a `VerificationError` if there are findings."""
        if self.findings:
            raise VerificationError(self)

    def to_json(self) -> Json:
        """Return it as JSON."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        findings = [finding.to_json() for finding in self.findings]
        contractions = [asdict(line) for line in self.contractions]
        return {
            **plain,
            "format": FORMAT,
            "findings": findings,
            "checks": list(self.checks),
            "contractions": contractions,
            "measures": [asdict(measure) for measure in self.measures],
            "suspicions": list(self.suspicions),
            "left_out": list(self.left_out),
            "unreached": list(self.unreached),
        }

    @classmethod
    def from_json(cls, fields: object) -> Verdict:
        """Return the verdict that `to_json` wrote.

        Raises:
            CannotVerifyError: it is no verdict, or another version of cudadrv wrote it, in another
                format.
        """
        return _read(fields, "a verdict", _read_verdict)

    def __str__(self) -> str:
        early = "" if self.is_complete else ", ended by the limit of seconds"
        effort = f"{_counted(self.examples, 'example')}, {self.seconds:.1f} s{early}"
        notes = [*map(str, self.measures), *self._contracted()]
        notes += [f"suspicion: {text}" for text in self.suspicions]
        if self.left_out:
            notes.append(f"left out by the limit of seconds: {', '.join(self.left_out)}")
        notes += [f"not verified: {text}" for text in self.unreached]
        further = [f"  {text}" for text in notes]
        if not self.findings:
            return "\n".join(
                [f"{self.case}: {self.outcome} ({effort}; {', '.join(self.checks)})", *further]
            )
        names = ", ".join(finding.check for finding in self.findings)
        findings = [_indented(str(finding), 2) for finding in self.findings]
        return "\n".join([f"{self.case}: found {names}", *findings, *further, f"  {effort}"])

    def _contracted(self) -> Iterator[str]:
        """Yield a line about the sums that may be fused."""
        if self.contractions:
            places = dict.fromkeys(
                f"PTX line {line.ptx_line}"
                if line.file is None
                else f"{Path(line.file).name}:{line.line}"
                for line in self.contractions
            )
            shown = ", ".join(list(places)[:_MOST_SHOWN])
            more = f" and {len(places) - _MOST_SHOWN} more" if len(places) > _MOST_SHOWN else ""
            count = _counted(len(self.contractions), "place")
            yield f"ptxas may contract {count}: {shown}{more}"
