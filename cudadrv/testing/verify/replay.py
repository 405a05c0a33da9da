"""`SavedFinding`: a finding with its kernel and reference, which runs again without its file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

import ptx
from ptx.emulate.model.geometry import Dim3
from ptx.source_text import SourceText
from ptx.visible_text import visible_line

from ... import border
from ...emulator import CheckName
from ...emulator.checks import Checks
from ...errors import ArgumentValueError
from ..foreign_json import ForeignJsonError, JsonValue, read_json
from ..strategies import DrawnArray
from .comparison import Mask, ReferenceArrays, Tolerance, checked_reference
from .example_run import BYTES_NEAR, AccessQuery, CompiledCase, Fault
from .kernel_case import KernelCase, unwritten_by
from .verdict import (
    Argument,
    CannotVerifyError,
    Finding,
    Json,
    Verdict,
    argument_to_json,
    launch_text,
    read_argument,
    read_finding,
    reject_format,
)

Host: TypeAlias = npt.NDArray[np.generic]
_FORMAT: Final = 1
_ADDRESS: Final = re.compile(r"(\w+)(?:\[\s*(\d+(?:\s*,\s*\d+)*)\s*\]|\s*\+\s*(\d+))?")
_DIMENSIONS: Final = 3
_SPACES: Final = ("shared", "local")


@dataclass(frozen=True, slots=True)
class SavedFinding:
    """A finding, with everything that shows it again.

    Attributes:
        finding: the finding; its example has the arguments, memory contents and schedule.
        kernel: the kernel's name in the PTX.
        ptx: the PTX that ran.
        checks: the checks of the emulator.
        source, source_file: the CUDA C++, and its path.
        expected: the reference's arrays, by argument, and the elements that it leaves unwritten.
        tolerances: of the same arrays.
        seed: of the generated examples.
    """

    finding: Finding
    kernel: str
    ptx: str
    checks: tuple[CheckName, ...]
    source: str
    source_file: str
    expected: ReferenceArrays
    tolerances: Mapping[str, Tolerance]
    seed: int

    def faults(self) -> Sequence[Fault]:
        """Run the kernel again; return its faults, causes before effects.

        Raises:
            CannotVerifyError: the finding does not fit its kernel.
        """
        return self._compiled().faults(self.finding.example, self.expected)

    def history(self, address: str = "", thread: str = "") -> list[str]:
        """Run the kernel again; return the accesses to an address, of a thread, in their order.

        Args:
            address: `NAME`, `NAME[INDEX]` or `NAME + BYTES`, with an array of the arguments,
                `shared` or `local`; "" is every address. An index is one number in C order, or a
                number for each dimension.
            thread: `X,Y,Z:X,Y,Z`, the block and the thread; missing coordinates are 0. "" is every
                thread.

        Raises:
            ArgumentValueError: the address or the thread is wrong.
        """
        query = self._query(address, thread)
        return self._compiled().history(self.finding.example, query)

    def _query(self, address: str, thread: str) -> AccessQuery:
        block_at, thread_at = (None, None) if not thread else self._thread(thread)
        if not address:
            return AccessQuery("", 0, None, block_at, thread_at)
        arrays = {
            name: argument.contents
            for name, argument in self.finding.example.arguments.items()
            if isinstance(argument, DrawnArray)
        }
        match = _ADDRESS.fullmatch(address.strip())
        name = "" if match is None else match[1]
        if match is None or name not in (*arrays, *_SPACES):
            raise ArgumentValueError(
                f"address {address!r}: give NAME, NAME[INDEX] or NAME+BYTES\n"
                f"  the names are {', '.join((*arrays, *_SPACES))}"
            )
        if match[2] is not None and name not in arrays:
            raise ArgumentValueError(f"address {address!r}: give {name}+BYTES")
        first, nbytes = 0, arrays[name].nbytes if name in arrays else None
        if match[2] is not None:
            nbytes = arrays[name].itemsize
            first = nbytes * _element(address, match[2], arrays[name].shape, name)
        elif match[3] is not None:
            first, nbytes = int(match[3]), 1
        if name in arrays and first >= arrays[name].nbytes + BYTES_NEAR:
            array = arrays[name]
            raise ArgumentValueError(
                f"address {address!r}: {name} has {array.nbytes} bytes, {array.size} elements of "
                f"{array.dtype}"
            )
        return AccessQuery(name, first, nbytes, block_at, thread_at)

    def _thread(self, text: str) -> tuple[Dim3, Dim3]:
        """Return the block and the thread that a text names."""
        config = self.finding.example.config
        block, thread = _thread_of(text)
        for at, extent in ((block, config.grid), (thread, config.block)):
            if any(number >= most for number, most in zip(at, extent, strict=True)):
                raise ArgumentValueError(f"thread {text!r}: the launch is {launch_text(config)}")
        return block, thread

    def _compiled(self) -> CompiledCase:
        try:
            image = ptx.Image.from_ptx(self.ptx)
        except ptx.PtxError as error:
            raise CannotVerifyError(f"the finding's PTX is wrong: {error}") from None
        if self.kernel not in image.signatures:
            raise CannotVerifyError(f"the finding's PTX has no kernel {self.kernel!r}")
        if self.finding.kernel != self.kernel:  # a name expression, as the finding's text has it
            image = replace(image, lowered_names={visible_line(self.finding.kernel): self.kernel})
        arguments = {
            name: argument.contents if isinstance(argument, DrawnArray) else argument
            for name, argument in self.finding.example.arguments.items()
        }
        case = KernelCase(
            self.source,
            arguments=arguments,
            launch=self.finding.example.config,
            reference=lambda: None,  # its results are those of `expected`
            kernel=self.kernel,
            tolerance=self.tolerances,
        )
        case._source_name = self.source_file
        return CompiledCase(
            case, image, self.kernel, self.checks, SourceText(self.source_file, self.source)
        )

    def to_json(self) -> Json:
        """Return it as JSON."""
        return {
            "format": _FORMAT,
            "finding": self.finding.to_json(),
            "kernel": self.kernel,
            "ptx": self.ptx,
            "checks": list(self.checks),
            "source": self.source,
            "source_file": self.source_file,
            "expected": {
                name: argument_to_json(DrawnArray(array)) for name, array in self.expected.items()
            },
            "opened": {
                name: argument_to_json(DrawnArray(mask))
                for name, mask in self.expected.opened.items()
            },
            "tolerances": {name: asdict(tolerance) for name, tolerance in self.tolerances.items()},
            "seed": self.seed,
        }

    @classmethod
    def from_json(cls, fields: object) -> SavedFinding:
        """Return the finding that `to_json` wrote.

        Raises:
            CannotVerifyError: it is no such finding, or of another format.
        """
        try:
            return _saved(JsonValue(fields))
        except ForeignJsonError as error:
            raise _not_saved(error) from None

    @classmethod
    def read(cls, file: Path) -> SavedFinding:
        """Return the finding of a file, whoever wrote it.

        Raises:
            ArgumentValueError: there is no such file.
            CannotVerifyError: it is no saved finding, or of another format.
        """
        try:
            return _saved(read_json(border.instance_of("SavedFinding.read: file", file, Path)))
        except FileNotFoundError:
            raise ArgumentValueError(f"{file}: there is no such file") from None
        except ForeignJsonError as error:
            raise _not_saved(error) from None


def _not_saved(error: ForeignJsonError) -> CannotVerifyError:
    remedy = "write one: python -m cudadrv verify FILE.py --save FOLDER"
    return CannotVerifyError(f"it is not a saved finding: {error}\n  {remedy}")


def _saved(value: JsonValue) -> SavedFinding:
    remedy = "\n  save it again: python -m cudadrv verify FILE.py --save FOLDER"
    reject_format(value, "a saved finding", _FORMAT, remedy)
    value.fields((*SavedFinding.__dataclass_fields__, "opened", "format"))
    finding = read_finding(value.field("finding"))
    known = [check.one_of(Checks.NAMES) for check in value.field("checks").items()]
    return SavedFinding(
        finding=finding,
        checks=Checks.read(known),
        expected=_read_arrays(value, finding.example.arguments),
        tolerances={
            name: _read_tolerance(limits)
            for name, limits in value.field("tolerances").fields().items()
        },
        seed=value.field("seed").integer(),
        **{name: value.field(name).text() for name in ("kernel", "ptx", "source", "source_file")},
    )


def _read_arrays(value: JsonValue, arguments: Mapping[str, Argument]) -> ReferenceArrays:
    arrays = {
        name: _read_expected(array, arguments.get(name))
        for name, array in value.field("expected").fields().items()
    }
    if value.has("opened"):
        masks = value.field("opened").fields()
        opened = {name: _read_mask(mask, arrays.get(name)) for name, mask in masks.items()}
    else:  # of an older version
        opened = {name: unwritten_by(array, arguments[name]) for name, array in arrays.items()}
    return ReferenceArrays(arrays, opened)


def _read_mask(value: JsonValue, array: Host | None) -> Mask:
    mask = read_argument(value)
    if (
        not isinstance(mask, DrawnArray)
        or mask.contents.dtype != np.bool_
        or array is None
        or mask.contents.shape != array.shape
    ):
        raise value.wrong("a bool for each element of an array of the reference")
    return mask.contents.astype(np.bool_)


def _read_expected(value: JsonValue, argument: Argument | None) -> Host:
    array = read_argument(value)
    if not isinstance(array, DrawnArray) or not isinstance(argument, DrawnArray):
        raise value.wrong("an array of the arguments")
    try:
        return checked_reference("array", array.contents, argument.contents)
    except CannotVerifyError as error:
        raise ForeignJsonError(str(error)) from None


def _read_tolerance(value: JsonValue) -> Tolerance:
    limits = value.fields(Tolerance.__dataclass_fields__)
    sizes = {name: limit for name, limit in limits.items() if not limit.is_null}
    ulps = sizes.pop("ulps", None)
    try:
        return Tolerance(
            **{name: limit.finite(0) for name, limit in sizes.items()},
            ulps=None if ulps is None else ulps.integer(0),
        )
    except ArgumentValueError:
        raise value.wrong("ulps, or relative and absolute") from None


def _element(address: str, index: str, shape: tuple[int, ...], name: str) -> int:
    """Return the number of an element in C order."""
    numbers = [int(number) for number in index.split(",")]
    if len(numbers) == 1:
        return numbers[0]
    is_inside = len(numbers) == len(shape) and all(
        number < extent for number, extent in zip(numbers, shape, strict=True)
    )
    if not is_inside:
        raise ArgumentValueError(f"address {address!r}: {name} has shape {shape}")
    return int(np.ravel_multi_index(numbers, shape))


def _thread_of(text: str) -> tuple[Dim3, Dim3]:
    parts = [coordinates.split(",") for coordinates in text.replace(" ", "").split(":")]
    if len(parts) == 2 and all(
        len(coordinates) <= _DIMENSIONS and all(word.isdecimal() for word in coordinates)
        for coordinates in parts
    ):
        block, thread = ([*map(int, coordinates), 0, 0][:_DIMENSIONS] for coordinates in parts)
        return (block[0], block[1], block[2]), (thread[0], thread[1], thread[2])
    raise ArgumentValueError(f"thread {text!r}: give BLOCK:THREAD, such as 0:1 or 0,0,0:1,0,0")


def saved_findings(case: KernelCase, verdict: Verdict) -> list[SavedFinding]:
    """Return the findings of a verdict in the form that runs again without the case.

    Raises:
        CannotVerifyError: the case has `program=`, whose Python is not saved.
    """
    if case.program is not None:
        raise CannotVerifyError("its findings cannot be saved: program= is Python, which is not")
    case = case.named(verdict.case.partition("::")[2])
    _, kernel = case.compile()
    saved: list[SavedFinding] = []
    for finding in verdict.findings:
        expected = case.expected(finding.example)
        saved.append(
            SavedFinding(
                finding,
                kernel,
                verdict.ptx,
                Checks.read(verdict.checks[1:]),  # without "values"
                case.read_source(),
                case.source_file,
                expected,
                {name: case.tolerance_of(name) for name in expected},
                verdict.seed,
            )
        )
    return saved
