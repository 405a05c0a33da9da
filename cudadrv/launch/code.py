"""The code of launches, generated for the kinds of their arguments.

The code checks that each memory is ordered on the launch's stream, and that numbers are numbers.
Packing checks the rest. A failed check leads to the slow path, which makes the error.

Stream and module are not checked: closing one of them, and a capture, removes this code from the
launcher. Local names hold all memory until the launch is queued, and the slot holds stream and
module, since another thread may close them meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from keyword import iskeyword
from operator import attrgetter
from types import CodeType, FunctionType
from typing import Final, TypeAlias, cast

from ..driver.stream import BaseStream
from ..interop.elements import named_dtype
from ..interop.reader import ByInterface, Foreign, Reader
from ..memory.buffer import DeviceBuffer
from .arguments import ADDRESSED, NUMBERS, Argument, KernelParameter, Kind, Word
from .host_arguments import In
from .parameters import packer
from .scalars import LARGEST_SINGLE, REALS, WHOLE, fits_single

# The test that struct packs a number unchanged; the most frequent type comes first. struct would
# pack a float that is out of range of a float32 as infinity.
_NUMBER_TESTS: Final = {
    "whole": "({0}.__class__ is int or {0}.__class__ in WHOLE)",
    "signed": "({0}.__class__ is int or {0}.__class__ in WHOLE)",
    "bool": "{0}.__class__ is bool",
    "single": "({0}.__class__ is float and "
    f"{-LARGEST_SINGLE!r} <= {{0}} <= {LARGEST_SINGLE!r} or fits_single({{0}}))",
    "real": "({0}.__class__ is float or {0}.__class__ in REALS)",
}
# How memory that is ordered on another stream is made ready. That of a pointer, by its number: a
# pointer to const also takes read-only memory.
FOLLOW: Final = {
    **dict.fromkeys(("memory", "array", "vectors", "buffer"), "follow{}"),
    "surface": "follow",
    "tensor": "follow_const",
    "view": "follow_reading",
    "read": "follow_reading",
}


def reading(i: int, kind: Kind, version: int) -> tuple[str, list[str]]:
    """Return the value of an argument to pack, and the conditions that must hold for it."""
    if isinstance(kind, Foreign):
        return f"f{i}", _foreign_conditions(kind, f"{version}_{i}", f"a{i}", f"f{i}")
    if kind in FOLLOW:
        return _packed(i, kind), memory_conditions(i, kind)
    if isinstance(kind, ByInterface):
        # Another type may have a reader, or be our own: its interface tells less of its elements.
        address = f"interface_address(a{i}, own_stream, producers, taken_{i})"
        is_read = f"(f{i} := {address}) is not None"
        return f"f{i}", [f"a{i}.__class__ is type_{version}_{i}", is_read]
    if kind == "raw":
        return f"c{i}[0]", [f"(c{i} := convert{i}(a{i}))"]
    return f"a{i}", [number_check(i, kind)]


def number_check(i: int, kind: Word) -> str:
    """Return the test that a number has a type that is packed unchanged."""
    return _NUMBER_TESTS[kind].format(f"a{i}")


def _packed(i: int, kind: Word) -> str:
    """Return the expression that is packed for memory or a view of it."""
    if kind == "tensor":
        return f"a{i}._encoded"
    if kind == "read":
        return f"a{i}._array._address"
    return f"a{i}._address" if kind in ADDRESSED else f"t{i}.number"


def _foreign_conditions(kind: Foreign, suffix: str, argument: str, address: str) -> list[str]:
    """Return the tests that an object matches its reader's kind, on the launch's device."""
    conditions = [f"{argument}.__class__ is type_{suffix}"]
    if kind.reader.is_lazy is not None:
        conditions.append(f"not is_lazy_{suffix}({argument})")
    # The address comes first: arrays of Numba and JAX have the rest only after it is read.
    address_read = _read(kind.reader.address, f"address_{suffix}", argument)
    conditions.append(f"({address} := {address_read})")
    if kind.reader.is_contiguous is not None:
        conditions.append(_read(kind.reader.is_contiguous, f"is_contiguous_{suffix}", argument))
    if callable(kind.reader.is_read_only):
        is_read_only = _read(kind.reader.is_read_only, f"is_read_only_{suffix}", argument)
        conditions.append(f"(is_const_{suffix} or not {is_read_only})")
    if kind.dtype is not None:
        conditions.append(
            f"{_read(kind.reader.dtype, 'get_dtype_' + suffix, argument)} is dtype_{suffix}"
        )
    conditions.append(f"{_read(kind.reader.device, f'device_{suffix}', argument)} == ordinal")
    return conditions


def _read(getter: Callable[..., object] | None, name: str, argument: str) -> str:
    """Return the expression that reads a part of an object: a call of the getter, or its attribute.

    Reading the attribute directly takes half of the time.
    """
    if type(getter) is attrgetter:
        path, *other_paths = cast("tuple[type, tuple[str, ...]]", getter.__reduce__())[1]
        if not other_paths and all(map(_is_name, path.split("."))):
            return f"{argument}.{path}"
    return f"{name}({argument})"


def _is_name(text: str) -> bool:
    return text.isidentifier() and not iskeyword(text)


def memory_conditions(i: int, kind: Word) -> list[str]:
    """Return the tests that memory or a view of it is open, ready, and fits the parameter."""
    return [home_condition(i, kind), *memory_checks(i, kind)]


# The handle of memory that is neither an array's own nor a buffer's.
_HANDLES: Final = {"read": "_array._handle"}


def home_condition(i: int, kind: Word, stream_name: str = "own") -> str:
    """Return the test that memory is open and ready; it holds the memory's handle."""
    handle = "_handle" if kind in ADDRESSED else _HANDLES.get(kind, "buffer._handle")
    follow = FOLLOW[kind].format(i)
    return f"((m{i} := a{i}.{handle}).ordered_on is {stream_name} or {follow}(m{i}))"


