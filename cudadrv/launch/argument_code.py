"""The text that reads one argument of a launch, and what must hold for it.

`code` puts a launcher's code together from such texts.
"""

from __future__ import annotations

from collections.abc import Callable
from keyword import iskeyword
from operator import attrgetter
from typing import Final, cast

from ..interop.reader import Foreign
from .kinds import ADDRESSED, Kind, Word

# The type that most numbers have, which is seen faster, and all types that are packed as they are.
_NUMBER_TYPES: Final = {
    "whole": ("int", "WHOLE"),
    "signed": ("int", "WHOLE"),
    "real": ("float", "REALS"),
    "float": ("float", "REALS"),
}
# How memory of another home is made ready.
FOLLOW: Final = {
    "memory": "follow",
    "array": "follow",
    "vectors": "follow",
    "buffer": "follow",
    "surface": "follow",
    "tensor": "follow",
    "view": "follow_reading",
}


def reading(i: int, kind: Kind, version: int) -> tuple[str, list[str]]:
    """The value of an argument to pack, and what must hold beside."""
    if isinstance(kind, Foreign):
        return f"f{i}", _foreign_conditions(kind, f"{version}_{i}", f"a{i}", f"f{i}")
    if kind in FOLLOW:
        return _packed(i, kind), memory_conditions(i, kind)
    if kind == "foreign":
        return f"interface_address(a{i}, own_stream, producers, taken_{i})", []
    if kind == "converted":
        return f"(c{i} := convert{i}(a{i}))[0]", []
    return f"a{i}", [number_check(i, kind)]


def number_check(i: int, kind: Word) -> str:
    """The test that a number has a type that is packed as it is."""
    usual, known = _NUMBER_TYPES[kind]
    return f"(a{i}.__class__ is {usual} or a{i}.__class__ in {known})"


def _packed(i: int, kind: Word) -> str:
    """What is packed of memory or of a view of it."""
    if kind == "tensor":
        return f"a{i}._encoded"
    return f"a{i}._address" if kind in ADDRESSED else f"t{i}.number"


def _foreign_conditions(kind: Foreign, of: str, argument: str, address: str) -> list[str]:
    """The tests that an object is of the kind that its reader is for, on the launch's device."""
    conditions = [f"{argument}.__class__ is type_{of}"]
    if kind.reader.is_lazy is not None:
        conditions.append(f"not is_lazy_{of}({argument})")
    # The address comes first, as arrays of Numba and JAX know the rest then.
    found = _read(kind.reader.address, f"address_{of}", argument)
    conditions.append(f"({address} := {found})")
    if kind.dtype is not None:
        conditions.append(f"{_read(kind.reader.dtype, 'get_dtype_' + of, argument)} is dtype_{of}")
    conditions.append(f"{_read(kind.reader.device, f'device_{of}', argument)} == ordinal")
    return conditions


def _read(getter: Callable[..., object] | None, name: str, argument: str) -> str:
    """What reads a part of an object: a call of the getter, or the attribute that it would give.

    The attribute itself takes half of the time.
    """
    if type(getter) is attrgetter:
        path, *others = cast("tuple[type, tuple[str, ...]]", getter.__reduce__())[1]
        if not others and all(map(_is_name, path.split("."))):
            return f"{argument}.{path}"
    return f"{name}({argument})"


def _is_name(text: str) -> bool:
    return text.isidentifier() and not iskeyword(text)


def memory_conditions(i: int, kind: Word) -> list[str]:
    """The tests that memory or a view of it is open, ready, and what the parameter takes."""
    return [home_condition(i, kind), *memory_checks(i, kind)]


def home_condition(i: int, kind: Word, own: str = "own") -> str:
    """The test that memory is open and ready; it holds the memory's box."""
    box = "_box" if kind in ADDRESSED else "buffer._box"
    return f"((m{i} := a{i}.{box}).home is {own} or {FOLLOW[kind]}(m{i}))"


def memory_checks(i: int, kind: Word) -> list[str]:
    """The tests that memory is what the parameter takes, or that a view is open; they hold that."""
    conditions = []
    if kind in ("view", "surface"):
        conditions.append(f"(t{i} := a{i}._box).number is not None")
    elif kind in ("array", "vectors"):
        # Only of our own memory: who knows what another object has for a dtype.
        conditions.append(f"(a{i}.dtype is usual_{i} or a{i}.dtype in taken_{i})")
    elif kind == "buffer":
        conditions.append(f"a{i}.__class__ is DeviceBuffer")
    if kind == "vectors":
        conditions.append(f"not a{i}.nbytes % nbytes_{i}")
    return conditions
