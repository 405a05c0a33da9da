"""The registers of one basic block as Python variables: loaded when first read, stored at its end.

Integer sums are deferred until their value is needed. If a sum is only an address, its constant and
its array stay apart in `Addresses`, and the sum is never computed. So are products of an index and
a power of two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ptx.emulate.codegen.scope import Constants, FunctionScope
from ptx.emulate.model.addresses import Addresses, same_address, scaled
from ptx.emulate.model.types import NUMPY
from ptx.isa.model import Immediate, Operand, Register

_LONGEST_CHAIN = 8  # sums of sums that are put off together
_LARGEST = 1 << 31  # constant in a sum that is put off
_Terms = tuple[Operand, Operand]  # a Register or an Immediate each


class _Product(NamedTuple):
    """A 32-bit register of a kind, times 2**shift, in 64 bits."""

    factor: Register
    kind: str
    shift: int


class BlockRegisters:
    """Which variable of the generated function holds which register, and as what kind.

    Attributes:
        lines: the function's code so far.
        slot: where chunks share the result of the instruction that is being emitted, if they do.
    """

    def __init__(self, scope: FunctionScope, constants: Constants) -> None:
        self.lines: list[str] = []
        self._scope = scope
        self._constants_of = constants
        self._numbers = scope.numbers
        self._stored_kind = scope.stored_kind
        self._kinds: dict[int, str] = {}
        self._views: dict[int, dict[str, str]] = {}
        self._addresses: dict[int, str] = {}
        self._pending: dict[int, _Terms | _Product] = {}
        self._depths: dict[int, int] = {}
        self._constants: dict[int, np.generic] = {}
        self._dependents: dict[int, list[int]] = {}
        self._written: set[int] = set()
        self._temporaries = 0
        self._slots: dict[int, int] = {}
        self.slot: int | None = None

    def begin(self) -> None:
        """Start a block: nothing is loaded."""
        self.lines = []
        for table in (
            self._kinds, self._views, self._addresses, self._pending, self._depths, self._constants,
            self._dependents, self._written, self._slots,
        ):  # fmt: skip
            table.clear()
        self._temporaries = 0

    def flush(self, live: int) -> None:
        """Store the registers that were written and are in the mask `live`."""
        for number in sorted(self._written):
            if live >> number & 1:
                self.lines.append(f"R[{number}] = {self.read(number, self._stored_kind[number])}")

    def temporary(self, expression: str) -> str:
        """The name of a new variable that holds an expression's value."""
        self._temporaries += 1
        name = f"t{self._temporaries}"
        self.lines.append(f"{name} = {expression}")
        return name

    def read(self, number: int, kind: str) -> str:
        """The register's bits as a kind of its width: a variable, or the name of a constant.

        "" where a predicate would be read as a number, or a number as a predicate.
        """
        name = self._loaded(number)
        current = self._kinds[number]
        if current == kind:
            return name
        if kind == "pred" or current == "pred":
            return ""
        views = self._views.setdefault(number, {})
        view = views.get(kind)
        if view is None and number in self._constants:
            return self._scope.bind(self._constants[number].view(NUMPY[kind]))
        if view is None:
            view = views[kind] = f"{name}_{kind}"
            self.lines.append(f"{view} = {name}.view({self._constants_of.dtype(kind)})")
        return view

    def write(self, number: int, kind: str, expression: str) -> None:
        """The register's new value, of a kind of its width."""
        self._forget(number)
        self._compute(number, expression, self.slot)
        scalar = self._scope.scalar(expression)
        if scalar is not None:
            self._constants[number] = scalar
        self._kinds[number] = kind
        self._written.add(number)

    def write_sum(self, number: int, left: Operand, right: Operand) -> bool:
        """Let the register be a sum that is computed when needed; an address may never need it.

        False where it cannot be put off.
        """
        width = self._scope.width[number]
        if width not in (4, 8):
            return False
        depth = 1
        sources: list[int] = []
        for operand in (left, right):
            if isinstance(operand, Register):
                source = self._numbers[operand.name]
                if source == number or self._scope.width[source] != width:
                    return False
                sources.append(source)
                depth += self._depths.get(source, 0)
            elif not (isinstance(operand, Immediate) and -_LARGEST <= operand.value < _LARGEST):
                return False  # sums of addresses do not wrap around
        if depth > _LONGEST_CHAIN:
            for source in sources:
                self._settle(source)
            depth = 1
        self._forget(number)
        self._pending[number] = (left, right)
        if self.slot is not None:
            self._slots[number] = self.slot
        for source in sources:
            self._dependents.setdefault(source, []).append(number)
        self._depths[number] = depth
        self._kinds[number] = self._sum_kind(number)
        self._written.add(number)
        return True

    def write_product(self, number: int, factor: Register, kind: str, shift: int) -> bool:
        """Let a 64-bit register be a product that is computed when needed, as `write_sum` does.

        False where it cannot be put off, or is block-invariant: that one is computed once.
        """
        source = self._numbers[factor.name]
        if (
            self._scope.width[number] != 8
            or self._scope.width[source] != 4
            or self.slot is not None
        ):
            return False
        self._forget(number)
        self._pending[number] = _Product(factor, kind, shift)
        self._dependents.setdefault(source, []).append(number)
        self._kinds[number] = f"{kind[0]}64"
        self._written.add(number)
        return True

    def addresses(self, number: int) -> str:
        """The name of the `Addresses` in a register."""
        addresses = self._addresses.get(number)
        if addresses is None:
            pending = self._pending.get(number)
            if isinstance(pending, _Product):
                factor = self.read(self._numbers[pending.factor.name], pending.kind)
                expression = f"{self._scope.bind(scaled, 'scaled')}({factor}, {pending.shift})"
            elif pending is not None:
                left, right = (self._addresses_of(term) for term in pending)
                expression = f"{left}.plus({right})"
            elif self._scope.invariants:
                expression = f"f.blocks.cache.addresses({self._loaded(number)})"
            else:
                expression = f"{self._scope.addresses_in}({self._loaded(number)})"
            addresses = self._addresses[number] = self.temporary(expression)
        return addresses

    def same_address(self, expression: str) -> str:
        """The name of the `Addresses` of one address; that of a constant is made once."""
        if expression.isdigit():
            return self._scope.bind(Addresses(int(expression), None), "addresses")
        return self.temporary(f"{self._scope.bind(same_address, 'same_address')}({expression})")

    def _addresses_of(self, term: Operand) -> str:
        if isinstance(term, Register):
            return self.addresses(self._numbers[term.name])
        assert isinstance(term, Immediate)
        return self._scope.bind(Addresses(term.value, None), "addresses")

    def _loaded(self, number: int) -> str:
        """The variable of a register, loaded or computed if it was not yet."""
        if number in self._pending:
            self._settle(number)
        name = f"r{number}"
        if number not in self._kinds:
            self._kinds[number] = self._stored_kind[number]
            self.lines.append(f"{name} = R[{number}]")
        return name

    def _settle(self, number: int) -> None:
        """Compute a sum that was put off."""
        pending = self._pending.pop(number, None)
        if pending is None:
            return
        self._depths.pop(number, None)
        if isinstance(pending, _Product):
            factor = self.read(self._numbers[pending.factor.name], pending.kind)
            wide = f"{factor}.astype({self._constants_of.dtype(self._kinds[number])})"
            shift = self._constants_of.number(pending.shift, self._kinds[number])
            self._compute(number, f"({wide} << {shift})", None)
            return
        kind = self._sum_kind(number)
        left, right = (self._term(term, kind) for term in pending)
        self._compute(number, f"{left} + {right}", self._slots.pop(number, None))

    def _compute(self, number: int, expression: str, slot: int | None) -> None:
        """Set the register's variable; a block-invariant value is computed once a launch."""
        if slot is not None:
            self.lines.append(f"k = f.invariant({slot})")
            self.lines.append(
                f"r{number} = f.store_invariant({slot}, {expression}) if k is None else k"
            )
        else:
            self.lines.append(f"r{number} = {expression}")

    def _term(self, term: Operand, kind: str) -> str:
        if isinstance(term, Register):
            return self.read(self._numbers[term.name], kind)
        assert isinstance(term, Immediate)
        return self._constants_of.number(term.value, kind)

    def _sum_kind(self, number: int) -> str:
        stored_kind = self._stored_kind[number]
        return stored_kind if stored_kind[0] in "us" else f"s{8 * self._scope.width[number]}"

    def _forget(self, number: int) -> None:
        """The register is about to change: settle what depends on its old value."""
        for other in self._dependents.pop(number, ()):
            pending = self._pending.get(other)
            if pending is not None and any(
                isinstance(term, Register) and self._numbers[term.name] == number
                for term in pending
            ):
                self._settle(other)
        if number in self._kinds:
            self._pending.pop(number, None)
            self._slots.pop(number, None)
            self._depths.pop(number, None)
            self._constants.pop(number, None)
            self._addresses.pop(number, None)
            self._views.pop(number, None)
