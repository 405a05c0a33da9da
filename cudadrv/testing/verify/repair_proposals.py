"""The single changes that a fault suggests, of the PTX near its lines and of the call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, islice, product
from pathlib import Path
from typing import Final

import numpy as np

from ptx.emulate.codegen.analysis.control_flow import ControlFlow, InsertionPoint
from ptx.isa.instruction_facts import TYPE_BYTES
from ptx.isa.model import Address, Instruction, Label, Register

from ..strategies import DrawnArray
from .example_run import CompiledCase, Fault
from .ptx_edit import EditablePtx, changed_bounds, changed_operators, with_part
from .stream_wait import StreamWait
from .verdict import CannotVerifyError, Example, Repair, RepairKind, SourceLine

_BARRIER: Final = ("__syncthreads()", "bar.sync \t0;")
_WARP_BARRIER: Final = ("__syncwarp()", "bar.warp.sync \t-1;")
_FENCES: Final = (("__threadfence()", "membar.gl;"), ("__threadfence_block()", "membar.cta;"))
_COPY_WAIT: Final = ("cp.async.wait_all", "cp.async.wait_all;")
_BARRIERS: Final = ("bar", "barrier")
_MASKED: Final = ("shfl", "vote", "match", "redux")
_FULL_MASK: Final = "-1"
_COMPARED: Final = ("s32", "u32", "s64", "u64")
_MOST_LIMITS: Final = 8
_MOST_POINTS: Final = 10
_FEW_POINTS: Final = 5
_MOST_BOUNDS: Final = 16
_MOST_OPERATORS: Final = 12
_MOST_GUARDS: Final = 3
_MOST_DEFINITIONS: Final = 12  # instructions that compute an address
_WIDER: Final = {"cta": "gpu"}
_SCOPED: Final = ("atom", "red", "fence", "membar", "ld", "st")
_STRONG: Final = {"volatile", "relaxed", "acquire", "release", "mmio"}
_ATOMIC: Final = {"add": "add", "fma": "add", "min": "min", "max": "max", "and": "and",
                  "or": "or", "xor": "xor"}  # fmt: skip
_INTEGERS: Final = ("u32", "s32", "b32")
# `i < n` and its negation `i >= n`, against `i <= n` and `i > n`.
_BOUNDARY: Final[Mapping[tuple[str, ...], int]] = {
    ("lt",): 0, ("ge",): 0, ("le",): 1, ("gt",): 1, ("lo",): 0, ("hs",): 0, ("ls",): 1, ("hi",): 1,
}  # fmt: skip
# A comparison of CUDA: no shift, arrow or template argument.
_COMPARISON: Final = re.compile(r"(?<![-<>=])[<>]=?(?![<>=])")
_FLOATS: Final = {"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"}


@dataclass(frozen=True, slots=True)
class Proposal:
    """A repair to try.

    Attributes:
        repair: the repair in words.
        compiled: the case with the changed PTX, or with a wait.
        change: the change of an example, if it is one of the launch.
    """

    repair: Repair
    compiled: CompiledCase
    change: Callable[[Example], Example] | None = None

    def changed(self, example: Example) -> Example:
        """Return the example for the repair; the same one if it needs no other."""
        return example if self.change is None else self.change(example)


def proposals(compiled: CompiledCase, fault: Fault, example: Example) -> Iterator[Proposal]:
    """Yield the repairs that a fault suggests, likely ones first."""
    near = _Proposer(compiled, fault)
    if fault.check == "order" or fault.calls:
        yield from near.waits()
    elif fault.check == "race":
        apart = len({line.block for line in fault.lines}) > 1
        kinds = (near.barriers(), near.warp_barriers(), near.atomics())
        yield from near.copy_waits()
        yield from chain(*(kinds if not apart else (kinds[2], islice(kinds[0], 1))))
        yield from near.member_masks()
        yield from chain(near.fences(), near.scopes(), near.volatiles())
    elif fault.check == "bounds":
        yield from chain(near.offsets(), near.bounds(), near.limits(), near.operators())
        yield from near.guards()
        yield from smaller_launches(compiled, example)
    elif fault.check == "sync":
        yield from chain(near.member_masks(), near.moved_barriers(), near.bounds())
    elif fault.check == "init" and fault.lines:
        yield from initial_contents(compiled, example)
        yield from chain(islice(near.barriers(), _FEW_POINTS), near.offsets(), near.bounds())
    elif fault.check in ("init", "values"):  # wrong elements, or missing ones
        yield from chain(near.bounds(), near.limits(), near.operators(), near.offsets())
        yield from initial_contents(compiled, example) if fault.check == "init" else ()


def source_barriers(compiled: CompiledCase, fault: Fault) -> Iterator[Proposal]:
    """Yield `__syncthreads()` before and after the lines of a race, in a copy of the source.

    NVRTC may have moved accesses such that no barrier in the PTX orders them.
    """
    lines = compiled.case.read_source().split("\n")
    own = Path(compiled.case.source_file).name
    chosen = [line for line in fault.lines if line.line and Path(line.file or "").name == own]
    for line, side in product(chosen, ("before", "after")):
        index = (line.line or 1) - 1
        old = lines[index]
        new = f"{_BARRIER[0]}; {old}" if side == "before" else f"{old} {_BARRIER[0]};"
        case = copy(compiled.case)
        case._source_name = case.source_file
        case._source = "\n".join([*lines[:index], new, *lines[index + 1 :]])
        try:
            image, _ = case.compile()
        except CannotVerifyError:
            continue  # no statement begins or ends there
        text = f"{_BARRIER[0]} in the source {side} {own}:{line.line}"
        repair = Repair("barrier", _BARRIER[0], text, replace(line, what=side))
        yield Proposal(repair, replace(compiled, case=case, image=image))


class _Proposer:
    """Proposes changes of the PTX near the lines of a fault."""

    def __init__(self, compiled: CompiledCase, fault: Fault) -> None:
        self._compiled = compiled
        self._fault = fault
        self._editable = EditablePtx(compiled)
        self._flows: dict[str, ControlFlow] = {}

    # Instructions that were inserted.

    def barriers(self) -> Iterator[Proposal]:
        """Yield `__syncthreads()` between the two accesses."""
        for point in islice(self._points, _MOST_POINTS):
            yield self._inserted("barrier", *_BARRIER, *point)

    def warp_barriers(self) -> Iterator[Proposal]:
        """Yield `__syncwarp()` between the two accesses."""
        for point in islice(self._points, _FEW_POINTS):
            yield self._inserted("warp barrier", *_WARP_BARRIER, *point)

    def fences(self) -> Iterator[Proposal]:
        """Yield fences beside the accesses, and beside atomic and volatile ones."""
        beside = [point for point in self._points if point[1][0].branch is None]
        for access in self._strong_accesses():
            beside += [
                (access, [InsertionPoint(access.line, is_after=after)]) for after in (False, True)
            ]
        for change, text in _FENCES:
            for point in beside[:_FEW_POINTS]:
                yield self._inserted("fence", change, text, *point)

    def copy_waits(self) -> Iterator[Proposal]:
        """Yield a wait for the asynchronous copy that is one of the accesses."""
        if not any(_is_async_copy(access) for access in self._accesses()):
            return
        everything = list(self._instructions())
        for wait in everything:
            count = self._operands(wait)[0] if wait.text == "cp.async.wait_group" else ""
            if count.isdecimal() and int(count):
                new = f"\tcp.async.wait_group \t{int(count) - 1};"
                lines = {copy.line: new for copy in self._copies(wait)}
                yield self._replaced("wait", "a wait for more copies", wait, lines)
        for barrier in everything:
            if barrier.opcode in _BARRIERS and "warp" not in barrier.modifiers:
                points = self._places_of(barrier, is_after=False)[0]
                yield self._inserted("wait", *_COPY_WAIT, barrier, points)
        text = f"{_COPY_WAIT[1]}\n\t{_BARRIER[1]}"
        for point in islice(self._points, _FEW_POINTS):
            yield self._inserted("wait", *_COPY_WAIT, *point)
            yield self._inserted("wait", f"{_COPY_WAIT[0]} and {_BARRIER[0]}", text, *point)

    def member_masks(self) -> Iterator[Proposal]:
        """Yield the mask of all lanes in each warp instruction, and in all."""
        everywhere: dict[int, str] = {}
        first: Instruction | None = None
        for instruction in self._instructions():
            has_mask = instruction.opcode in _MASKED or instruction.text == "bar.warp.sync"
            if not has_mask or instruction.line in everywhere:
                continue
            mask = self._operands(instruction)[-1]
            if mask == _FULL_MASK:
                continue
            lines: dict[int, str] = {}
            for other in self._copies(instruction):
                head, _, _ = self._editable.line(other).rpartition(self._operands(other)[-1])
                lines[other.line] = f"{head}{_FULL_MASK};"
            everywhere |= lines
            first = first or instruction
            yield self._edit("mask", "a full member mask", "at", instruction, lines)
        if first is not None:
            yield self._edit(
                "mask", "a full member mask", "at", first, everywhere, after=" and the others"
            )

    def moved_barriers(self) -> Iterator[Proposal]:
        """Yield each barrier outside of its branches, and without it; the fault's own first."""
        for barrier in self._barriers():
            for points in self._places_of(barrier, is_after=True) + self._places_of(
                barrier, is_after=False
            ):
                if points[0].branch is not None:
                    yield self._inserted("barrier", "the barrier", "", barrier, points, moves=True)
            lines = {copy.line: "" for copy in self._copies(barrier)}
            yield self._edit("barrier", "no barrier", "at", barrier, lines)

    def _barriers(self) -> list[Instruction]:
        """Return the barriers, one of each line of source."""
        first_of_line: dict[object, Instruction] = {}
        for instruction in [*self._accesses(), *self._instructions()]:
            if instruction.opcode in _BARRIERS:
                first_of_line.setdefault(self._editable.place(instruction), instruction)
        return list(first_of_line.values())

    @cached_property
    def _points(self) -> list[tuple[Instruction, list[InsertionPoint]]]:
        """Places between the accesses, each with its copies in unrolled loops; inner ones first."""
        accesses = self._accesses()
        sides = [(access, True) for access in accesses[:-1]] + [
            (access, False) for access in accesses[-1:]
        ]
        sides += [(access, not after) for access, after in sides]
        points_by_key: dict[
            frozenset[tuple[int, bool]], tuple[Instruction, list[InsertionPoint]]
        ] = {}
        for access, is_after in sides:
            for points in self._places_of(access, is_after=is_after):
                key = frozenset((point.line, point.is_after) for point in points)
                points_by_key.setdefault(key, (access, points))
        return list(points_by_key.values())

    def _places_of(self, instruction: Instruction, *, is_after: bool) -> list[list[InsertionPoint]]:
        """Return the places beside an instruction, each with those of the copies behind it."""
        copies = [
            point
            for copy in self._copies(instruction)
            for point in self._points_of(copy, is_after=is_after)
        ]
        return [
            [
                point,
                *(
                    other
                    for other in copies
                    if self._branch_place(other) == self._branch_place(point)
                ),
            ]
            for point in self._points_of(instruction, is_after=is_after)
        ]

    def _points_of(self, instruction: Instruction, *, is_after: bool) -> list[InsertionPoint]:
        function = self._function_of(instruction)
        if function not in self._flows:
            self._flows[function] = ControlFlow(function, self._editable.module.body(function))
        flow = self._flows[function]
        return list((flow.after if is_after else flow.before)(instruction.line))

    def _branch_place(self, point: InsertionPoint) -> tuple[object, object, bool]:
        branch = point.branch
        place = (None, None) if branch is None else self._editable.place(branch)
        return (*place, branch is not None)

    def _inserted(
        self,
        kind: RepairKind,
        change: str,
        text: str,
        instruction: Instruction,
        points: list[InsertionPoint],
        *,
        moves: bool = False,
    ) -> Proposal:
        """Return the proposal of an instruction at a place and its copies."""
        first = points[0]
        # Beside the instruction itself; outside of a branch the place says on which side.
        is_after = first.is_after or first.line > instruction.line
        lines: dict[int, str] = {}
        if moves:
            text = self._editable.line(instruction).strip()
            lines = {copy.line: "" for copy in self._copies(instruction)}
        for line, after in dict.fromkeys((point.line, point.is_after) for point in points):
            old = lines.get(line, self._editable.lines[line - 1])
            lines[line] = f"{old}\n\t{text}" if after else f"\t{text}\n{old}"
        outside = ""
        if first.branch is not None:
            file, number = self._editable.place(first.branch)
            outside = ", outside its branch"
            if (file, number) != self._editable.place(instruction) and number is not None:
                outside = f", outside the branch of {_shown(file, number, first.branch)}"
        side = "after" if is_after else "before"
        return self._edit(kind, change, side, instruction, lines, after=outside)

    # Instructions that were changed.

    def atomics(self) -> Iterator[Proposal]:
        """Yield an atomic operation in place of a load, an operation and a store."""
        accesses = self._accesses()
        stores = chain.from_iterable((access, *self._stores_of(access)) for access in accesses)
        for store in dict.fromkeys(store for store in stores if store.opcode == "st"):
            copies = [self._atomic(copy) for copy in self._copies(store)]
            if copies and all(copies):
                lines = dict(chain.from_iterable(changed.items() for changed in copies))
                yield self._edit("atomic", "an atomic operation", "at", store, lines)

    def volatiles(self) -> Iterator[Proposal]:
        """Yield volatile accesses in place of both."""
        accesses = self._accesses()
        lines: dict[int, str] = {}
        for access in chain.from_iterable(map(self._copies, accesses)):
            ptx_line = self._editable.line(access)
            if access.opcode in ("ld", "st") and not _STRONG & set(access.modifiers):
                modifiers = [modifier for modifier in access.modifiers if modifier != "nc"]
                new = ".".join([access.opcode, "volatile", *modifiers])
                lines[access.line] = ptx_line.replace(access.text, new, 1)
        if lines:
            places = dict.fromkeys(
                _shown(*self._editable.place(access), access) for access in accesses
            )
            text = f"volatile accesses at {' and '.join(places)}"
            line = self._editable.source(accesses[0], "at")
            repair = Repair("volatile", "volatile accesses", text, line)
            yield Proposal(repair, self._editable.with_lines(lines))

    def scopes(self) -> Iterator[Proposal]:
        """Yield a wider scope of each synchronising operation, and of all."""
        widened: dict[int, str] = {}
        first: Instruction | None = None
        for instruction in self._instructions():
            for modifier in instruction.modifiers:
                if modifier in _WIDER and instruction.opcode in _SCOPED:
                    wider = "gl" if instruction.opcode == "membar" else _WIDER[modifier]
                    ptx_line = self._editable.line(instruction)
                    widened[instruction.line] = with_part(
                        ptx_line, instruction, f".{modifier}", f".{wider}"
                    )
                    first = first or instruction
                    lines = {instruction.line: widened[instruction.line]}
                    yield self._edit("scope", "a wider scope", "at", instruction, lines)
        if first is not None and len(widened) > 1:
            yield self._edit(
                "scope", "a wider scope", "at", first, widened, after=" and the others"
            )

    def bounds(self) -> Iterator[Proposal]:
        """Yield other comparisons, and constants off by one, near the fault first."""
        return islice(self._changed_bounds(), _MOST_BOUNDS)

    def _changed_bounds(self) -> Iterator[Proposal]:
        nearest = self._nearest()
        comparisons = [instruction for instruction in nearest if instruction.opcode == "setp"]
        yield from self._changed_comparisons(comparisons)
        others = [instruction for instruction in nearest if instruction.opcode != "setp"]
        for instruction in (*comparisons, *others):
            for new in changed_bounds(instruction, self._editable.line(instruction)):
                if instruction.text in new:
                    yield self._replaced(
                        "bound", "another bound", instruction, {instruction.line: new}
                    )

    def _changed_comparisons(self, comparisons: Sequence[Instruction]) -> Iterator[Proposal]:
        """Yield each other comparison: on its whole line of source, in the copies of an unrolled
        loop, at its place alone.

        A loop has its condition twice: negated before the loop, and at the end of its body.
        """
        seen: set[tuple[int, ...]] = set()
        ordered = [each for each in comparisons if each.modifiers[:1] in _BOUNDARY]
        for alike in (self._same_boundary, self._same_text, _alone):
            for instruction in ordered:
                copies = alike(instruction)
                places = tuple(sorted(copy.line for copy in copies))
                if places not in seen:
                    seen.add(places)
                    lines = {
                        copy.line: next(changed_bounds(copy, self._editable.line(copy)))
                        for copy in copies
                    }
                    yield self._replaced("bound", "another bound", instruction, lines)

    def _same_boundary(self, instruction: Instruction) -> list[Instruction]:
        """Return the comparisons of the same line that treat the limit as this one does."""
        calls, kind = self._editable.calls(instruction), instruction.modifiers[-1]
        if not calls:
            return [instruction]
        boundary = _BOUNDARY[instruction.modifiers[:1]]
        return [
            other
            for other in self._instructions()
            if other.opcode == "setp"
            and _BOUNDARY.get(other.modifiers[:1]) == boundary
            and other.modifiers[-1] == kind
            and self._editable.calls(other) == calls
        ]

    def _same_text(self, instruction: Instruction) -> list[Instruction]:
        copies = self._copies(instruction)
        return [copy for copy in copies if copy.text == instruction.text]

    def limits(self) -> Iterator[Proposal]:
        """Yield comparisons with a limit that is one less, and one more."""
        return islice(self._changed_limits(), _MOST_LIMITS)

    def _changed_limits(self) -> Iterator[Proposal]:
        for instruction in self._nearest():
            kind = instruction.modifiers[-1] if instruction.modifiers else ""
            limit = instruction.operands[-1] if instruction.operands else None
            if instruction.opcode != "setp" or instruction.guard or kind not in _COMPARED:
                continue
            if not isinstance(limit, Register):
                continue
            head, _, _ = self._editable.line(instruction).rpartition(limit.name)
            for step, detail in ((-1, "less"), (1, "plus")):
                bits = kind[1:]
                declared = f"{{ .reg .b{bits} %limit; add.s{bits} %limit, {limit.name}, {step};"
                new = f"\t{declared}\n{head}%limit; }}"
                yield self._edit(
                    "bound",
                    "another bound",
                    "at",
                    instruction,
                    {instruction.line: new},
                    after=f" (the limit {detail} 1)",
                )

    def operators(self) -> Iterator[Proposal]:
        """Yield other operators: of the address, or of the whole kernel if none is known."""
        accesses = self._accesses()
        chosen: Iterable[Instruction] = self._nearest()
        if accesses:
            chosen = self._address_definitions(accesses[0])
        return islice(self._changed_operators(list(chosen)), _MOST_OPERATORS)

    def _changed_operators(self, chosen: Sequence[Instruction]) -> Iterator[Proposal]:
        """Yield each other operator in all copies of an unrolled loop, then at each place alone.

        Those of floats come first: most of the others compute addresses.
        """
        in_order = sorted(chosen, key=lambda instruction: not _has_floats(instruction))
        seen: set[tuple[int, ...]] = set()
        for are_copied in (True, False):
            for instruction in in_order:
                copies = self._same_text(instruction) if are_copied else [instruction]
                if are_copied and len(copies) == 1:
                    continue
                places = tuple(copy.line for copy in copies)
                if places in seen:
                    continue
                seen.add(places)
                variants = [
                    list(changed_operators(copy, self._editable.line(copy))) for copy in copies
                ]
                for texts in zip(*variants, strict=False):
                    lines = dict(zip(places, texts, strict=True))
                    yield self._replaced("operator", "another operator", copies[0], lines)

    def offsets(self) -> Iterator[Proposal]:
        """Yield accesses to the adjacent elements."""
        chosen = self._accesses() or [
            access
            for access in self._instructions()
            if access.opcode in ("ld", "st")
            and any(isinstance(operand, Address) and operand.offset for operand in access.operands)
        ]
        for access in chosen[:_FEW_POINTS]:
            size = TYPE_BYTES.get(access.modifiers[-1], 0) if access.modifiers else 0
            for operand in access.operands:
                if size and isinstance(operand, Address) and isinstance(operand.base, Register):
                    for step in (-size, size):
                        lines = {access.line: self._with_offset(access, operand, step)}
                        change = "the next element" if step > 0 else "the element before"
                        yield self._edit("bound", change, "at", access, lines)

    def _with_offset(self, instruction: Instruction, operand: Address, step: int) -> str:
        ptx_line = self._editable.line(instruction)
        start, end = ptx_line.index("["), ptx_line.index("]")
        base = ptx_line[start + 1 : end].split("+")[0]
        offset = operand.offset + step
        return f"{ptx_line[:start]}[{base}{f'+{offset}' if offset else ''}{ptx_line[end:]}"

    def guards(self) -> Iterator[Proposal]:
        """Yield a return of the threads beyond each integer argument."""
        if self._compiled.case.program is not None:
            return
        function = self._editable.module.functions[self._compiled.kernel]
        first = min(instruction.line for instruction in self._editable.functions[function.name])
        names = list(self._compiled.case.arguments)
        integers = [
            (position, parameter)
            for position, parameter in enumerate(function.params)
            if parameter.ptx_type in _INTEGERS and parameter.count == 1
        ]
        for position, parameter in integers[:_MOST_GUARDS]:
            guard = (
                "\t{ .reg .pred %beyond; .reg .b32 %guard<4>;\n"
                "\tmov.u32 %guard0, %ctaid.x; mov.u32 %guard1, %ntid.x; mov.u32 %guard2, %tid.x;\n"
                "\tmad.lo.s32 %guard0, %guard0, %guard1, %guard2;\n"
                f"\tld.param.u32 %guard3, [{parameter.name}];\n"
                "\tsetp.ge.s32 %beyond, %guard0, %guard3;\n\t@%beyond ret; }\n"
            )
            text = (
                "a return at the start if blockIdx.x * blockDim.x + threadIdx.x >= "
                f"{names[position]}"
            )
            lines = {first: guard + self._editable.lines[first - 1]}
            line = SourceLine("before", None, None, first)
            repair = Repair("guard", "a return of the threads beyond a size", text, line)
            yield Proposal(repair, self._editable.with_lines(lines))

    def waits(self) -> Iterator[Proposal]:
        """Yield a wait between the two calls of the host."""
        calls = self._fault.calls
        if len(calls) != 2 or self._compiled.case.program is None:
            return
        shown = [
            _shown_call(call, line) for call, line in zip(calls, self._fault.lines, strict=False)
        ]
        by_host = self._fault.check == "order"
        what = "a wait of the host" if by_host else "a stream wait"
        text = f"{what} between {shown[0]} and {shown[1]}"
        file, _, number = calls[1].rpartition(":")
        line = SourceLine("before", file or None, int(number) if number.isdecimal() else None)
        wait = StreamWait((calls[0], calls[1]), by_host)
        yield Proposal(Repair("wait", what, text, line), replace(self._compiled, wait=wait))

    # The instructions of the fault.

    def _accesses(self) -> list[Instruction]:
        """Return the instructions at the lines of the fault."""
        by_line = {instruction.line: instruction for instruction in self._instructions()}
        lines = dict.fromkeys(line.ptx_line for line in self._fault.lines)
        return [by_line[line] for line in lines if line in by_line]

    def _instructions(self) -> Iterator[Instruction]:
        return chain.from_iterable(self._editable.functions.values())

    def _function_of(self, instruction: Instruction) -> str:
        return next(
            name
            for name, instructions in self._editable.functions.items()
            if instruction in instructions
        )

    def _copies(self, instruction: Instruction) -> list[Instruction]:
        """Return the instructions of the same line of source: an unrolled loop has several.

        A line of an inlined function has some for each call, of which the others are no copies.
        """
        calls = self._editable.calls(instruction)
        if not calls:
            return [instruction]
        kind = (instruction.opcode, *instruction.modifiers[:1])
        return [
            other
            for other in self._instructions()
            if (other.opcode, *other.modifiers[:1]) == kind and self._editable.calls(other) == calls
        ]

    def _nearest(self) -> list[Instruction]:
        """Return all instructions: those before the fault first, then those after it."""
        accesses = self._accesses()
        if not accesses:
            return list(self._instructions())
        fault_line = accesses[0].line
        return sorted(
            self._instructions(),
            key=lambda instruction: (
                instruction.line > fault_line,
                abs(instruction.line - fault_line),
            ),
        )

    def _strong_accesses(self) -> list[Instruction]:
        return [
            instruction
            for instruction in self._instructions()
            if instruction.opcode in ("atom", "red")
            or (instruction.opcode in ("ld", "st") and _STRONG & set(instruction.modifiers))
        ][:_FEW_POINTS]

    def _address_definitions(self, access: Instruction) -> list[Instruction]:
        """Return the instructions that compute an access's address, the last ones first."""
        definitions: list[Instruction] = []
        wanted = [
            operand.base.name
            for operand in access.operands
            if isinstance(operand, Address) and isinstance(operand.base, Register)
        ]
        instructions = self._editable.functions[self._function_of(access)]
        while wanted and len(definitions) < _MOST_DEFINITIONS:
            name = wanted.pop(0)
            for instruction in instructions:
                target = instruction.operands[0] if instruction.operands else None
                is_definition = isinstance(target, Register) and target.name == name
                if is_definition and instruction.opcode != "ld" and instruction not in definitions:
                    definitions.append(instruction)
                    wanted += [
                        operand.name
                        for operand in instruction.operands[1:]
                        if isinstance(operand, Register)
                    ]
        return definitions

    def _stores_of(self, access: Instruction) -> list[Instruction]:
        """Return the store that ends the operation which a load begins."""
        if access.opcode != "ld":
            return []
        address = access.operands[1:]
        return [
            store
            for store in self._instructions()
            if store.opcode == "st" and store.operands[:1] == address and store.line > access.line
        ][:1]

    def _atomic(self, store: Instruction) -> Mapping[int, str]:
        """Return the lines that make a store atomic together with its load; {} if it has none."""
        address, value = store.operands[0], store.operands[-1]
        before = self._straight_before(store)
        operation = next((earlier for earlier in before if earlier.operands[:1] == (value,)), None)
        load = next(
            (
                earlier
                for earlier in before
                if earlier.opcode == "ld"
                and earlier.operands[1:] == (address,)
                and operation is not None
                and earlier.operands[0] in operation.operands[1:]
            ),
            None,
        )
        if operation is None or load is None or operation.opcode not in _ATOMIC:
            return {}
        names = self._operands(operation)
        old = self._operands(load)[0]
        others = [operand for operand in names[1:] if operand != old]
        name, kind = _ATOMIC[operation.opcode], operation.modifiers[-1]
        kind = "u64" if (name, kind) == ("add", "s64") else kind
        ptx_line = self._editable.line(operation)
        product = ""
        if operation.opcode == "fma":
            product = f"\tmul.rn.{kind} {names[0]}, {names[1]}, {names[2]};\n"
            others = names[:1]
            ptx_line = f"\tadd.{kind} {names[0]}, {names[0]}, {old};"
        if len(others) != 1 or any(instruction.guard for instruction in (load, operation, store)):
            return {}
        space = "".join(
            f".{modifier}" for modifier in store.modifiers if modifier in ("global", "shared")
        )
        where = self._operands(store)[0]
        atomic = f"\tatom{space}.{name}.{kind} {old}, {where}, {others[0]};"
        return {load.line: "", operation.line: "", store.line: f"{product}{atomic}\n{ptx_line}"}

    def _straight_before(self, instruction: Instruction) -> list[Instruction]:
        """Return the instructions before one in its basic block, the last one first."""
        before: list[Instruction] = []
        body = self._editable.module.body(self._function_of(instruction))
        for statement in body.statements:
            if statement is instruction or statement == instruction:
                break
            if isinstance(statement, Label) or statement.opcode in ("bra", *_BARRIERS):
                before.clear()
            else:
                before.append(statement)
        return before[::-1]

    def _operands(self, instruction: Instruction) -> list[str]:
        _, _, rest = self._editable.line(instruction).partition(instruction.text)
        return [operand.strip() for operand in rest.strip().removesuffix(";").split(",")]

    # Repairs in words.

    def _replaced(
        self, kind: RepairKind, change: str, instruction: Instruction, lines: Mapping[int, str]
    ) -> Proposal:
        """Return the proposal of another instruction; it shows the CUDA or the PTX of both."""
        new, old = (
            " ".join(text.split())
            for text in (lines[instruction.line], self._editable.line(instruction))
        )
        if new.split()[0] != old.split()[0]:
            new, old = new.split()[0], old.split()[0]
        if instruction.operands and isinstance(instruction.operands[-1], Register):
            line = self._editable.source(instruction, "at").text
            new, old = _comparison_in_cuda(line, new, old) or (new, old)
        detail = f" ({new.rstrip(';')} in place of {old.rstrip(';')})"
        return self._edit(kind, change, "at", instruction, lines, after=detail)

    def _edit(
        self,
        kind: RepairKind,
        change: str,
        position: str,
        instruction: Instruction,
        lines: Mapping[int, str],
        *,
        after: str = "",
    ) -> Proposal:
        place = _shown(*self._editable.place(instruction), instruction)
        file, number = self._editable.call_place(instruction)
        if file is not None and number is not None:
            place = f"{place}, called at {_shown(file, number, instruction)}"
        line = self._editable.source(instruction, position)
        repair = Repair(kind, change, f"{change} {position} {place}{after}", line)
        return Proposal(repair, self._editable.with_lines(lines))


