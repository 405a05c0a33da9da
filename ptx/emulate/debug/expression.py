"""Expressions over the variables, registers and memory of stopped threads.

They have the operators that Python and C share, `name[index]`, `name[first:last]`, `name.member`,
`isnan(x)`, `isinf(x)`, `abs(x)`, and `f32(x)` to read bits as another type.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.findings import demangled
from ptx.emulate.debug.debug_info import CudaType, DebugInfo
from ptx.emulate.debug.frames import Frame
from ptx.emulate.debug.stops import CodePoint
from ptx.emulate.memory.generic_addresses import WINDOW_BYTES, WINDOWS, owners_of
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import NUMPY, kind_of
from ptx.emulate.threads.fibre import Fibre
from ptx.errors import PtxError
from ptx.isa.module import PtxModule
from ptx.isa.signature import shared_variables

_MOST_SHOWN: Final = 32
_MOST_QUOTED: Final = 60
_REGISTER: Final = re.compile(r"(?<![\w)\]])(?<![\w)\]] )%([\w$.]+)")
_NOT: Final = re.compile(r"!(?!=)")
_OPERATORS: Final[Mapping[type[ast.AST], Callable[..., Any]]] = {  # of numbers and arrays of them
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: np.remainder, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.USub: operator.neg, ast.UAdd: operator.pos,
    ast.Invert: operator.invert, ast.Not: np.logical_not, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.And: lambda *each: reduce(np.logical_and, each),
    ast.Or: lambda *each: reduce(np.logical_or, each),
}  # fmt: skip
_FUNCTIONS: Final = {"isnan": np.isnan, "isinf": np.isinf, "abs": np.abs}
_NODES: Final = (
    ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.UnaryOp, ast.BinOp, ast.BoolOp,
    ast.Compare, ast.Call, ast.Load,
)  # fmt: skip
_BUILTINS: Final = {
    "threadIdx": "tid", "blockIdx": "ctaid", "blockDim": "ntid", "gridDim": "nctaid",
}  # fmt: skip


class ExpressionError(PtxError):
    """An expression that has no value here."""


NO_VALUE: Final = (
    ExpressionError, AttributeError, TypeError, ValueError, ArithmeticError, RecursionError,
)  # fmt: skip
"""What an operation raises whose operands have no value, or one of another kind."""


@dataclass(frozen=True, slots=True)
class Place:
    """Memory of each thread: addresses in a space, and the type of what is there."""

    space: str
    addresses: NDArray[np.int64]
    type: CudaType


Result = Place | NDArray[Any]  # numbers of each thread, of any type


class OfRegisters(NamedTuple):
    """A function of these registers of a fibre, or of what has `n`, `regs` and `special` as it."""

    function: Callable[[Any], Any]
    registers: set[int]

    def holds(self, threads: Any) -> NDArray[np.bool_]:
        """Return for which threads the value is true."""
        value = np.asarray(self.function(threads), dtype=np.bool_)
        return value if value.ndim else np.full(threads.n, value)


class Evaluator:
    """Evaluates expressions for the threads of a frame."""

    def __init__(self, frame: Frame, info: DebugInfo) -> None:
        self._frame = frame
        self._fibre = frame.fibre
        self._info = info

    def variables(self) -> dict[str, bool]:
        """Return the names of the variables that have a value here, and which are parameters."""
        visible = self._info.visible(self._frame.scope.function.name, self._frame.ptx_line)
        if visible or not self._frame.scope.function.is_entry:
            return {name: variable.is_parameter for name, (variable, _) in visible.items()}
        return dict.fromkeys(self._frame.scope.frame.params, True)

    def shared(self) -> list[str]:
        """Return the names of the shared variables."""
        return [demangled(name) for name in self._fibre.blocks.code.shared_offsets]

    def registers(self) -> Iterator[tuple[str, str]]:
        """Yield the names and values of the registers."""
        for name, number in self._frame.scope.numbers.items():
            if name.startswith("%"):
                yield name, number_text(self._lanes_of(self._frame.registers[number])[0])

    def evaluate(self, text: str) -> Result:
        """Return the value of an expression for each thread.

        Raises:
            ExpressionError: it has none.
        """
        node = parsed(text)
        try:
            return self._value(node)
        except ExpressionError:
            raise
        except NO_VALUE as error:
            raise ExpressionError(f"{_quoted(text)} has no value: {error}") from None

    def holds(self, text: str) -> NDArray[np.bool_]:
        """Return for which threads an expression holds."""
        value = np.asarray(self._number(self.evaluate(text)), dtype=np.bool_)
        return value if value.size == len(self._frame.positions) else self._all(value)

    def of_registers(self, text: str) -> OfRegisters | None:
        """Return a function of the value for all threads of a fibre; None if it reads memory."""
        registers: set[int] = set()
        try:
            return OfRegisters(self._compiled(parsed(text), registers), registers)
        except (LookupError, ValueError, RecursionError):
            return None

    def _compiled(self, node: ast.expr, registers: set[int]) -> Callable[[Any], Any]:
        match node:
            case ast.Constant(value=int() | float() as number):
                constant = np.asarray(number)[()]
                return lambda _: constant
            case ast.Name(id=name) if (register := self._register(name)) is not None:
                at, kind = register
                if isinstance(at, str):
                    return operator.methodcaller("special", at)
                if kind.element is None:
                    registers.add(at)
                    return lambda fibre: _of_register(fibre.regs[at], kind)
            case ast.Attribute(value=ast.Name(id=whole), attr=member) if whole in _BUILTINS:
                return operator.methodcaller("special", f"{_BUILTINS[whole]}.{member}")
        function, operands = _operation(node)
        parts = [self._compiled(each, registers) for each in operands]
        return lambda fibre: function(*[part(fibre) for part in parts])

    def shown(self, result: Result) -> str:
        """Return the value of the first thread in words."""
        if not isinstance(result, Place):
            return number_text(np.asarray(result).reshape(-1)[0])
        kind = result.type
        if kind.count:
            parts = [self.shown(each) for _, each in self.children(result, 0, _MOST_SHOWN)]
            return f"{{{', '.join(parts)}{', …' * (kind.count > len(parts))}}}"
        if kind.fields:
            parts = [f"{name[1:]} = {self.shown(e)}" for name, e in self.children(result, 0, 99)]
            return f"{{{', '.join(parts)}}}"
        try:
            text = number_text(self._load(result)[0])
        except ExpressionError as error:
            return f"<{error}>"
        return f"{int(text):#x}" if kind.element is not None else text

    def children(self, result: Result, first: int, count: int) -> Iterator[tuple[str, Result]]:
        """Yield the elements of an array from a first one on, or the members of a class."""
        if not isinstance(result, Place):
            return
        if result.type.element is not None:
            for index in range(first, min(first + count, self.count(result))):
                yield f"[{index}]", self._element(result, index)
        for name, offset, kind in result.type.fields[first : first + count]:
            yield f".{name}", Place(result.space, result.addresses + offset, kind)

    def count(self, result: Result) -> int:
        """Return how many elements an array has, or the memory that a pointer leads to."""
        if not isinstance(result, Place) or result.type.element is None:
            return 0
        if result.type.count:
            return result.type.count
        address = int(self._element(result, 0).addresses[0])
        allocation = self._fibre.blocks.launch.memory.find(address)
        return 0 if allocation is None else (allocation.end - address) // result.type.element.nbytes

    def watched(self, text: str) -> tuple[Place, int]:
        """Return the memory of an expression such as `x[17]`, and the block that has it.

        Raises:
            ExpressionError: it has none.
        """
        value = self.evaluate(text)
        if not isinstance(value, Place):  # an address
            value = Place("global", np.asarray(value).reshape(-1), CudaType("int", "u32", 4))
        if value.addresses.dtype.kind not in "iu" or value.space == "value":
            raise ExpressionError(f"{text} is in a register: watch memory, such as x[3]")
        place = self._in_space(replace(value, addresses=value.addresses.astype(np.int64)))
        slots, starts = self._slots_of(place)
        if place.space == "global":
            self._require_memory(int(starts[0]))
        return replace(place, addresses=starts), self._fibre.blocks.first + int(slots[0])

    def _slots_of(self, place: Place) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the blocks of the chunk that have memory of threads, and the addresses there."""
        blocks = self._fibre.blocks
        lanes = self._fibre.lane_numbers()[self._frame.positions]
        slots = lanes // blocks.geometry.threads_per_block
        if place.space != "shared":
            return slots, place.addresses
        return owners_of(place.addresses, slots, blocks.cluster.blocks)

    def _require_memory(self, address: int) -> None:
        if self._fibre.blocks.launch.memory.find(address) is None:
            raise ExpressionError(f"no memory at {address:#x}")

    def _value(self, node: ast.expr) -> Result:
        match node:
            case ast.Constant(value=int() | float() as value):
                return np.asarray(value)
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute(value=whole, attr=name):
                return self._member(whole, name)
            case ast.Subscript(value=whole, slice=index):
                return self._subscript(self._value(whole), index)
            case ast.Call(func=ast.Name(id=name), args=[argument]) if name in NUMPY:
                return self._cast(name, self._value(argument))
        function, operands = _operation(node)
        return np.asarray(function(*(self._number(self._value(each)) for each in operands)))

    def _cast(self, name: str, argument: Result) -> Result:
        nbytes = np.dtype(NUMPY[name]).itemsize
        kind = CudaType(name, name, nbytes)
        if not isinstance(argument, Place):
            return np.asarray(argument).view(NUMPY[name])
        if argument.type.count:
            count = argument.type.nbytes // nbytes
            kind = CudaType(f"{name}[{count}]", "", argument.type.nbytes, kind, count)
        elif argument.type.element is not None:
            kind = replace(argument.type, element=kind)
        return Place(argument.space, argument.addresses, kind)

    def _register(self, name: str) -> tuple[int | str, CudaType] | None:
        """Return the number of the register that has a value, or a special one, and the type."""
        scope = self._frame.scope
        if name.startswith("reg_"):
            register = f"%{name.removeprefix('reg_').replace('__', '.')}"
            if register in scope.numbers:
                return scope.numbers[register], CudaType("")
            if register[1:].partition(".")[0] in (*_BUILTINS.values(), "laneid", "warpid"):
                return register[1:], CudaType("")
            raise ExpressionError(f"there is no register {register} in {scope.function.name}")
        visible = self._info.visible(scope.function.name, self._frame.ptx_line)
        variable, place = visible.get(name, (None, None))
        if variable is None or place is None or place.register not in scope.numbers:
            return None
        return scope.numbers[place.register], variable.type

    def _name(self, name: str) -> Result:
        frame, scope = self._frame, self._frame.scope
        register = self._register(name)
        if register is not None:
            at, of_type = register
            bits = self._fibre.special(at) if isinstance(at, str) else frame.registers[at]
            return _of_register(self._lanes_of(bits), of_type)
        visible = self._info.visible(scope.function.name, frame.ptx_line)
        if name in visible:
            variable, place = visible[name]
            if place is None or place.symbol not in scope.frame.offsets:
                raise ExpressionError(f"{name} has no value at this line")
            offset = frame.stack_pointer + scope.frame.offsets[place.symbol] + place.offset
            return Place("local", self._all(offset), variable.type)
        module = scope.layout.module
        for each in shared_variables(module, self._fibre.blocks.code.functions[0].name):
            if name in (each.name, demangled(each.name)):
                offset = self._fibre.blocks.code.shared_offsets[each.name]
                nbytes = each.nbytes or self._fibre.blocks.launch.shared_bytes - offset
                known = self._typed(each.name, nbytes)
                known = known or self._untyped("shared", nbytes, each.align)
                return Place("shared", self._all(offset), known)
        for symbol, (address, nbytes) in scope.layout.globals.items():
            if name in (symbol, demangled(symbol)):
                known = self._typed(symbol, nbytes) or self._untyped("global", nbytes, 1)
                return Place("global", self._all(address), known)
        if name in scope.frame.params:
            offset = scope.frame.params[name]
            kind = next(kind_of(e.ptx_type) for e in scope.function.params if e.name == name)
            number = self._fibre.blocks.launch.params[kind, offset]
            element = self._accessed("global") if kind == "u64" else None
            return _of_register(np.asarray([number]), CudaType(kind, kind, 8, element))
        raise ExpressionError(f"there is no {name[:_MOST_QUOTED]} here")

    def _member(self, whole: ast.expr, member: str) -> Result:
        if isinstance(whole, ast.Name) and whole.id in _BUILTINS:
            return self._lanes_of(self._fibre.special(f"{_BUILTINS[whole.id]}.{member}"))
        place = self._value(whole)
        if isinstance(place, Place):
            for name, offset, kind in place.type.fields:
                if name == member:
                    return Place(place.space, place.addresses + offset, kind)
        raise ValueError(f"there is no member {member}")

    def _subscript(self, value: Result, index: ast.expr) -> Result:
        if not isinstance(value, Place):
            raise ValueError("only arrays and pointers have elements")
        if isinstance(index, ast.Slice):
            if index.upper is None or index.step is not None:
                raise ValueError("give the ends of a slice, such as x[0:8]")
            first, last = (
                0 if each is None else int(self._index(each)[0])
                for each in (index.lower, index.upper)
            )
            start, count = self._element(value, first), last - first
            if count < 1:
                raise ValueError("the slice has no elements")
            name, nbytes = f"{start.type.name}[{count}]", start.type.nbytes * count
            return replace(start, type=CudaType(name, "", nbytes, start.type, count))
        return self._element(value, self._index(index))

    def _index(self, node: ast.expr) -> NDArray[np.int64]:
        value = np.asarray(self._number(self._value(node))).reshape(-1)
        if value.dtype.kind not in "iub":
            raise ValueError(f"{ast.unparse(node)} is no integer")
        return value.astype(np.int64)

    def _element(self, place: Place, index: int | NDArray[Any]) -> Place:
        element = place.type.element
        if element is None:
            raise ValueError("only arrays and pointers have elements")
        addresses = place.addresses
        if not place.type.count and place.space != "value":  # a pointer in memory
            addresses = self._load(place).astype(np.int64)
        space = "global" if place.space == "value" or not place.type.count else place.space
        offsets = np.asarray(index).astype(np.int64) * element.nbytes
        return Place(space, addresses + offsets, element)

    def _accessed(self, space: str, align: int = 0) -> CudaType:
        """Return the type that the kernel's instructions access in a space, as PTX has no others.

        Code for debuggers has generic accesses alone; the alignment of a variable is often the size
        of its elements.
        """
        sites = [e for e in self._fibre.blocks.code.find_sites() if e.nbytes == align or not align]
        kinds = [site.kind for site in sites if site.space == space]
        kinds = kinds or [site.kind for site in sites if site.space == "generic"]
        kinds = [e for e in ("f32", "f64") if e in kinds] or kinds or ["f32"]
        return CudaType(kinds[0], kinds[0], np.dtype(NUMPY[kinds[0]]).itemsize)

    def _untyped(self, space: str, nbytes: int, align: int) -> CudaType:
        kind = self._accessed(space, align if align in (2, 4, 8) else 0)
        if nbytes % kind.nbytes:
            kind = CudaType("u8", "u8", 1)
        return _array_of(nbytes, kind)

    def _typed(self, symbol: str, nbytes: int) -> CudaType | None:
        """Return the type of a variable outside functions, if there is debug information."""
        known = self._info.globals.get(symbol)
        if known is not None and known.element is not None and not known.nbytes:
            return _array_of(nbytes, known.element)
        return known

    def _number(self, value: Result) -> NDArray[Any]:
        return self._load(value) if isinstance(value, Place) else value

    def _load(self, place: Place) -> NDArray[Any]:
        if place.space == "value":
            return place.addresses
        if not place.type.kind:
            raise ExpressionError(f"{place.type.name} is no number: give an element or a member")
        place, blocks = self._in_space(place), self._fibre.blocks
        starts, memory = place.addresses, blocks.launch.memory
        if place.space == "global":
            self._require_memory(int(starts[0]))
            data, starts = memory.data, np.clip(starts - memory.base, 0, memory.nbytes - 16)
        else:
            slots, starts = self._slots_of(place)
            lanes = self._fibre.lane_numbers()[self._frame.positions]
            stride = blocks.shared_stride if place.space == "shared" else blocks.local_stride
            data = blocks.shared if place.space == "shared" else blocks.local
            if not ((starts >= 0) & (starts + place.type.nbytes <= stride)).all():
                raise ExpressionError(f"past the end of {place.space} memory")
            starts = starts + (slots if place.space == "shared" else lanes) * stride
        return np.stack([data[starts + byte] for byte in range(place.type.nbytes)], axis=1).view(
            NUMPY[place.type.kind]
        )[:, 0]

    def _in_space(self, place: Place) -> Place:
        """Return memory in its own space if its address is generic."""
        if place.space == "global":
            for space, start in WINDOWS:
                if start <= int(place.addresses[0]) < start + WINDOW_BYTES:
                    return replace(place, space=space, addresses=place.addresses - start)
        return place

    def _lanes_of(self, value: Value) -> NDArray[Any]:
        values = np.asarray(value)
        return values[self._frame.positions] if values.ndim else self._all(values)

    def _all(self, value: Any) -> NDArray[Any]:
        return np.full(len(self._frame.positions), value)


