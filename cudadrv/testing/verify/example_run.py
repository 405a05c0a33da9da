"""Run one example of a case on a fresh emulator, and collect its faults."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

import ptx
from ptx.emulate.check.race_check import GUESS, SAME_VALUE
from ptx.emulate.history.access_log import AccessLog, LoggedAccess
from ptx.emulate.history.value_chain import ChainStep, ValueChain
from ptx.emulate.history.value_trace import ValueTrace
from ptx.emulate.model.geometry import Dim3
from ptx.isa.model import Space
from ptx.isa.module import parse
from ptx.shown_path import shown_path
from ptx.source_text import SourceText

from ...emulator import (
    CheckName,
    CountedLaunch,
    EarlyRead,
    EmulatedDevice,
    Finding as Race,
    Limits,
    session,
)
from ...emulator.call_site import user_call_site
from ...emulator.environment import emulated_limits
from ...emulator.hosting import log_operations
from ...emulator.profiles import MAX_TOTAL_MEMORY, DeviceProperties
from ...emulator.timeline.operation_log import LoggedOperation
from ...emulator.timeline.schedule import OrderName
from ...errors import CudadrvError, CudaError
from ...memory.array import DeviceArray
from ...stream import cuda_context_for
from ..strategies import DrawnArray
from .comparison import Mask, ReferenceArrays, difference, unwritten_elements, within
from .kept_variables import KeptVariables
from .kernel_case import KernelCase, failed_call
from .stream_wait import StreamWait
from .verdict import CannotVerifyError, Example, SourceLine

if TYPE_CHECKING:
    from ...emulator import Found, Place
    from ...launch.module_and_kernel import Module
    from ...stream import Stream

Host: TypeAlias = npt.NDArray[np.generic]
VALUES: Final = "values"
FAULT: Final = "fault"
_ALLOCATED_BY: Final = re.compile(r" \(cuMem\w+(?: at [^()]*)?\)")
_ADDRESS: Final = re.compile(r"\b0x[0-9a-f]{6,}\b")
_DEFAULT_TARGET: Final = 90  # that the default device runs
_EVERY: Final = 1 << 62  # bytes
BYTES_NEAR: Final = 256  # before and after an array that still have its name
GUARD_BYTES: Final = range(0x74, 0x7C)  # huge as floats and as integers: a use changes values
_GUARD: Final = 64  # bytes after an array
_VECTOR: Final = 16  # bytes that stay aligned
_LOWER_HALF: Final = 1 << 32  # bytes that the lower half of an address tells apart
_MOST_STEPS: Final = 64  # of one instruction of a measured warp
ORDER_OF_CHECKS: Final = (
    "assemble", FAULT, "bounds", "sync", "race", "init", "divide", "nan", "order", "leak", VALUES,
)  # fmt: skip
"""Causes before their effects: the first one that an example shows names it."""
# Likely intentional races that cannot be the cause of wrong values.
_WITHOUT_EFFECT: Final = (GUESS, SAME_VALUE)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of one run.

    Attributes:
        check: as of `Finding`.
        text: the fault in words.
        lines: the lines of source.
        variable: the argument or variable, or "".
        calls: the file and line of the two calls of the host, if it is about their order; "" is the
            copy of an array before or after the kernels.
    """

    check: str
    text: str
    lines: tuple[SourceLine, ...] = ()
    variable: str = ""
    calls: tuple[str, ...] = ()


