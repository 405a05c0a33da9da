"""Libraries: images that are loaded in each context when it needs them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ptx.isa import PtxModule

if TYPE_CHECKING:
    from .contexts import Context
    from .modules import Module


@dataclass(eq=False, slots=True)
class LibraryKernel:
    """A kernel of a library, which is a function in each context.

    Attributes:
        attributes: what was set, by device and attribute, for the functions that are made later.
    """

    handle: int
    library: Library
    name: str
    attributes: dict[tuple[int, int], int] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Library:
    """An image that no context owns.

    Attributes:
        kernels: by name.
        modules: what it is in each context that has needed it.
    """

    handle: int
    image: PtxModule
    kernels: dict[str, LibraryKernel] = field(default_factory=dict)
    modules: dict[Context, Module] = field(default_factory=dict)
