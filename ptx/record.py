"""Immutable values of named fields, whose classes cost next to nothing to make at a start.

A named tuple costs 0.1 ms and a dataclass 0.5 ms each, as much as reading the whole module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

if TYPE_CHECKING:
    from dataclasses import Field


class _Fields:
    """What makes a class one of `dataclasses`, made when that module asks for it."""

    def __get__(self, instance: object, owner: type[Record]) -> dict[str, Field[Any]]:
        from dataclasses import fields, make_dataclass

        return {field.name: field for field in fields(make_dataclass("_", owner.__slots__))}


class Record:
    """A value of the fields in `__slots__`, which a class takes in that order and sets once.

    Equality, hash and pickle go by the fields. `dataclasses` takes it for a frozen dataclass, so
    that its `replace` and Python's `copy.replace` give a changed copy, checked as a new one is.
    """

    __slots__: tuple[str, ...] = ()
    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, Field[Any]]]  # Any: of fields of any type
    else:
        __dataclass_fields__ = _Fields()

    def set_fields(self, *values: object) -> None:
        """Set all fields, in their order; for `__init__` alone."""
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)

    def values(self) -> tuple[Any, ...]:  # Any: of every field's type
        """The values of the fields, in their order."""
        return tuple(getattr(self, name) for name in self.__slots__)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __repr__(self) -> str:
        given = (f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({', '.join(given)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self.values() == other.values()

    def __hash__(self) -> int:
        return hash(self.values())

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        return type(self), self.values()

    def __replace__(self, **changes: Any) -> Self:  # Any: checked as they are set
        return type(self)(**dict(zip(self.__slots__, self.values(), strict=True)) | changes)
