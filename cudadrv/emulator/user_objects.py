"""User objects: resources of the user that live as long as graphs refer to them.

CUDA Programming Guide, "CUDA User Objects".
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False, slots=True)
class UserObject:
    """A user object.

    Attributes:
        pointer: what the destructor is called with.
        destructor: address of a `void (*)(void *)`.
        owned: references that the caller of the driver has.
        count: all references; with the last one the object is gone.
    """

    handle: int
    pointer: int
    destructor: int
    owned: int
    count: int


# How many references a graph, an executable or a launch has to each object.
References = dict[UserObject, int]