class Conditions:
    """Conditions at instructions. One that reads registers alone is compiled once.

    Args:
        info: returns the debug information of a module.
    """

    def __init__(self, info: Callable[[PtxModule], DebugInfo]) -> None:
        self._info = info
        self._of_registers: dict[tuple[int, str], OfRegisters | None] = {}

    def holding(
        self, point: CodePoint, fibre: Fibre, positions: Index | None, condition: str
    ) -> Index:
        """Return at which of some positions, or of all (None), a condition holds.

        It holds nowhere if it has no value.
        """
        every = np.arange(fibre.n) if positions is None else positions
        try:
            compiled = self.of_registers(point, fibre, condition)
            if compiled is None:
                return every[self._evaluator(point, fibre, every).holds(condition)]
            return every[compiled.holds(fibre)[every]]
        except NO_VALUE:
            return every[:0]

    def of_registers(self, point: CodePoint, fibre: Fibre, condition: str) -> OfRegisters | None:
        """Return a condition at an instruction as a function; None if it reads memory.

        Raises:
            ExpressionError: it is no expression.
        """
        key = point.number, condition
        if key not in self._of_registers:
            evaluator = self._evaluator(point, fibre, np.arange(fibre.n))
            self._of_registers[key] = evaluator.of_registers(condition)
        return self._of_registers[key]

    def _evaluator(self, point: CodePoint, fibre: Fibre, positions: Index) -> Evaluator:
        scope, at = point.scope, point.instruction
        frame = Frame(fibre, positions, fibre.regs, scope, fibre.stack_pointer, at)
        return Evaluator(frame, self._info(scope.layout.module))