def memory_checks(i: int, kind: Word) -> list[str]:
    """Return the tests that memory fits the parameter, or a view is open; they hold the handle."""
    conditions = []
    if kind in ("view", "surface"):
        conditions.append(f"(t{i} := a{i}._handle).number is not None")
    elif kind == "read":
        array = f"a{i}._array"
        conditions.append(f"a{i}.__class__ is In")
        conditions.append(
            f"(taken_{i} is None or {array}._dtype in taken_{i}"
            f" and not {array}._nbytes % nbytes_{i})"
        )
    elif kind in ("array", "vectors"):
        # Only for our own memory: another object's dtype may be of any type.
        conditions.append(f"(a{i}._dtype is usual_{i} or a{i}._dtype in taken_{i})")
    elif kind == "buffer":
        conditions.append(f"a{i}.__class__ is DeviceBuffer")
    if kind == "vectors":
        conditions.append(f"not a{i}._nbytes % nbytes_{i}")
    return conditions


def general_names(
    parameters: Sequence[KernelParameter],
    convert: Callable[[KernelParameter, object], tuple[bytes, Argument]] | None = None,
) -> dict[str, object]:
    """Return the globals for arguments of all kinds; `convert` handles arguments that pass no
    test, if there is one."""
    names: dict[str, object] = {
        "int": int,
        "float": float,
        "bool": bool,
        "WHOLE": WHOLE,
        "REALS": REALS,
        "fits_single": fits_single,
        "DeviceBuffer": DeviceBuffer,
        "In": In,
    }
    for number, parameter in enumerate(parameters):
        if convert is not None:
            names[f"convert{number}"] = partial(convert, parameter)
        elements = names[f"taken_{number}"] = parameter.elements
        if elements is not None:
            names[f"usual_{number}"] = named_dtype(elements.usual)
            names[f"nbytes_{number}"] = elements.nbytes
    return names


def number_names(
    parameters: Sequence[KernelParameter], kinds: tuple[Kind, ...], version: int
) -> dict[str, object]:
    """Return the globals for numbers among arrays, with their packers for unchanged arrays."""
    numbers = [i for i, kind in enumerate(kinds) if kind in NUMBERS]
    if not numbers:
        return {}
    between = slice(numbers[0], numbers[-1] + 1)
    start, last = parameters[numbers[0]].param.offset, parameters[numbers[-1]].param
    fitting = packer(parameters[between], kinds[between], last.offset + last.nbytes, start)
    return {f"numbers_{version}": fitting.pack_into, f"start_{version}": start}