@dataclass(slots=True)
class _Run:
    """The state of one run.

    Attributes:
        arrays: the contents of the arrays after the kernel, by argument.
        memory: the first and the last address of each array, by argument.
        unwritten: which elements of the arrays nothing has written, if that is checked.
        overwritten: of arrays whose guard zones a kernel changed, what it changed.
        repeated: the arrays after earlier launches with the same arguments, by their number.
        caller: the file and line from which the arrays are copied, outside of this package.
    """

    arrays: dict[str, Host]
    memory: dict[str, tuple[int, int]]
    caller: str
    unwritten: dict[str, Mask] = field(default_factory=dict)
    overwritten: dict[str, str] = field(default_factory=dict)
    repeated: dict[int, dict[str, Host]] = field(default_factory=dict)

    def named(self, text: str) -> str:
        """Return a text with arguments' names in place of addresses, which change between runs."""

        def name_of(match: re.Match[str]) -> str:
            place = self.place_of(int(match[0], 16))
            if place is None:
                return match[0]
            return address_text(*place)

        text = text.replace(f", called at {shown_path(self.caller)}", " of the verification")
        # NVRTC adds the current folder to the name of a source that is text.
        text = text.replace(f"{Path.cwd()}{os.sep}", "")
        return _ADDRESS.sub(name_of, _ALLOCATED_BY.sub("", text))

    def line(self, place: Place, source: SourceText) -> SourceLine:
        """Return a line of a finding, without a file if a copy of the verification is there."""
        where, file, line = place.where, place.file, place.line
        if f"{file}:{line}" == self.caller or line == 0:  # 0 is code of no line
            file = line = None
        return SourceLine(
            place.what,
            file,
            line,
            None if where is None else where.ptx_line,
            None if where is None else where.block,
            None if where is None else where.thread,
            source.line(file, line),
        )

    def calls(self, finding: Found) -> tuple[str, ...]:
        """Return the two calls of the host whose order a finding is about; "" for the caller's."""
        calls: tuple[str, ...] = ()
        if isinstance(finding, Race) and finding.second is not None:
            calls = (finding.first.queued_at, finding.second.queued_at)
        elif isinstance(finding, EarlyRead):
            calls = (finding.queued_at, finding.read_at)
        return tuple("" if place == self.caller else place for place in calls) if all(calls) else ()

    def place_of(self, address: int) -> tuple[str, int] | None:
        """Return the array that an address is in, or near to, and the offset from its start."""

        def distance(name: str) -> int:
            first, last = self.memory[name]
            return max(first - address, address - last + 1, 0)

        nearest = min(self.memory, key=distance, default=None)
        if nearest is None or distance(nearest) > BYTES_NEAR:
            return None
        return nearest, address - self.memory[nearest][0]


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of one run.

    Attributes:
        faults: causes before effects.
        arrays: the contents of the arrays after the kernel, by argument.
        wrong_before: the first of the earlier launches with the same arguments whose arrays differ
            from the reference; None if there is none.
    """

    faults: tuple[Fault, ...]
    arrays: Mapping[str, Host]
    wrong_before: int | None = None


@dataclass(frozen=True, slots=True)
class Accessed:
    """The arrays of the arguments, and variables of the module, that a run accesses.

    Attributes:
        read, written: their names; atomic operations do both.
    """

    read: frozenset[str]
    written: frozenset[str]


@dataclass(frozen=True, slots=True)
class AccessQuery:
    """Which accesses of a run to record.

    Attributes:
        name: an array of the arguments, "shared", "local", or "" for every address.
        first: the first byte in it; `nbytes`: how many, None for all.
        block, thread: the coordinates of the only thread; None is every one.
    """

    name: str
    first: int
    nbytes: int | None
    block: Dim3 | None
    thread: Dim3 | None


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """One run of an example, with its counts.

    Attributes:
        launches: the launches; a fault ended the last `failed` of them.
        accesses: those of one warp, at most 64 of each instruction.
        operations: the operations of the streams.
        device: the emulated device.
        stopped_by: the fault, or "".
    """

    launches: Sequence[CountedLaunch]
    failed: int
    accesses: Sequence[LoggedAccess]
    operations: Sequence[LoggedOperation]
    device: EmulatedDevice
    stopped_by: str
    _run: _Run

    def place_of(self, address: int) -> tuple[str, int] | None:
        """Return the array that an address is in, or near to, and the offset from its start."""
        return self._run.place_of(address)


@dataclass(frozen=True, slots=True)
class CompiledCase:
    """A case with its image.

    Attributes:
        case: the case.
        image: PTX with line numbers.
        kernel: the kernel's name in the image.
        checks: the checks of the emulator.
        source: the lines that findings show.
        limits: the limits of its launches.
        wait: a wait that the program of the case lacks.
    """

    case: KernelCase
    image: ptx.Image
    kernel: str
    checks: tuple[CheckName, ...]
    source: SourceText
    limits: Limits = field(default_factory=emulated_limits)
    wait: StreamWait | None = None

    def faults(self, example: Example, expected: ReferenceArrays) -> Sequence[Fault]:
        """Run an example; return its faults, causes before effects."""
        return self.result(example, expected).faults

    def result(
        self,
        example: Example,
        expected: ReferenceArrays,
        allowed: Mapping[str, npt.NDArray[np.float64]] | None = None,
        *,
        is_strict: bool = False,
    ) -> RunResult:
        """Run an example; return its faults and its arrays.

        Args:
            example: the example.
            expected: the reference's arrays.
            allowed: how far an element may be from the reference, beyond the case's tolerance.
            is_strict: whether the default tolerance of small numbers is smaller.
        """
        run = _Run({}, {}, user_call_site())
        faults, findings = self._observed(example, run)

        def differences(of: _Run) -> Sequence[Fault]:
            return self._differences(of, expected, example, allowed or {}, is_strict=is_strict)

        faults += [Fault("bounds", text, (), name) for name, text in run.overwritten.items()]
        wrong_values = differences(run)
        faults += wrong_values
        faults += [
            self._fault_of(finding, run)
            for finding in findings
            if not finding.benign or (wrong_values and finding.benign not in _WITHOUT_EFFECT)
        ]
        faults.sort(key=lambda fault: ORDER_OF_CHECKS.index(fault.check))
        repeated = run.repeated.items()
        wrong = (n for n, arrays in repeated if differences(replace(run, arrays=arrays)))
        return RunResult(tuple(faults), run.arrays, next(wrong, None))

    def _observed(self, example: Example, run: _Run) -> tuple[list[Fault], Sequence[Found]]:
        """Run an example; return what the driver and what the checks report."""
        faults: list[Fault] = []
        order, seed = _order_of(example)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an OrderWarning is a finding, too
            try:
                with (
                    session(
                        order=order,
                        seed=seed,
                        check=self.checks,
                        limits=self._limits(example),
                        raise_findings=False,
                        **self._device(example),
                    ) as emulator,
                    nullcontext() if self.wait is None else self.wait.inserted(run.caller),
                ):
                    self._run(example, run)
            except CudadrvError as error:
                # Other errors than the driver's are about the arguments of the case.
                if not isinstance(error, CudaError):
                    raise CannotVerifyError(f"{error}\n{example}") from error
                if not any(finding.is_told for finding in emulator.findings):
                    faults.append(Fault(FAULT, f"fault: {run.named(str(error))}"))
        return faults, emulator.findings

    def arrays(self, example: Example) -> dict[str, Host]:
        """Run an example under no check of its accesses; return its arrays.

        An element that nothing has written has the contents that the example gives it.

        Raises:
            CannotVerifyError: the kernel fails.
        """
        run = _Run({}, {}, user_call_site())
        order, seed = _order_of(example)
        try:
            with (
                warnings.catch_warnings(),
                session(
                    order=order,
                    seed=seed,
                    check=["init"],
                    limits=self._limits(example),
                    raise_findings=False,
                    **self._device(example),
                ),
            ):
                warnings.simplefilter("ignore")  # of the order of copies
                self._run(example, run)
        except CudadrvError as error:
            file = self.case.source_file
            raise CannotVerifyError(f"the kernel of {file} fails: {error}\n{example}") from error
        for name, unwritten in run.unwritten.items():
            argument = example.arguments[name]
            assert isinstance(argument, DrawnArray)
            run.arrays[name][unwritten] = argument.contents[unwritten]
        return run.arrays

    def history(self, example: Example, query: AccessQuery) -> list[str]:
        """Run an example again; return the accesses of a query in words, in their order.

        Within the launch the order is "immediate".
        """
        run = _Run({}, {}, user_call_site())
        is_array = query.name in example.arguments

        def bounds() -> tuple[int, int]:
            start = query.first + (run.memory[query.name][0] if is_array else 0)
            return start, start + (_EVERY if query.nbytes is None else query.nbytes)

        log = AccessLog(
            "global" if is_array else query.name,
            bounds if query.name else None,
            query.block,
            query.thread,
        )
        with (
            suppress(CudaError),  # the accesses before a fault are its history
            session(
                order="immediate",
                check=[],
                limits=_logged(self._limits(example), log),
                raise_findings=False,
                **self._device(example),
            ),
        ):
            self._run(example, run)
        return [self._access_text(access, run) for access in log.accesses]

    def accessed(self, example: Example) -> Accessed:
        """Run an example; return the arrays and variables that it accesses."""
        run = _Run({}, {}, user_call_site())
        log = AccessLog("global")
        variables: dict[str, tuple[int, int]] = {}
        order, seed = _order_of(example)
        limits = _logged(self._limits(example), log)
        with (
            warnings.catch_warnings(),
            suppress(CudaError),
            session(
                order=order,
                seed=seed,
                check=[],
                limits=limits,
                raise_findings=False,
                **self._device(example),
            ),
        ):
            warnings.simplefilter("ignore")  # of the order of copies
            context = cuda_context_for(0)
            with context.load_module(self.image) as module, context.new_stream() as own:
                for name in self._variables():
                    array = module.global_array(name)
                    variables[name] = array.ptr, array.ptr + array.nbytes
                self._launch(module, own, example, run)
        known = {**run.memory, **variables}
        found: dict[str, set[str]] = {"read": set(), "write": set(), "atomic": set()}
        for access in log.accesses:
            found[access.kind] |= {
                name for name, (first, end) in known.items() if first <= access.address < end
            }
        both = found["atomic"]
        return Accessed(frozenset(found["read"] | both), frozenset(found["write"] | both))

    def value_chain(self, example: Example, expected: ReferenceArrays) -> list[ChainStep]:
        """Run an example again; return the steps that made its first wrong value, last ones first.

        Operations run at their calls; [] if no value is wrong then.
        """
        run, trace = self._traced(example)
        for name, reference in expected.items():
            array = run.arrays.get(name)
            if array is None:
                continue
            wrong = self.case.tolerance_of(name).differs(array, reference)
            wrong &= ~expected.open_elements(name)
            if wrong.any():
                offset = int(np.argmax(wrong)) * array.itemsize
                return ValueChain(trace, run.memory[name][0] + offset, array.itemsize).steps()
        return []

    def addresses(self, example: Example) -> dict[str, int]:
        """Return where the arrays of an example begin."""
        order, seed = _order_of(example)
        with session(order=order, seed=seed, check=[], **self._device(example)):
            context = cuda_context_for(0)
            with context.new_stream() as own:
                stream = own if example.stream == "new" else context.default_stream
                arguments = _on_device(stream, example).arguments.items()
                return {name: each.ptr for name, each in arguments if isinstance(each, DeviceArray)}

    def roundings(
        self, example: Example, name: str, places: npt.NDArray[np.intp]
    ) -> npt.NDArray[np.float64]:
        """Run an example again; return how far roundings put elements of an array off, about."""
        run, trace = self._traced(example)
        array = run.arrays[name]
        return np.array(
            [
                ValueChain(
                    trace, run.memory[name][0] + int(place) * array.itemsize, array.itemsize
                ).rounding()
                for place in places
            ]
        )

    def _traced(self, example: Example) -> tuple[_Run, ValueTrace]:
        """Run an example again, whose operations run at their calls, and record its values."""
        run, trace = _Run({}, {}, user_call_site()), ValueTrace()
        limits = self._limits(example)
        with (
            suppress(CudaError),
            session(
                order="immediate",
                check=[],
                raise_findings=False,
                limits=replace(limits, watchers=(*limits.watchers, trace.watcher)),
                **self._device(example),
            ),
        ):
            self._run(example, run)
        return run, trace

    def measure(self, example: Example, block: Dim3, warp: int) -> MeasuredRun:
        """Run an example again, count its launches, and record the accesses of one warp.

        No check runs. The order applies between operations, not inside the launches.
        """
        run = _Run({}, {}, user_call_site())
        text = ""
        order, seed = _order_of(example)
        log = AccessLog(block=block, warp=warp, most=_MOST_STEPS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an OrderWarning was reported by `faults`
            with (
                session(
                    order=order,
                    seed=seed,
                    check=[],
                    limits=_logged(self._limits(example), log),
                    **self._device(example),
                ) as emulator,
                emulator.counting() as counters,
            ):
                operations = log_operations(emulator)
                try:
                    self._run(example, run)
                except CudaError as error:
                    text = run.named(str(emulator.last_fault or error))
        (device,) = emulator.devices
        return MeasuredRun(
            (*counters.launches, *counters.failed),
            len(counters.failed),
            log.accesses,
            operations.operations,
            device,
            text,
            run,
        )

    def _access_text(self, access: LoggedAccess, run: _Run) -> str:
        """Return an access in words."""
        where = access.where
        address = f"{access.space} + {access.address}"
        if access.space == "global":
            address = run.named(f"0x{access.address:06x}")
        text = self.source.line(where.source_file, where.source_line)
        place = f"PTX line {where.ptx_line}"
        if where.source_line is not None and where.source_file is not None:
            place = f"{Path(where.source_file).name}:{where.source_line} ({place})"
        return (
            f"step {access.step}: {access.what} at {address} by "
            f"block {where.block}, thread {where.thread}, {place}{f': {text}' if text else ''}"
        )

    def _device(self, example: Example) -> DeviceProperties:
        """Return the properties of an emulated device that runs the target, and has the memory."""
        target, device = self.image.target.number, DeviceProperties()
        if target > _DEFAULT_TARGET:
            device["compute_capability"] = divmod(target, 10)
        if example.is_across:
            device["total_memory"] = MAX_TOTAL_MEMORY  # its pages are host memory where written
        return device

    def _limits(self, example: Example) -> Limits:
        return replace(self.limits, hardware_seed=example.hardware_seed)

    def _run(self, example: Example, run: _Run) -> None:
        """Run the launches of an example in one module, and note the arrays of the last."""
        context = cuda_context_for(0)
        with context.load_module(self.image) as module, context.new_stream() as own:
            kept = self._kept(module, context.default_stream) if example.skipped else None
            memory = _on_device(own, example) if example.in_place else None
            for number, each in enumerate(example.earlier):
                self._launch(module, own, each, run, memory, example.left)
                if each.arguments is example.arguments:
                    run.repeated[number] = dict(run.arrays)
                if kept is not None:
                    kept.observe()
            if kept is not None:
                kept.advance(example.skipped)
            self._launch(module, own, example, run, memory, example.left)

    def _kept(self, module: Module, stream: Stream) -> KeptVariables:
        return KeptVariables(module, self._variables(), stream)

    def _variables(self) -> tuple[str, ...]:
        """Return the names of the module's variables in global memory."""
        variables = parse(self.image.data.decode()).variables.values()
        # NVRTC's own, such as texts of printf, begin with a dollar sign.
        names = (each.name for each in variables if each.space is Space.GLOBAL)
        return tuple(name for name in names if name[0] != "$")

    def kept_after(self, examples: Sequence[Example]) -> KeptVariables:
        """Launch examples one after another in one module; return what they keep in variables."""
        example = examples[0]
        order, seed = _order_of(example)
        run = _Run({}, {}, user_call_site())
        with (
            suppress(CudaError),  # a fault here is another check's
            session(
                order=order,
                seed=seed,
                check=[],
                limits=self._limits(example),
                **self._device(example),
            ),
        ):
            context = cuda_context_for(0)
            with context.load_module(self.image) as module, context.new_stream() as own:
                kept = self._kept(module, own)
                for each in examples:
                    self._launch(module, own, each, run)
                    kept.observe()
        return kept

    def _launch(
        self,
        module: Module,
        own: Stream,
        example: Example,
        run: _Run,
        reused: _DeviceMemory | None = None,
        left: Sequence[str] = (),
    ) -> None:
        """Run the kernel, in memory of its own or in that of another launch; note its arrays.

        The arrays of `left` keep what that launch left in them.
        """
        # Of an earlier launch, whose sizes may be others, nothing stays if this one fails.
        run.arrays.clear()
        run.unwritten.clear()
        stream = own if example.stream == "new" else own.context.default_stream
        memory = _on_device(stream, example) if reused is None else reused
        if reused is not None:
            reused.fill(stream, example, left)
        run.memory |= {
            name: (argument.ptr, argument.ptr + argument.nbytes)
            for name, argument in memory.arguments.items()
            if isinstance(argument, DeviceArray)
        }
        self._call(module, stream, example, memory)
        for name, argument in memory.arguments.items():
            if isinstance(argument, DeviceArray):
                _read_array(stream, name, argument, run)
        run.overwritten |= _overwritten(stream, memory, example)
        stream.synchronize()
        if reused is None:
            memory.close()

    def _call(
        self, module: Module, stream: Stream, example: Example, memory: _DeviceMemory
    ) -> None:
        """Call the program of the case, or launch its kernel."""
        arguments = memory.arguments.values()
        if self.case.program is None:
            module.kernel(self.kernel).launch(stream, example.config, *arguments)
            return
        try:
            self.case.program(stream, module, example.config, *arguments)
        except CudadrvError:
            raise
        except (Exception, SystemExit) as error:
            raise failed_call("program=", error) from error

    def _differences(
        self,
        run: _Run,
        expected: ReferenceArrays,
        example: Example,
        allowed: Mapping[str, npt.NDArray[np.float64]],
        *,
        is_strict: bool,
    ) -> list[Fault]:
        """Return how the arrays differ from the reference: missing elements, and wrong ones."""
        faults: list[Fault] = []
        for name, reference in expected.items():
            if name not in run.arrays:
                continue
            array, is_open = run.arrays[name], expected.open_elements(name)
            missing = run.unwritten.get(name, np.zeros(array.shape, np.bool_)) & ~is_open
            tolerance = self.case.tolerance_of(name)
            if is_strict:
                with np.errstate(over="ignore"):  # of a reference in a wider type
                    tolerance = tolerance.scaled(reference.astype(array.dtype))
            near = within(array, reference, allowed[name]) if name in allowed else False
            texts = {
                "init": unwritten_elements(name, missing),
                VALUES: difference(name, array, reference, tolerance, is_open | missing | near),
            }
            faults += [Fault(check, text, (), name) for check, text in texts.items() if text]
        return faults

    def _fault_of(self, finding: Found, run: _Run) -> Fault:
        lines = tuple(run.line(place, self.source) for place in finding.places)
        return Fault(
            finding.check, run.named(str(finding)), lines, finding.variable, run.calls(finding)
        )


