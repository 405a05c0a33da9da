"""Attributes that users read and do not assign.

A public attribute `name` is a property over the private slot `_name`, which the library's own code
assigns. So an assignment to `name` raises `AttributeError`, as one to an unknown name does in a
class with slots. Hot code reads the slot, which is faster.
"""

from __future__ import annotations

from operator import attrgetter
from types import GenericAlias
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, ClassVar, Generic, Never, Self, TypeVar, overload

    _T_co = TypeVar("_T_co", covariant=True)

    class ReadOnly(Generic[_T_co]):
        """An attribute that is read from a slot."""

        def __init__(self, slot: str) -> None: ...
        @overload
        def __get__(self, owner: None, kind: type) -> Self: ...
        @overload
        def __get__(self, owner: object, kind: type | None = None) -> _T_co: ...
        # The overloads have the types.
        def __get__(self, owner: object, kind: type | None = None) -> Any: ...
        # No value has this type, so that a checker reports each assignment.
        def __set__(self, owner: object, value: Never) -> None: ...

else:

    class ReadOnly(property):
        """An attribute that is read from a slot."""

        __class_getitem__ = classmethod(GenericAlias)

        def __init__(self, slot):
            # In C, at a third of the cost of a function. The class's docstring has the text.
            super().__init__(attrgetter(slot), doc="")


class Guarded:
    """A class whose objects have a `__dict__`, for cached properties or for a base class.

    Users set its public attributes only by properties that have a setter.

    Attributes:
        _settable: beginnings of the names that may be set.
    """

    __slots__ = ()

    _settable: ClassVar[tuple[str, ...]] = ("_",)

    if not TYPE_CHECKING:  # a type checker would accept every name

        def __setattr__(self, name, value):
            if not (
                name.startswith(self._settable)
                or getattr(getattr(type(self), name, None), "fset", None)
            ):
                raise AttributeError(f"{name} of a {type(self).__name__} cannot be set")
            super().__setattr__(name, value)

        def __delattr__(self, name):
            if not name.startswith(self._settable):
                raise AttributeError(f"{name} of a {type(self).__name__} cannot be deleted")
            super().__delattr__(name)