def foreign_names(
    parameters: Sequence[KernelParameter],
    kinds: tuple[Kind, ...],
    version: int,
    stream: BaseStream,
) -> dict[str, object]:
    """Return the globals for arguments that are other libraries' memory."""
    types = {
        i: kind.type for i, kind in enumerate(kinds) if isinstance(kind, (Foreign, ByInterface))
    }
    if not types:
        return {}
    from ..interop import foreign, ordering  # loaded already, by such an argument

    names: dict[str, object] = {
        "interface_address": foreign.interface_address,
        "follow_producer": ordering.follow_producer,
        "follow_producers": ordering.follow_producers,
        "before": ordering.needs_no_wait(stream),
        "ordinal": stream.context.ordinal,
        "Exception": Exception,
    }
    names |= {f"type_{version}_{i}": kind for i, kind in types.items()}
    foreign_kinds = [(i, kind) for i, kind in enumerate(kinds) if isinstance(kind, Foreign)]
    for i, (_, reader, dtype) in foreign_kinds:
        suffix = f"{version}_{i}"
        names |= {
            f"get_dtype_{suffix}": reader.dtype,
            f"dtype_{suffix}": dtype,
        }
        names |= {f"device_{suffix}": reader.device, f"address_{suffix}": reader.address}
        names[f"is_lazy_{suffix}"] = reader.is_lazy
        names[f"is_contiguous_{suffix}"] = reader.is_contiguous
        names[f"is_read_only_{suffix}"] = reader.is_read_only
        names[f"is_const_{suffix}"] = parameters[i].is_const
    for number, reader in enumerate(readers_of(kinds)):
        names[f"stream_{version}_{number}"] = reader.stream
    return names