@lru_cache(maxsize=256)
def parsed(text: str) -> ast.expr:
    """Return an expression with Python's words for the operators of C.

    Raises:
        ExpressionError: it is none.
    """
    source = _REGISTER.sub(lambda match: f"reg_{match[1].replace('.', '__')}", text)
    source = source.replace("&&", " and ").replace("||", " or ").replace("->", ".")
    try:
        root = ast.parse(_NOT.sub(" not ", source).strip(), mode="eval").body
        for node in ast.walk(root):
            number = node.value if isinstance(node, ast.Constant) else None
            if isinstance(number, (int, float)):
                if abs(number) >= 1 << 63:
                    raise ValueError(f"{number} is too large")
            elif not isinstance(node, _NODES) and type(node) not in _OPERATORS:
                raise ValueError("only names, numbers, operators and [ ] are allowed")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise ExpressionError(f"{_quoted(text)} is no expression: {reason}") from None
    return root


def _operation(node: ast.expr) -> tuple[Callable[..., Any], list[ast.expr]]:
    """Return the function of an operator or a call, and its operands."""
    match node:
        case ast.UnaryOp(op=op, operand=operand):
            return _OPERATORS[type(op)], [operand]
        case ast.BinOp(op=op, left=left, right=right):
            return _OPERATORS[type(op)], [left, right]
        case ast.Compare(ops=[op], left=left, comparators=[right]):
            return _OPERATORS[type(op)], [left, right]
        case ast.BoolOp(op=op, values=operands):
            return _OPERATORS[type(op)], operands
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            if name not in _FUNCTIONS:
                raise ValueError(f"there is no function {name}")
            return _FUNCTIONS[name], [argument]
    raise ValueError("only names, numbers, operators and [ ] are allowed")


def _of_register(bits: NDArray[Any], kind: CudaType) -> Result:
    """Return the bits of a register as a type."""
    if kind.element is not None:
        return Place("value", bits.astype(np.int64), kind)
    if not kind.kind or bits.dtype == np.bool_:
        return bits
    wanted = np.dtype(NUMPY[kind.kind])
    if wanted.itemsize < bits.dtype.itemsize:
        bits = bits.astype(f"u{wanted.itemsize}")
    return bits.view(wanted) if wanted.itemsize == bits.dtype.itemsize else bits


def _array_of(nbytes: int, kind: CudaType) -> CudaType:
    """Return the type of a variable of which PTX has the size alone."""
    count = nbytes // kind.nbytes
    return CudaType(f"{kind.name}[{count}]", "", nbytes, kind, count) if count > 1 else kind


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _MOST_QUOTED else f"{text[:_MOST_QUOTED]}…")


def number_text(value: Any) -> str:
    """Return a number in words; truth values as C has them."""
    if isinstance(value, np.bool_):
        return str(bool(value)).lower()
    return str(value)