def address_text(name: str, offset: int) -> str:
    """Return an address as the name of an array and the bytes from its start."""
    return f"{name} {'-' if offset < 0 else '+'} {abs(offset)}" if offset else name


def _logged(limits: Limits, log: AccessLog) -> Limits:
    return replace(limits, watchers=(*limits.watchers, log.watcher))


def _order_of(example: Example) -> tuple[OrderName, int | None]:
    """Return the order and the seed of an example's session."""
    schedule = example.schedule
    if schedule.name == "random":
        return "random", schedule.seed
    return ("immediate" if schedule.name == "held" else schedule.name), None


def _overwritten(stream: Stream, memory: _DeviceMemory, example: Example) -> dict[str, str]:
    """Return the findings of the guard zones that a launch has changed, by array."""
    findings: dict[str, str] = {}
    for name, zone in memory.guards:
        before = _guard_bytes(zone.nbytes, example.shift)
        changed = int(np.count_nonzero(stream.to_host(zone) != before))
        if changed:
            findings[name] = (
                f"bounds: the kernel writes {changed} bytes before the start or after the end "
                f"of {name}"
            )
    return findings


def _read_array(stream: Stream, name: str, array: DeviceArray[Any], run: _Run) -> None:
    """Copy an array to the host, and note its unwritten elements: the reference may have none."""
    watch = stream.context.device.driver.copy_watch
    unchecked = nullcontext() if watch is None else watch.copying(array.ptr, array.nbytes, 0)
    with unchecked:
        run.arrays[name] = stream.to_host(array)
    if watch is not None and array.nbytes:
        unwritten = watch.unwritten(array.ptr, array.nbytes, array.dtype.itemsize)
        run.unwritten[name] = unwritten.reshape(array.shape)


