"""Writes the classes of a module: enumerations, handles, structures and errors."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Iterator

from . import layout
from .annotations import Annotations, is_enum, is_handle
from .documentation import read

_ZEROS = ctypes.create_string_buffer(1 << 16)
"""Memory for a structure of any size: one made of zeros is asked what its fields give and take."""

_METHODS = {
    "__int__": "def __int__(self) -> int: ...",
    "__index__": "def __index__(self) -> int: ...",
    "__hash__": "def __hash__(self) -> int: ...",
    "__eq__": "def __eq__(self, other: object, /) -> bool: ...",
    "__ne__": "def __ne__(self, other: object, /) -> bool: ...",
    "__lt__": "def __lt__(self, other: object, /) -> bool: ...",
    "__le__": "def __le__(self, other: object, /) -> bool: ...",
    "__gt__": "def __gt__(self, other: object, /) -> bool: ...",
    "__ge__": "def __ge__(self, other: object, /) -> bool: ...",
    "__cuda_stream__": "def __cuda_stream__(self) -> tuple[int, int]: ...",
    "getPtr": "def getPtr(self) -> int: ...",
}


def definition(name: str, cls: type, annotations: Annotations) -> str:
    """The stub of one class."""
    if is_enum(cls):
        body = [f"{member} = {int(value)}" for member, value in _members(cls)]
        if not body:
            # Only so does mypy take one that is empty, as one is in some versions.
            return f"class {name}(IntEnum): ...  # type: ignore[misc]"
        return layout.class_definition(name, "IntEnum", body)
    if issubclass(cls, Exception):
        body = ["status: int", "def __init__(self, status: int) -> None: ..."]
        return layout.class_definition(name, "Exception", body)
    base = cls.__bases__[0]
    body = [*_constructor(cls), *_methods(cls), *_structure(cls, annotations)]
    # As the interpreter sees it: no class can have two of these among its bases.
    mark = "@disjoint_base\n" if cls.__basicsize__ != base.__basicsize__ else ""
    base_name = base.__name__ if base is not object else ""
    return mark + layout.class_definition(name, base_name, body)


def _members(cls: type) -> Iterator[tuple[str, int]]:
    """Names and values, aliases too, which iteration leaves out."""
    named = vars(cls)
    # A subclass of int in some versions, an IntEnum in others.
    members: dict[str, int] = named.get("__members__", named.get("_member_map_", {}))
    yield from members.items()


def _constructor(cls: type) -> list[str]:
    said = (cls.__doc__ or "").strip().split("\n")[0]
    if "*args" in said or (is_handle(cls) and cls.__base__ is object):
        parameters = ["init_value: int = 0", "_ptr: int = 0"]
    elif cls.__base__ is object:
        # A part of a structure has no memory of its own.
        parameters = ["_ptr: int = 0" if "_ptr=0" in said else "_ptr: int"]
    else:
        return []
    if "__init__" in vars(cls):
        return [layout.function("def __init__", ["self", *parameters], "None")]
    return [layout.function("def __new__", ["cls", *parameters], "Self")]


def _methods(cls: type) -> list[str]:
    return [stub for name, stub in _METHODS.items() if name in vars(cls)]


def _structure(cls: type, annotations: Annotations) -> list[str]:
    """The fields of a structure, and methods that set several of them."""
    names = [name for name, value in vars(cls).items() if inspect.isgetsetdescriptor(value)]
    if not names:
        return []
    said = read(cls.__doc__ or "")
    made = cls(_ptr=ctypes.addressof(_ZEROS))
    documented = {name: said.type_of("Attributes", name) for name in names}
    given = {name: _given(_value(made, name), documented[name], annotations) for name in names}
    fields = [_field(made, name, given[name], documented[name], annotations) for name in names]
    return [*fields, *_setters(cls, given)]


def _value(made: object, name: str) -> object:
    try:
        return getattr(made, name)
    except (KeyError, ValueError):
        # An enumeration without a member of value 0: some versions give None, some refuse.
        return None


def _given(value: object, documented: str, annotations: Annotations) -> str:
    """The type of what a field gives: seen, where there is something to see."""
    if isinstance(value, list):
        # Where it is empty: documented as a list, or as what a pointer points to.
        item = type(value[0]).__name__ if value else annotations.given(documented)
        return item if item.startswith("list[") else f"list[{item}]"
    return annotations.given(documented) if value is None else type(value).__name__


def _field(made: object, name: str, given: str, documented: str, annotations: Annotations) -> str:
    taken = annotations.taken("Any" if documented == "Any" else given)
    if _read_only(made, name):
        return f"@property\ndef {name}(self) -> {given}: ..."
    if taken == given:
        return f"{name}: {given}"
    return (
        f"@property\ndef {name}(self) -> {given}: ...\n"
        f"@{name}.setter\ndef {name}(self, value: {taken}) -> None: ..."
    )


def _read_only(made: object, name: str) -> bool:
    """Whether the field refuses what it gave, because it takes nothing."""
    try:
        setattr(made, name, _value(made, name))
    except AttributeError:
        return True
    except TypeError:
        # Such as None for an enumeration: it takes its members.
        return False
    finally:
        ctypes.memset(_ZEROS, 0, len(_ZEROS))
    return False


def _setters(cls: type, given: dict[str, str]) -> list[str]:
    """Methods that set several fields: each parameter takes what the field of its name gives."""
    written = []
    for name, value in vars(cls).items():
        if type(value).__name__ == "cython_function_or_method" and name not in _METHODS:
            fields = [parameter.name for parameter in read(value.__doc__ or "").parameters[1:]]
            parameters = [f"{field}: {given[field]}" for field in fields]
            written.append(layout.function(f"def {name}", ["self", *parameters], "None"))
    return written
