"""The registers of a part of a basic block of single threads, each in a variable of Python.

A variable holds a register as its last instruction needed it: as bits, as a float or as a truth
value. If another instruction needs it otherwise, a second variable is made, a view.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from ptx.emulate.codegen.scope import FunctionScope
from ptx.emulate.threads.rows import float_of_word, word_of_float
from ptx.isa.model import Register

FLOATS = ("f32", "f64")


class NoLaneCode(Exception):
    """An instruction, or this form of it, has no code for a single thread."""


def held_as(kind: str) -> str:
    """Return the form in which a row holds a kind: "f32", "f64", "pred" or, as bits, "int"."""
    return kind if kind in (*FLOATS, "pred") else "int"


class LaneRegisters:
    """The registers that Python variables hold, and the lines that set them.

    Attributes:
        scope: the function's registers, symbols and names.
        lines: of the part so far.
    """

    def __init__(self, scope: FunctionScope) -> None:
        self.scope = scope
        self.lines: list[str] = []
        self._held: dict[int, str] = {}
        self._views: dict[tuple[int, str], str] = {}
        self._read: set[int] = set()
        self._written: dict[int, None] = {}
        self._prelude: dict[str, str] = {}
        self._is_loaded = False

    def begin(self) -> None:
        """Start a part: nothing is loaded."""
        self._prelude.clear()
        self._is_loaded = False
        self._start()

    def begin_block(self) -> None:
        """Start a block of a loop: each register is in its variable, as a row holds it."""
        self._is_loaded = True
        self._start()

    def _start(self) -> None:
        self.lines = []
        for table in (self._held, self._views, self._read, self._written):
            table.clear()

    def end_block(self, live: int) -> None:
        """Have each variable as a row holds it that was written and is in the mask `live`."""
        for number in self._written:
            stored_kind = held_as(self.scope.stored_kind[number])
            if live >> number & 1 and self._held[number] != stored_kind:
                self.lines.append(f"r{number} = {self._as(number, stored_kind)}")

    def flush(self, live: int) -> None:
        """Store the registers that were written and are in the mask `live`."""
        for number in self._written:
            if live >> number & 1:
                stored_kind = held_as(self.scope.stored_kind[number])
                self.lines.append(f"R[{number}] = {self._as(number, stored_kind)}")

    @property
    def changed(self) -> tuple[int, ...]:
        """The registers that the part reads and changes: with others it may be begun again."""
        return tuple(self._read.intersection(self._written))

    def reject(self) -> NoReturn:
        """Leave the instruction to NumPy."""
        raise NoLaneCode

    def held(self, register: Register) -> str:
        """Return the form in which a register is held at present."""
        number = self.scope.number(register)
        self._load(number)
        return self._held[number]

    def helper_value(self, key: object, value: object) -> str:
        """The name of a value that equal keys share."""
        shared_values: dict[object, object] = self.scope.lane_values
        return self.scope.bind(shared_values.setdefault(key, value), "v")

    def helper(self, function: Callable[..., object]) -> str:
        """The name by which generated code calls a Python function."""
        return self.scope.bind(function, function.__name__)

    def bench(self, name: str) -> str:
        """A variable that the part sets before all: an attribute of the fibre's `LaneMemory`."""
        self._prelude.setdefault("B", "f.scheduler.lanes.memory")
        self._prelude.setdefault(name, f"B.{name}")
        return name

    def before(self, name: str, expression: str) -> str:
        """A variable that the part sets before all, from its `LaneMemory` B."""
        self._prelude.setdefault("B", "f.scheduler.lanes.memory")
        self._prelude.setdefault(name, expression)
        return name

    def as_stored(self, number: int) -> str:
        """A register's variable, as a row holds it."""
        return self._as(number, held_as(self.scope.stored_kind[number]))

    def set_stored(self, number: int, expression: str) -> None:
        """Set a register to its value in a row."""
        self.lines.append(f"r{number} = {expression}")
        self._note_written(number, held_as(self.scope.stored_kind[number]))

    def _note_written(self, number: int, form: str) -> None:
        """A register's variable has been set, and is held so."""
        for other in ("int", *FLOATS):
            self._views.pop((number, other), None)
        self._held[number] = form
        self._written[number] = None

    def _load(self, number: int) -> None:
        if number not in self._held:
            if self.scope.width[number] > 8:
                self.reject()
            self._held[number] = held_as(self.scope.stored_kind[number])
            if not self._is_loaded:
                self.lines.append(f"r{number} = R[{number}]")
                self._read.add(number)

    def _as(self, number: int, form: str) -> str:
        """A register's variable, held in one way or another."""
        self._load(number)
        current = self._held[number]
        if current == form:
            return f"r{number}"
        if "pred" in (current, form):
            self.reject()
        view = self._views.get((number, form))
        if view is None:
            view = self._views[number, form] = f"r{number}_{form}"
            self._convert(view, f"r{number}", current, form, self.scope.width[number])
        return view

    def _convert(self, view: str, name: str, current: str, form: str, size: int) -> None:
        if (current in FLOATS and form in FLOATS) or size not in (4, 8):
            self.reject()
        if size == 8:
            source, target = ("Q", "D") if current == "int" else ("D", "Q")
            self.bench(source), self.bench(target)
            self.lines += [f"{source}[0] = {name}", f"{view} = {target}[0]"]
            return
        self.bench("F"), self.bench("I")
        if current == "int":
            self.lines += [
                f"I[0] = {name}",
                f"{view} = F[0]",
                f"if {view} != {view}: {view} = {self.helper(float_of_word)}({name})",
            ]
        else:
            self.lines += [
                f"F[0] = {name}",
                f"{view} = I[0]",
                f"if {name} != {name}: {view} = {self.helper(word_of_float)}({name})",
            ]