def _comparison_in_cuda(line: str, new: str, old: str) -> tuple[str, str] | None:
    """Return the operators of CUDA of a changed comparison of PTX and of the present one.

    None unless the line has one comparison, and treats equal values as the PTX does. The compiler
    may negate a comparison, which does not change that.
    """
    operators = _COMPARISON.findall(line)
    classes = [_BOUNDARY.get(tuple(text.split(".")[1:2])) for text in (new, old)]
    if len(operators) != 1 or not old.startswith("setp.") or None in classes:
        return None
    operator = operators[0]
    if classes[0] == classes[1] or classes[1] != (operator in ("<=", ">")):
        return None
    return (operator[0] if operator.endswith("=") else f"{operator}="), operator


def _alone(instruction: Instruction) -> list[Instruction]:
    return [instruction]


def _has_floats(instruction: Instruction) -> bool:
    return any(modifier in _FLOATS for modifier in instruction.modifiers)


def _is_async_copy(instruction: Instruction) -> bool:
    """Return True for `cp.async` of one thread, which its groups wait for."""
    modifiers = instruction.modifiers
    return instruction.opcode == "cp" and "async" in modifiers and "bulk" not in modifiers


def _shown(file: str | None, line: int | None, instruction: Instruction) -> str:
    if file is None or line is None:
        return f"PTX line {instruction.line}"
    return f"{Path(file).name}:{line}"