@dataclass(frozen=True, slots=True)
class _DeviceMemory:
    """The memory of one launch.

    Attributes:
        arguments: of the kernel, arrays in device memory.
        allocations: of the arrays.
        guards: the zones before and after arrays, each with the name of its array.
    """

    arguments: dict[str, object]
    allocations: list[DeviceArray[Any]]
    guards: list[tuple[str, DeviceArray[Any]]]

    def close(self) -> None:
        """Free the memory: a garbage collection after each example costs more than the rest."""
        for allocation in self.allocations:
            allocation.close()

    def fill(self, stream: Stream, example: Example, left: Sequence[str]) -> None:
        """Give the arrays the contents of another example, whose arrays have the same shapes.

        Those of `left` stay as they are.
        """
        for name, value in example.arguments.items():
            array = self.arguments.get(name)
            if (
                isinstance(value, DrawnArray)
                and isinstance(array, DeviceArray)
                and name not in left
            ):
                stream.copy(array, np.ascontiguousarray(value.contents))


def _on_device(stream: Stream, example: Example) -> _DeviceMemory:
    """Return the arguments of a launch; moved arrays are allocated in the opposite order."""
    memory = _DeviceMemory(dict(example.arguments), [], [])
    arrays = [
        (name, value) for name, value in example.arguments.items() if isinstance(value, DrawnArray)
    ]
    numbered = list(enumerate(arrays, 1))
    if example.is_across:
        # The emulator reserves addresses for it, and memory where it is used.
        memory.allocations.append(stream.empty((len(arrays) + 2) * _LOWER_HALF, np.uint8))
    for number, (name, value) in reversed(numbered) if example.shift else numbered:
        contents = value.contents
        if example.shift:
            array = _guarded(stream, name, contents, number, example.shift, memory)
        elif example.is_across:
            array = _across(memory.allocations[0], contents, number)
        else:
            array = stream.empty(contents.shape, contents.dtype)
            memory.allocations.append(array)
        memory.arguments[name] = array
        if value.is_written:
            stream.copy(array, np.ascontiguousarray(contents))
    return memory