# A call under way holds `kept`, its globals; see `launcher._slow`. The unreachable line makes it a
# variable of the closure, and costs no time.
_LAUNCHER: Final = """
def closure(kept):
    def launcher({defaults}*rest):
        if False:
            kept
        {launch}
    return launcher
"""
_KERNEL_LAUNCH: Final = """
def closure(kept):
    def launch(stream, config, {defaults}*rest):
        if False:
            kept
        if stream is own_stream and (config is own_config or is_own_config(config) is True):
            {launch}
        else:
            launch_elsewhere(stream, config, {names}*rest)
    return launch
"""
# Names that end in a number belong to one version of the code: a thread that still runs a former
# version finds its own.
#
# A launch under way has a slot, which a capture waits for before it begins. So a slot that is taken
# is returned, in an interrupt too; once, so the name is cleared first. While it has the slot, a
# launch runs nothing that may wait for that capture: no code of users, no order after streams.
_LAUNCH: Final = """
slot = None
try:
    try:{order}
        # A failed condition gives False, which has no `last_values`: an AttributeError.
        slot = {ready} and pop_{version}()
        {fill}
    except {errors}:
        if slot:
            slot.last_values = None
            unused, slot = slot, None
            push_{version}(unused)
        slot = None
    if slot is not None:
        # Not as a method, which the interpreter would look for in the class.
        call = slot.call
        code = call()[0]
except INTERRUPTS:
    if slot:
        slot.last_values = None
        push_{version}(slot)
    raise
if slot is not None:
    push_{version}(slot)
    if code:
        fail(code)
else:
    slow_path({names}*rest)
"""
_FILL: Final = """
slot.last_values = None
pack_{version}(slot.buffer, 0{values})
"""
# The memo of launches. Most launches get the same objects as the one before, whose values are still
# in the slot and were checked then. So nothing is checked or packed. A number is the same if it is
# the same object, and an array if its address is: that object belongs to one memory and one dtype.
#
# Memory that moves to another stream, or is about to be closed, first changes `home_version` of its
# stream, so the handles are read before that. Values are cached once the first array was the same
# twice, and not again for 16 launches after a miss, so that changing arguments cost little.
#
# It stays because most programs launch the same arrays again. Measured on a driver that does
# nothing, in its bare calls (CPython 3.11, one process, in turns), with the memo and without it:
#
#     parameters                          1             5             20
#     the same objects                    1.33  1.50    1.77  2.46    3.10  4.77
#     another number each time                          2.42  2.49    4.83  4.78
#     another array each time             1.81  1.61    2.62  2.44    4.94  4.80
#
# An H200's bare call takes 3.84 us, by an earlier run. With 20 parameters a launch takes 1.17 of it
# without the memo and 1.09 with it; the target is 1.15.
_FILL_AGAIN: Final = """
home = own
if (last := slot.last_values) is not None:
    {hold}
    if {same_arrays} and slot.home_version is home.home_version:{numbers}
    else:
        slot.last_values = last = None
        slot.retry_in = 16
if last is None:
    if not ({held_at_home}):
        unused, slot = slot, None
        push_{version}(unused)
        if not ({homes}):
            raise WRONG
        slot = pop_{version}()
        slot.last_values = None
    if not ({checks}):
        raise WRONG
    pack_{version}(slot.buffer, 0{values})
    if a{first}._address is not slot.first_address:
        slot.first_address = a{first}._address
    elif slot.retry_in:
        slot.retry_in -= 1
    else:
        slot.home_version = home.home_version
        if {at_home}:
            slot.last_values = {found}
"""
_FILL_NUMBERS: Final = """
if {other_numbers}:
    if not ({number_checks}):
        raise WRONG
    numbers_{version}(slot.buffer, start_{version}{numbers})
    slot.last_values = {changed}
"""
# Other libraries' memory is read again at each launch: only its packed value is cached. No other
# code than this reads the values that it stores, as the kinds of a launcher only become more
# general.
_FILL_OTHERWISE: Final = """
{hold}if (last := slot.last_values) is None or {differs}:
    if not ({number_checks}):
        raise WRONG
    pack_{version}(slot.buffer, 0{values})
    slot.last_values = {found} if {are_numbers} else None
"""
_PREPARED: Final = """
def prepared():
    if {conditions}:
        call = None
        try:
            call = pop()
            code = call()[0]
        except NO_CALL:
            if call is not None:  # the driver's
                push(call)
                raise
        except INTERRUPTS:
            if call is not None:
                push(call)
            raise
        else:
            push(call)
            if code:
                fail(code)
            return
    slow_path()
"""
# Packs arguments of known kinds, and returns their names in a prepared launch, and the handles of
# their memory; None if a check fails. Memory must be ordered on the stream already.
_PACKING: Final = """
def pack(own, buffer, {names}):
    try:
        if {conditions}:
            pack_into(buffer, 0{values})
            return {{{scope}}}, ({handles})
    except ARGUMENT_ERRORS:
        pass
    return None
"""
LaunchCode: TypeAlias = tuple[CodeType, CodeType]
"""The code of a launcher and of `Kernel.launch`; the code that runs them provides their globals."""


@lru_cache(maxsize=256)
def launch_code(kinds: tuple[Kind, ...], version: int) -> LaunchCode:
    """Return the code for arguments of these kinds.

    Its globals are those of `LauncherState._names`, `general_names`, `number_names` and
    `foreign_names`; names that end in the version come from `LauncherState._generate`.
    """
    names = "".join(f"a{i}, " for i in range(len(kinds)))
    conditions, fill = _filling(kinds, version)
    by_interface = _has_interface(kinds)
    has_foreign = any(isinstance(kind, Foreign) for kind in kinds)
    ready, order = _all(["not rest", *conditions]), _ordering(kinds, version)
    if order:
        ready, order = "True", f"\n        if not ({ready}):\n            raise WRONG{order}"
    launch = _LAUNCH.strip().format(
        version=version,
        ready=ready,
        fill=fill.strip().replace("\n", "\n        "),
        names=names,
        # A launch waits once for each stream that its memory comes from.
        order=("\n        producers = []" if by_interface else "") + order,
        # Other libraries' objects may raise anything.
        errors="Exception" if by_interface or has_foreign else "ARGUMENT_ERRORS",
    )
    fields = {"defaults": names.replace(",", "=MISSING,"), "names": names}
    codes: list[CodeType] = []
    for template, indent in ((_LAUNCHER, 8), (_KERNEL_LAUNCH, 12)):
        text = template.format(launch=launch.replace("\n", "\n" + " " * indent), **fields)
        scope: dict[str, Callable[[object], FunctionType]] = {}
        # The text holds only names made here; the code that runs it provides the defaults.
        exec(compile(text, "<cudadrv launcher>", "exec"), {"MISSING": None}, scope)
        codes.append(scope["closure"](None).__code__)
    return codes[0], codes[1]