def _shown_call(call: str, line: SourceLine) -> str:
    """Return a call of the program, or the end at which the verification copies arrays."""
    file, _, number = call.rpartition(":")
    if not call:
        return f"the {'start' if line.what == 'write' else 'end'} of the program"
    return f"{Path(file).name}:{number}"


def smaller_launches(compiled: CompiledCase, example: Example) -> Iterator[Proposal]:
    """Yield a grid with one block or cluster less, and blocks with one thread less."""
    unit = "block" if example.config.cluster is None else "cluster"
    for change, smaller in (
        (f"one {unit} less", _with_fewer_blocks),
        ("one thread less in each block", _with_fewer_threads),
    ):
        if smaller(example) is not example:
            yield Proposal(Repair("launch", change, change, None), compiled, smaller)


def _with_fewer_blocks(example: Example) -> Example:
    x, y, z = example.config.grid
    step = (example.config.cluster or (1,))[0]
    if x <= step:
        return example
    return replace(example, config=replace(example.config, grid=(x - step, y, z)))


def _with_fewer_threads(example: Example) -> Example:
    x, y, z = example.config.block
    if x == 1:
        return example
    return replace(example, config=replace(example.config, block=(x - 1, y, z)))


def initial_contents(compiled: CompiledCase, example: Example) -> Iterator[Proposal]:
    """Yield zeros in each array that only the kernel writes."""
    for name, argument in example.arguments.items():
        if isinstance(argument, DrawnArray) and not argument.is_written:
            text = f"zeros in {name} before the launch"
            change = partial(_with_zeros, name=name)
            yield Proposal(Repair("initial", text, text, None), compiled, change)


def _with_zeros(example: Example, name: str) -> Example:
    array = example.arguments[name]
    if not isinstance(array, DrawnArray):
        return example
    zeros = DrawnArray(np.zeros_like(array.contents))
    return replace(example, arguments={**example.arguments, name: zeros})