def _guarded(
    stream: Stream, name: str, contents: Host, number: int, shift: int, memory: _DeviceMemory
) -> DeviceArray[Any]:
    """Return an array, the given one of a kernel's, between two zones of known bytes."""
    start = number * shift
    end = start + contents.nbytes
    allocation: DeviceArray[Any] = stream.empty(end + _GUARD, np.uint8)
    memory.allocations.append(allocation)
    for zone in (allocation[:start], allocation[end:]):
        stream.copy(zone, _guard_bytes(zone.nbytes, shift))
        memory.guards.append((name, zone))
    return allocation[start:end].view(contents.dtype).reshape(contents.shape)


def _across(region: DeviceArray[Any], contents: Host, number: int) -> DeviceArray[Any]:
    """Return an array for a kernel, in whose middle is the multiple of 4 GiB of this number."""
    before = contents.nbytes // 2 // _VECTOR * _VECTOR
    start = -region.ptr % _LOWER_HALF + number * _LOWER_HALF - before
    return region[start : start + contents.nbytes].view(contents.dtype).reshape(contents.shape)


def _guard_bytes(count: int, shift: int) -> npt.NDArray[np.uint8]:
    """Return the bytes of a zone, which differ from place to place and from run to run.

    A kernel that writes one value past the end would leave equal bytes as they are.
    """
    places = np.arange(count) * 5 + shift // 16
    return (GUARD_BYTES[0] + places % len(GUARD_BYTES)).astype(np.uint8)