@lru_cache(maxsize=256)
def prepared_code(kinds: tuple[Kind, ...]) -> CodeType:
    """Return the code of a prepared launch with memory of these kinds.

    Its globals are: the arguments a0, a1 and so on, pop, push, slow_path, fail, own, NO_CALL,
    INTERRUPTS, and the names that begin with follow.
    """
    conditions = []
    for i, kind in enumerate(kinds):
        if not isinstance(kind, Foreign) and kind in FOLLOW:
            # An array's dtype never changes, nor the array of an `In`.
            if kind == "read":
                conditions.append(home_condition(i, kind))
            else:
                conditions += memory_conditions(i, "memory" if kind in ADDRESSED else kind)
    scope: dict[str, FunctionType] = {}
    text = _PREPARED.format(conditions=_all(conditions))
    exec(compile(text, "<cudadrv prepared launch>", "exec"), {}, scope)
    return scope["prepared"].__code__


@lru_cache(maxsize=256)
def packing_code(kinds: tuple[Kind, ...]) -> CodeType | None:
    """Return the code that packs arguments of these kinds; None if it knows one of them not.

    Its globals are `general_names`, pack_into and ARGUMENT_ERRORS.
    """
    conditions, values, scope, handles = [], "", "", ""
    for i, kind in enumerate(kinds):
        if kind in NUMBERS:
            conditions.append(number_check(i, cast("Word", kind)))
            values += f", a{i}"
        elif kind in ADDRESSED:
            conditions.append(f"(m{i} := a{i}._handle).ordered_on is own")
            conditions += memory_checks(i, cast("Word", kind))
            values += f", a{i}._address"
            scope += f"'a{i}': a{i}, "
            handles += f"m{i}, "
        else:
            return None
    names = "".join(f"a{i}, " for i in range(len(kinds)))
    made: dict[str, FunctionType] = {}
    fields = {"names": names, "values": values, "scope": scope, "handles": handles}
    text = _PACKING.format(conditions=_all(conditions), **fields)
    exec(compile(text, "<cudadrv prepare>", "exec"), {}, made)
    return made["pack"].__code__


def readers_of(kinds: Sequence[Kind]) -> list[Reader]:
    """Return the readers of some kinds that have a stream, each once, in their numbers' order."""
    readers = (kind.reader for kind in kinds if isinstance(kind, Foreign))
    return [reader for reader in dict.fromkeys(readers) if reader.stream is not None]


def _ordering(kinds: Sequence[Kind], version: int) -> str:
    """Return the text that lets the stream wait for other libraries' streams, once for each."""
    text = ""
    for number in range(len(readers_of(kinds))):
        text += f"\n        if (s := stream_{version}_{number}(ordinal)) not in before:"
        text += "\n            follow_producer(own_stream, s)"
    if _has_interface(kinds):
        text += "\n        if producers:\n            follow_producers(own_stream, producers)"
    return text


def _has_interface(kinds: Sequence[Kind]) -> bool:
    return any(isinstance(kind, ByInterface) for kind in kinds)


