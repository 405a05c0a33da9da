"""Control flow except `bra`, which the control-flow graph handles. PTX ISA, "Control Flow"."""

from __future__ import annotations

from functools import partial

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, find_external, operation
from ptx.emulate.exec.calls import call, call_address, leave
from ptx.emulate.model.errors import UndefinedSymbol
from ptx.emulate.ops.data_movement import nothing
from ptx.isa.model import Arguments, Instruction, Operand, Register, Symbol

_operation = partial(operation, section="Control Flow Instructions")


def _return(e: Emitter, i: Instruction) -> None:
    e.leave(f"{e.helper(leave)}(f)")


def _exit(e: Emitter, i: Instruction) -> None:
    e.leave("f.finish()")


def _trap(e: Emitter, i: Instruction) -> None:
    e.line(f"f.trap({e.scope.bind(i, 'instruction')})")
    e.leave("-1")


def _branch_index(e: Emitter, i: Instruction) -> None:
    index = e.value(i.operands[0], "u32")
    instruction = e.scope.bind(i, "instruction")
    e.leave(f"f.branch_index({index}, {e.targets!r}, {instruction})")


def _sleep(e: Emitter, i: Instruction) -> None:
    duration = e.value(i.operands[0], "u32")
    e.leave(f"f.scheduler.waiting.timed_waits.sleep(f, {duration}, {e.following})")


def _split(e: Emitter, i: Instruction) -> tuple[Operand, tuple[Operand, ...], tuple[Operand, ...]]:
    """A call's target, its arguments and its results."""
    operands = list(i.operands)
    results: tuple[Operand, ...] = ()
    arguments: tuple[Operand, ...] = ()
    if operands and isinstance(operands[0], Arguments):
        results = operands.pop(0).items  # type: ignore[union-attr]  # just asked
    if not operands:
        raise e.reject("a call needs a function")
    target = operands.pop(0)
    if operands and isinstance(operands[0], Arguments):
        arguments = operands.pop(0).items  # type: ignore[union-attr]  # just asked
    return target, arguments, results


def _symbols(e: Emitter, operands: tuple[Operand, ...]) -> tuple[Symbol, ...]:
    symbols = tuple(operand for operand in operands if isinstance(operand, Symbol))
    if len(symbols) != len(operands):
        raise e.reject("only .param variables are passed in calls")
    return symbols


# Functions by which kernels launch others. CUDA C++ Programming Guide, "CUDA Dynamic Parallelism".
_LAUNCHES = ("cudaGetParameterBuffer", "cudaLaunchDevice")


def _places(e: Emitter, symbols: tuple[Symbol, ...]) -> str:
    """Offsets and sizes of `.param` variables in this function's frame."""
    return repr(tuple(e.scope.frame_place(symbol.name, e.instruction) for symbol in symbols))


def _call(e: Emitter, i: Instruction) -> None:
    target, arguments, results = _split(e, i)
    argument_symbols, result_symbols = _symbols(e, arguments), _symbols(e, results)
    frame = e.scope.frame.nbytes
    if isinstance(target, Register):
        address = e.value(target, "u64")
        site = e.scope.bind(i, "instruction")
        parameter_places = f"{_places(e, argument_symbols)}, {_places(e, result_symbols)}"
        function = e.helper(call_address)
        e.leave(f"{function}(f, {address}, {e.following}, {frame}, {parameter_places}, {site})")
        return
    if not isinstance(target, Symbol):
        raise e.reject("a call needs a function")
    number = e.functions.get(e.scope.real_name(target.name))
    if number is None:
        meaning = find_external(target.name)
        if meaning is None:
            name = target.name.replace("__cudaCDP2", "cuda")
            if name.startswith(_LAUNCHES):
                raise e.reject(
                    f"dynamic parallelism ({name}) is not emulated\n  launch the kernel from the"
                    " host, or run this code on a GPU, linked with libcudadevrt"
                )
            if name.startswith("cuda"):
                raise e.reject(f"the emulator has no {name} of CUDA's device runtime")
            raise UndefinedSymbol(e.scope.kernel, target.name, i.line)
        count, emit = meaning
        if len(argument_symbols) < count:
            raise e.reject(
                f"{target.name} takes {count} arguments, and {len(argument_symbols)} are given"
            )
        emit(e, argument_symbols, result_symbols)
        e.leave(str(e.following))
        return
    parameter_places = f"{_places(e, argument_symbols)}, {_places(e, result_symbols)}"
    e.leave(f"{e.helper(call)}(f, {number}, {e.following}, {frame}, {parameter_places})")


_operation("ret", ("",), 0, _return, effect=Effect.ENDS, modifiers=["uni"], writes=0)
_operation("exit", ("",), 0, _exit, effect=Effect.ENDS, writes=0)
operation("trap", ("",), 0, _trap, effect=Effect.ENDS, writes=0, section="trap")
operation("brkpt", ("",), 0, _trap, effect=Effect.ENDS, writes=0, section="brkpt")
_operation("brx.idx", ("",), 2, _branch_index, effect=Effect.ENDS, modifiers=["uni"], writes=0)
_operation("call", ("",), (1, 2, 3, 4), _call, effect=Effect.ENDS, modifiers=["uni"], writes=0)
operation("nanosleep", ("u32",), 1, _sleep, effect=Effect.ENDS, writes=0, section="nanosleep")
# No profiler counts the events, as on a GPU without one.
for _name in ("pmevent", "pmevent.mask"):
    operation(_name, ("",), 1, nothing, writes=0, section="pmevent")
for _name in ("inc", "dec"):
    operation(
        f"setmaxnreg.{_name}.sync.aligned", ("u32",), 1, nothing, writes=0, section="setmaxnreg"
    )
