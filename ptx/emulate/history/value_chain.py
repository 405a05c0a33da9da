"""The instructions that made a value, and which of them made it wrong.

Calculations are repeated in decimal numbers of 60 digits. So a result that a subtraction cancelled,
for instance, differs from the exact one, although its own operands are subtracted exactly.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

import numpy as np

from ptx.emulate.codegen.analysis.float_flow import Calculation, calculation_of, is_nonfinite
from ptx.emulate.history.value_trace import Step, ValueTrace
from ptx.emulate.model.errors import Where
from ptx.emulate.model.float_format import FORMATS, FloatFormat
from ptx.emulate.model.geometry import WARP, Value
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import FloatImmediate, Instruction, Operand, Register, Vector

_CONTEXT: Final = decimal.Context(prec=60, Emax=9999, Emin=-9999, traps=[])
_MOST_NODES: Final = 4000
_PRECISION: Final = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
_FRACTION: Final = {32: 23, 64: 52}
_EXPONENTS: Final = 0x7FF  # of doubles
_OF_ONE: Final = {32: 127 + 23, 64: 1023 + 52}
"""The exponents of numbers whose last place is 1, by the width."""
_LEAST_LOSS: Final = {"f16": 2.0**4, "bf16": 2.0**3, "f32": 2.0**7, "f64": 2.0**7}
"""Of the last place that a step must add to be the cause, by the type of its result."""
_CANCELS: Final = frozenset({"add", "sub", "fma", "mad"})
_UNITS: Final = {"f32": 2.0**-24, "f64": 2.0**-53}
"""By the type of a result: half of its last place. Narrower types have none: they are a choice."""
_APPROXIMATE: Final = 4  # half last places of an approximate instruction


def _power(exponent: Decimal) -> Decimal:
    return _CONTEXT.power(Decimal(2), exponent)


def _logarithm(value: Decimal) -> Decimal:
    return _CONTEXT.divide(_CONTEXT.ln(value), _CONTEXT.ln(Decimal(2)))


def _by_float(function: Callable[[float], float]) -> Callable[[Decimal], Decimal]:
    return lambda value: Decimal(function(float(value)))


_EXACT: Final[dict[str, Callable[..., Decimal]]] = {
    "add": _CONTEXT.add,
    "sub": _CONTEXT.subtract,
    "mul": _CONTEXT.multiply,
    "div": _CONTEXT.divide,
    "fma": _CONTEXT.fma,
    "mad": _CONTEXT.fma,
    "rcp": lambda value: _CONTEXT.divide(Decimal(1), value),
    "sqrt": _CONTEXT.sqrt,
    "rsqrt": lambda value: _CONTEXT.divide(Decimal(1), _CONTEXT.sqrt(value)),
    "ex2": _power,
    "lg2": _logarithm,
    "sin": _by_float(math.sin),
    "cos": _by_float(math.cos),
    "tanh": _by_float(math.tanh),
    "min": _CONTEXT.min,
    "max": _CONTEXT.max,
    "cvt": lambda value: value,
    "neg": lambda value: -value,
    "abs": abs,
}


def _slopes(opcode: str, operands: Sequence[float], result: float) -> tuple[float, ...]:
    """Return how much a result changes by a small change of each operand."""
    a, b = operands[0], operands[1] if len(operands) > 1 else 1.0
    match opcode:
        case "mul":
            return b, a
        case "fma" | "mad":
            return b, a, 1
        case "div":
            return 1 / b, result / b
        case "rcp":
            return (result * result,)
        case "sqrt":
            return (0.5 / result,)
        case "rsqrt":
            return (0.5 * result / a,)
        case "ex2":
            return (math.log(2) * result,)
        case "lg2":
            return (1 / (a * math.log(2)),)
    return (1.0,) * len(operands)


def _unit(calculation: Calculation, i: Instruction) -> float:
    """Return how far an instruction rounds its result, as a share of it."""
    unit = _UNITS.get(calculation.result.ptx_type, 0.0)
    if i.opcode == "cvt":
        narrows = any(kind.ptx_type == "f64" for _, kind in calculation.sources)
        return unit if narrows else 0.0
    is_approximate = "approx" in i.facts.words or "full" in i.facts.words
    return unit * _APPROXIMATE if is_approximate else unit


@dataclass(slots=True)
class ChainStep:
    """An instruction that a thread executed for a value.

    Attributes:
        where: the thread and the instruction.
        text: the result and its operands.
        cause: "NaN", "infinity" or "cancellation" if it made the value wrong, with the bits that
            were lost; else "".
    """

    where: Where
    text: str
    cause: str = ""


@dataclass(slots=True)
class _Node:
    """A step of one thread; `exact` is its result in exact arithmetic, None if that is unknown."""

    step: Step
    number: int
    thread: int
    parent: tuple[int, int] | None
    depth: int
    sources: dict[int, tuple[int, int]] = field(default_factory=dict)
    exact: Decimal | None = None
    error: float = 0.0
    loss: float = 0.0
    rounding: float = 0.0


class ValueChain:
    """The steps that made the value at an address, nearest ones first.

    Args:
        trace: the launch.
        address, nbytes: the value in global memory.
    """

    def __init__(self, trace: ValueTrace, address: int, nbytes: int) -> None:
        self._trace = trace
        self._nodes: dict[tuple[int, int], _Node] = {}
        self._start = trace.stored("global", address, nbytes, None, len(trace.steps))
        self._address = address
        if self._start is not None:
            self._search(self._start)

    def steps(self) -> list[ChainStep]:
        """Return the shortest way from the value to its cause, else to where it came from.

        The value's store is the first one.
        """
        if self._start is None:
            return []
        with decimal.localcontext(_CONTEXT):
            for _, node in sorted(self._nodes.items(), key=lambda each: each[0]):
                self._calculate(node)
        cause = self._cause()
        end, text = (self._nearest_end(), "") if cause is None else cause
        way: list[ChainStep] = []
        key: tuple[int, int] | None = end
        while key is not None:
            node = self._nodes[key]
            way.append(self._shown(node, text if key == end else ""))
            key = node.parent
        return way[::-1]

    def rounding(self) -> float:
        """Return how far independent roundings of float32 and float64 put the value off, about.

        Each calculation adds half of the last place of its result, and hands on what its operands
        have by its derivatives. So a difference of near terms has the rounding of the terms.
        """
        with np.errstate(all="ignore"):
            for _, node in sorted(self._nodes.items(), key=lambda each: each[0]):
                try:
                    node.rounding = self._rounding(node)
                except (ArithmeticError, ValueError):
                    node.rounding = math.inf
        return self._nodes[self._start].rounding if self._start is not None else 0.0

    def _rounding(self, node: _Node) -> float:
        i = node.step.use.instruction
        calculation = calculation_of(i)
        behind = {
            index: self._nodes[key].rounding
            for index, key in node.sources.items()
            if key in self._nodes
        }
        if calculation is None or calculation.is_of_warp or i.opcode in ("min", "max"):
            return max(behind.values(), default=0.0)
        result = float(_decimal(calculation.result, self._result(node)))
        numbers: list[float] = []
        roundings: list[float] = []
        for operand, kind in calculation.sources:
            if isinstance(operand, Register):
                index = node.step.use.sources.index(operand)
                numbers.append(float(_decimal(kind, self._bits(node, node.step.sources[index]))))
                roundings.append(behind.get(index, 0.0))
            elif isinstance(operand, FloatImmediate):
                numbers.append(float(_decimal(kind, operand.bits)))
                roundings.append(0.0)
        slopes = _slopes(i.opcode, numbers, result) if numbers else ()
        of_operands = [slope * each for slope, each in zip(slopes, roundings, strict=False)]
        return math.hypot(_unit(calculation, i) * result, *of_operands)

    def _search(self, start: tuple[int, int]) -> None:
        """Find the steps behind a store, by breadth, so that the first way to each is shortest."""
        waiting = [start]
        self._add(start, None, 0)
        for key in waiting:
            node = self._nodes[key]
            for source, behind in self._behind(node).items():
                node.sources[source] = behind
                if behind not in self._nodes and len(self._nodes) < _MOST_NODES:
                    self._add(behind, key, node.depth + 1)
                    waiting.append(behind)

    def _add(self, key: tuple[int, int], parent: tuple[int, int] | None, depth: int) -> None:
        self._nodes[key] = _Node(self._trace.steps[key[0]], *key, parent, depth)

    def _behind(self, node: _Node) -> dict[int, tuple[int, int]]:
        """Return by the index of each source the step that gave it its value."""
        step, thread = node.step, node.thread
        facts = step.use.instruction.facts
        if facts.kind is InstructionKind.LOAD:
            stored = self._loaded_from(node)
            return {} if stored is None else {0: stored}
        behind: dict[int, tuple[int, int]] = {}
        for index, register in enumerate(step.use.sources):
            if not self._matters(node, index):
                continue
            of_thread = thread
            if facts.kind is InstructionKind.EXCHANGE:
                of_thread = self._giver(node, index)
            writer = self._trace.writer(step, register, of_thread, node.number)
            if writer is not None:
                behind[index] = writer, of_thread
        return behind

    def _matters(self, node: _Node, index: int) -> bool:
        """Return whether a source can be the cause: of a selection, the selected one alone."""
        i = node.step.use.instruction
        if i.opcode == "selp":
            is_predicate = node.step.use.sources[index].ptx_type == "pred"
            return is_predicate or self._bits(node, node.step.sources[index]) == self._result(node)
        if node.number == (self._start or (0, 0))[0] and len(node.step.sources) > 1:
            return index == self._element(node)
        return not (i.facts.kind is InstructionKind.EXCHANGE and index)

    def _element(self, node: _Node) -> int:
        """Return which element of a vector store has the value."""
        position = node.step.position(node.thread) or 0
        for _, chosen, addresses in node.step.places:
            found = position if chosen is None else int(np.searchsorted(chosen, position))
            size = node.step.nbytes // len(node.step.sources)
            return (self._address - int(addresses[found])) // max(size, 1)
        return 0

    def _loaded_from(self, node: _Node) -> tuple[int, int] | None:
        position = node.step.position(node.thread)
        for space, chosen, addresses in node.step.places:
            hits = [position] if chosen is None else np.flatnonzero(chosen == position).tolist()
            for hit in hits:
                address, nbytes = int(addresses[hit]), node.step.nbytes
                return self._trace.stored(space, address, nbytes, node.thread, node.number)
        return None

    def _giver(self, node: _Node, index: int) -> int:
        """Return the thread of the warp from which an exchange took its result, by its bits."""
        result = self._result(node)
        first = node.thread // WARP * WARP
        for thread in (node.thread, *range(first, first + WARP)):
            position = node.step.position(thread)
            if position is not None and _at(node.step.sources[index], position) == result:
                return int(thread)
        return node.thread

    def _result(self, node: _Node) -> int:
        return self._bits(node, node.step.results[0]) if node.step.results else -1

    def _bits(self, node: _Node, value: Value) -> int:
        return _at(value, node.step.position(node.thread) or 0)

    # Exact results.

    def _calculate(self, node: _Node) -> None:
        """Set the exact result of a step, whose sources have theirs."""
        opcode = node.step.use.instruction.opcode
        calculation = calculation_of(node.step.use.instruction)
        if (
            calculation is None
            or calculation.is_of_warp
            or calculation.result.ptx_type not in _PRECISION
        ):
            registers = enumerate(node.step.use.sources)
            predicates = {index for index, each in registers if each.ptx_type == "pred"}
            behind = [
                self._nodes[key]
                for index, key in node.sources.items()
                if key in self._nodes and index not in predicates
            ]
            scaled = self._scaled(node)
            if scaled is not None:
                node.exact, node.error = scaled
            elif _moves(node.step) and len(behind) == 1 and self._result_equals(node, behind[0]):
                node.exact, node.error = behind[0].exact, behind[0].error
            elif opcode in ("neg", "abs") and behind and behind[0].exact is not None:
                node.exact, node.error = _EXACT[opcode](behind[0].exact), behind[0].error
            return
        operands = self._operands(node, calculation)
        function = _EXACT.get(opcode)
        if function is None or any(exact is None or not exact.is_finite() for exact, _ in operands):
            return
        exact = function(*[exact for exact, _ in operands])
        result = _decimal(calculation.result, self._result(node))
        if not exact.is_finite() or not result.is_finite():
            return
        node.exact = exact
        if self._rounds_to_integer(node):
            node.exact = result
            return
        node.error = float(abs(result - exact) / max(abs(exact), Decimal("1e-400")))
        worst = max([error for _, error in operands], default=0.0)
        unit = 2.0 ** -_PRECISION[calculation.result.ptx_type]
        node.loss = node.error / max(worst, unit)

    def _scaled(self, node: _Node) -> tuple[Decimal, float] | None:
        """Return the exact value of a double to whose exponent an integer was added, as exp does.

        Its lower half comes from the double before, and the fractions of both are equal.
        """
        i = node.step.use.instruction
        if i.opcode != "mov" or not isinstance(i.operands[1], Vector) or len(node.sources) != 2:
            return None
        lower, upper = (self._nodes.get(node.sources[index]) for index in (0, 1))
        if lower is None or upper is None or upper.step.use.instruction.opcode != "add":
            return None
        value = self._nodes.get(lower.sources.get(0, (-1, -1)))
        if value is None or value.exact is None or not value.step.results:
            return None
        bits, before = self._result(node), self._bits(value, value.step.results[0])
        exponents = [each >> _FRACTION[64] & _EXPONENTS for each in (bits, before)]
        if (bits ^ before) & ~(_EXPONENTS << _FRACTION[64]) or min(exponents) < 1:
            return None
        return value.exact * _power(Decimal(exponents[0] - exponents[1])), value.error

    def _rounds_to_integer(self, node: _Node) -> bool:
        """Return whether an addition of a constant, whose last place is 1, rounds to an integer."""
        i, sources = node.step.use.instruction, node.step.use.sources
        if i.opcode not in _CANCELS:
            return False
        for added in i.operands[1 if i.opcode in ("add", "sub") else 3 :]:
            if isinstance(added, Register):
                behind = self._nodes.get(node.sources.get(sources.index(added), (-1, -1)))
                if behind is None or behind.step.use.instruction.opcode != "mov":
                    continue
                added = behind.step.use.instruction.operands[1]
            if _is_integral(added):
                return True
        return False

    def _result_equals(self, node: _Node, behind: _Node) -> bool:
        if not node.step.results:
            return True
        return not behind.step.results or self._result(node) == self._result(behind)

    def _operands(
        self, node: _Node, calculation: Calculation
    ) -> list[tuple[Decimal | None, float]]:
        """Return the exact operands, and how far those of the kernel are from them."""
        operands: list[tuple[Decimal | None, float]] = []
        indices = iter(range(len(node.step.use.sources)))
        i = node.step.use.instruction
        kinds = {id(operand): kind for operand, kind in calculation.sources}
        for operand in i.operands[1:]:
            kind = kinds.get(id(operand))
            if not isinstance(operand, Register):
                bits = getattr(operand, "bits", None)
                operands.append((None if kind is None or bits is None else _decimal(kind, bits), 0))
                continue
            index = next(indices)
            value = node.step.sources[index]
            behind = self._nodes.get(node.sources.get(index, (-1, -1)))
            if behind is not None and behind.exact is not None and kind is not None:
                operands.append((behind.exact, behind.error))
            elif kind is not None:
                operands.append((_decimal(kind, self._bits(node, value)), 0.0))
            else:
                operands.append((_integer(i.facts.types[-1], self._bits(node, value)), 0.0))
        return operands

    # The cause.

    def _cause(self) -> tuple[tuple[int, int], str] | None:
        """Return the step that made the value wrong, and how; None if it is not one alone."""
        for find in (self._nonfinite, self._constant):
            for key in sorted(self._nodes):
                made = find(self._nodes[key])
                if made:
                    return key, made
        start = self._nodes[self._start or (0, 0)]
        if start.exact is not None and start.error == 0:
            return None
        lossy = [node for node in self._nodes.values() if node.loss >= self._least_loss(node)]
        if not lossy:
            return self._gradual()
        worst = max(lossy, key=lambda node: (node.loss, -node.number))
        name = "cancellation" if worst.step.use.instruction.opcode in _CANCELS else "lost precision"
        precision = max(_PRECISION.values())
        bits = f"{math.log2(worst.loss):.0f}" if worst.loss < 2.0**precision else "all"
        return (worst.number, worst.thread), f"{name}, {bits} bits lost"

    def _gradual(self) -> tuple[tuple[int, int], str] | None:
        """Return the sums of one line, as of a loop, that lose bits together; None if none do."""
        lines: dict[object, list[_Node]] = {}
        for node in self._nodes.values():
            i = node.step.use.instruction
            if i.opcode in _CANCELS and node.exact is not None:
                place = i.location and (i.location.file, i.location.line)
                lines.setdefault(place or id(i), []).append(node)
        worst: _Node | None = None
        most = 1.0
        for nodes in lines.values():
            of_line = {(node.number, node.thread) for node in nodes}
            givers = (self._giver_of(key) for node in nodes for key in node.sources.values())
            others = (
                each.error for each in givers if each and (each.number, each.thread) not in of_line
            )
            last = max(nodes, key=lambda node: (node.number, node.thread))
            calculation = calculation_of(last.step.use.instruction)
            assert calculation is not None
            unit = 2.0 ** -_PRECISION[calculation.result.ptx_type]
            loss = last.error / max(unit, *others, 0.0)
            if loss >= self._least_loss(last) and loss > most:
                worst, most = last, loss
        if worst is None:
            return None
        bits = f"{math.log2(most):.0f}" if most < 2.0 ** max(_PRECISION.values()) else "all"
        return (worst.number, worst.thread), f"cancellation in several steps, {bits} bits lost"

    def _giver_of(self, key: tuple[int, int]) -> _Node | None:
        """Return the step that calculated a value which loads, stores and moves pass on."""
        node = self._nodes.get(key)
        while node is not None and _moves(node.step) and len(node.sources) == 1:
            node = self._nodes.get(next(iter(node.sources.values())))
        return node

    def _least_loss(self, node: _Node) -> float:
        calculation = calculation_of(node.step.use.instruction)
        if calculation is None:
            return math.inf
        return _LEAST_LOSS.get(calculation.result.ptx_type, math.inf)  # none of packed types

    def _nonfinite(self, node: _Node) -> str:
        """Return what a step made of other operands; "" if it made no NaN or infinity."""
        calculation = calculation_of(node.step.use.instruction)
        if not node.step.results:
            return ""
        if calculation is None:
            return self._assembled(node)
        kind = calculation.result
        word = kind.of_bits(self._result(node))
        if not kind.are_nonfinite(word).any():
            return ""
        is_nan = bool(kind.are_nans(word).any())
        for operand, of_kind in calculation.sources:
            if isinstance(operand, Register):
                index = node.step.use.sources.index(operand)
                parts = of_kind.of_bits(self._bits(node, node.step.sources[index]))
                wrong = of_kind.are_nans(parts) if is_nan else of_kind.are_nonfinite(parts)
                if wrong.any():
                    return ""
        return "NaN" if is_nan else "infinity"

    def _assembled(self, node: _Node) -> str:
        """Return what integers made of bits of finite floats; "" if they made none."""
        kind = node.step.use.assembled
        if kind is None or not node.sources:
            return ""
        made = kind.of_bits(self._result(node))
        waiting = [self._nodes[key] for key in node.sources.values() if key in self._nodes]
        for behind in waiting:  # it grows
            sources = [self._nodes[key] for key in behind.sources.values() if key in self._nodes]
            if calculation_of(behind.step.use.instruction) is None and sources:
                waiting += sources
            elif kind.are_nonfinite(kind.of_bits(self._result(behind))).any():
                return ""
        if not kind.are_nonfinite(made).any():
            return ""
        return "NaN" if kind.are_nans(made).any() else "infinity"

    def _constant(self, node: _Node) -> str:
        """Return what an infinite or NaN constant is that a step gives; "" if it gives none."""
        for operand in node.step.use.instruction.operands[1:]:
            if is_nonfinite(operand) and isinstance(operand, FloatImmediate):
                kind = FORMATS[f"f{operand.width}"]
                if node.step.results and self._result(node) == operand.bits:
                    return "NaN" if kind.are_nans(kind.of_bits(operand.bits)).any() else "infinity"
        return ""

    def _nearest_end(self) -> tuple[int, int]:
        """Return the nearest step whose operands come from outside the launch."""
        ends = [key for key, node in self._nodes.items() if not node.sources]
        return min(ends, key=lambda key: (self._nodes[key].depth, key))

    def _shown(self, node: _Node, cause: str) -> ChainStep:
        step, i = node.step, node.step.use.instruction
        position = step.position(node.thread) or 0
        has_line = i.location is not None and bool(i.location.line)
        located = i if has_line and cause not in ("NaN", "infinity") else step.use.located
        where = step.blocks.where(int(step.lanes[position]), located)
        calculation = calculation_of(i)
        kinds: dict[Register, FloatFormat] = {}
        if calculation is not None:
            kinds = {each: kind for each, kind in calculation.sources if isinstance(each, Register)}
            kinds |= dict.fromkeys(calculation.targets, calculation.result)
        texts = [
            [
                f"{register.name} = {self._number(node, kinds.get(register), i.facts.types, value)}"
                for register, value in zip(registers, values, strict=True)
            ]
            for registers, values in (
                (step.use.targets, step.results),
                (step.use.sources, step.sources),
            )
        ]
        results, sources = (", ".join(dict.fromkeys(each)) for each in texts)
        return ChainStep(where, " of ".join(filter(None, (results, sources))), cause)

    def _number(
        self, node: _Node, kind: FloatFormat | None, types: Sequence[str], value: Value
    ) -> str:
        if value.dtype == np.bool_:
            return str(bool(self._bits(node, value)))
        bits = self._bits(node, value)
        if kind is None and types and types[0] in FORMATS:
            kind = FORMATS[types[0]]
        if kind is None:
            is_integer = bool(types) and types[0][0] in "us"
            return str(_integer(types[0], bits)) if is_integer else f"{bits:#x}"
        return kind.text(kind.of_bits(bits)[0])


def _is_integral(operand: Operand) -> bool:
    """Return whether an operand is a constant whose last place is 1."""
    if not isinstance(operand, FloatImmediate):
        return False
    exponent = (operand.bits & ~(1 << (operand.width - 1))) >> _FRACTION[operand.width]
    return exponent == _OF_ONE[operand.width]


def _moves(step: Step) -> bool:
    i = step.use.instruction
    if sum(target.ptx_type != "pred" for target in step.use.targets) > 1:
        return False
    is_memory = i.facts.kind in (InstructionKind.LOAD, InstructionKind.STORE)
    return is_memory or i.facts.is_move or i.facts.kind is InstructionKind.EXCHANGE


def _at(value: Value, position: int) -> int:
    return int(value[position]) if value.ndim else int(value)


def _decimal(kind: FloatFormat, bits: int) -> Decimal:
    return Decimal(kind.numbers(kind.of_bits(bits)[0])[0])


def _integer(ptx_type: str, bits: int) -> Decimal:
    if ptx_type[0] == "s":
        width = int(ptx_type[1:])
        bits &= (1 << width) - 1
        bits -= (bits >> (width - 1)) << width
    return Decimal(bits)