def _filling(kinds: Sequence[Kind], version: int) -> tuple[list[str], str]:
    """Return the conditions for taking a slot, and the text that fills it."""
    arrays = [i for i, kind in enumerate(kinds) if kind in ADDRESSED]
    numbers = [i for i, kind in enumerate(kinds) if kind in NUMBERS]
    foreign = [i for i, kind in enumerate(kinds) if isinstance(kind, Foreign)]
    if foreign and len(arrays) + len(numbers) + len(foreign) == len(kinds):
        return _filling_with_theirs(kinds, version)
    if not arrays or len(arrays) + len(numbers) < len(kinds):
        return _refilling(kinds, version)
    checks = [check for i in arrays for check in memory_checks(i, cast("Word", kinds[i]))]
    number_checks = [number_check(i, cast("Word", kinds[i])) for i in numbers]
    fields = {
        "version": version,
        "first": arrays[0],
        "hold": "; ".join(f"m{i} = a{i}._handle" for i in arrays),
        "same_arrays": _all([f"a{i}._address is last[{i}]" for i in arrays]),
        "numbers": " pass",
        "homes": _all([home_condition(i, cast("Word", kinds[i]), "home") for i in arrays]),
        "checks": _all([*checks, *number_checks]),
        "values": _for_each_argument(kinds, ", a{}._address", ", a{}"),
        # Checked again, as one may have been closed before `home_version` was read. Memory of a
        # peer is not ordered on the stream, and if a launch orders nothing, no memory has to be.
        "at_home": _all([f"a{i}._handle.ordered_on is home" for i in arrays]),
        "held_at_home": _all([f"(m{i} := a{i}._handle).ordered_on is home" for i in arrays]),
        "found": f"({_for_each_argument(kinds, 'a{}._address or None, ', 'a{}, ')})",
    }
    if numbers:
        between = range(numbers[0], numbers[-1] + 1)
        text = _FILL_NUMBERS.rstrip().format(
            version=version,
            other_numbers=" or ".join(f"a{i} is not last[{i}]" for i in numbers),
            number_checks=_all(number_checks),
            numbers="".join(f", a{i}" if i in numbers else f", a{i}._address" for i in between),
            changed=f"({_for_each_argument(kinds, 'a{}._address, ', 'a{}, ')})",
        )
        fields["numbers"] = text.replace("\n", "\n        ")
    return [], _FILL_AGAIN.format(**fields)


def _refilling(kinds: Sequence[Kind], version: int) -> tuple[list[str], str]:
    """Return the same for arguments of any kind, without values cached from the last launch."""
    values, ready = "", []
    for i, kind in enumerate(kinds):
        value, conditions = reading(i, kind, version)
        values += f", {value}"
        ready += conditions
    return ready, _FILL.format(version=version, values=values)


def _filling_with_theirs(kinds: Sequence[Kind], version: int) -> tuple[list[str], str]:
    """Return the same for other libraries' memory that has a reader, with arrays and numbers."""
    ready, hold, number_checks, differs, are_numbers = [], "", [], [], []
    for i, kind in enumerate(kinds):
        if kind in NUMBERS:
            number_checks.append(number_check(i, cast("Word", kind)))
            differs.append(f"a{i} is not last[{i}]")
            continue
        _, conditions = reading(i, kind, version)
        ready += conditions
        differs.append(f"f{i} != last[{i}]")
        # A value of another type may change by itself, and may hold the memory.
        are_numbers.append(f"f{i}.__class__ is int")
        if kind in ADDRESSED:
            # Once, so that the cached value is the packed one: another thread may close the array.
            hold += f"f{i} = a{i}._address\n"
    return ready, _FILL_OTHERWISE.format(
        version=version,
        hold=hold,
        differs=" or ".join(differs),
        number_checks=_all(number_checks),
        are_numbers=_all(are_numbers),
        values=_for_each_argument(kinds, ", f{}", ", a{}"),
        found=f"({_for_each_argument(kinds, 'f{}, ', 'a{}, ')})",
    )


def _all(conditions: Sequence[str]) -> str:
    return " and ".join(conditions) or "True"


def _for_each_argument(kinds: Sequence[Kind], array: str, number: str) -> str:
    """Return the text for each argument, which is an array or a number."""
    texts = (number if kind in NUMBERS else array for kind in kinds)
    return "".join(text.format(i) for i, text in enumerate(texts))
