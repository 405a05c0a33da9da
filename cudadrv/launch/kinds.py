"""The kinds of arguments: how a launch reads a value of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias

import numpy as np

from ..driver.context import BaseContext
from ..driver.handle import AnyHandle
from ..interop.reader import Foreign
from ..memory.order import AnyMemory

Packable: TypeAlias = int | float | bytes
_NUMPY_SCALARS: Final[frozenset[type]] = frozenset(np.sctypeDict.values())
# The types that struct packs by their value: any other may have an index that is an address, or be
# complex and lose a part.
WHOLE: Final[frozenset[type]] = frozenset(
    {int, bool, *(t for t in _NUMPY_SCALARS if issubclass(t, np.integer))}
)
REALS: Final[frozenset[type]] = WHOLE | {
    float,
    *(t for t in _NUMPY_SCALARS if issubclass(t, np.floating)),
}


Word: TypeAlias = Literal[
    "memory",  # our device memory, whose home must be the launch's stream
    "array",  # the same as an array, whose dtype must be what the parameter points to
    "vectors",  # such an array of whole vectors, as of a float4
    "buffer",  # the same without a dtype, where the parameter has one
    "whole",  # an integer of one of the types in `WHOLE`
    "signed",  # such a negative integer, packed with the signed code
    "real",  # a number of one of the types in `REALS`, for a float
    "float",  # such a number for a parameter whose text says only bits
    "foreign",  # memory of another library, by the CUDA array interface
    "view",  # a texture, which reads its memory; its box has its number
    "surface",  # a surface, which may write its memory; likewise
    "tensor",  # a tensor map, which may write its memory; it has its bytes
    "raw",  # anything else, which is packed into bytes first
]
Kind: TypeAlias = Word | Foreign
"""How a launcher reads an argument; the fast path is generated for the kinds it has seen.

Memory of other libraries is of one kind for each type that has a reader.
"""
ADDRESSED: Final[frozenset[Kind]] = frozenset(("memory", "array", "vectors", "buffer"))
"""Device memory of ours, whose address is packed."""
NUMBERS: Final[frozenset[Kind]] = frozenset(("whole", "signed", "real", "float"))
"""Numbers, which struct packs by their value."""
ADDRESSES: Final[frozenset[Kind]] = ADDRESSED | {"view", "surface"}
"""What is packed as an address or a number that the driver gave: 64 bits, never less than 0."""


if TYPE_CHECKING:  # making a protocol takes a start longer than most modules

    class View(Protocol):
        """A texture or surface, as far as a launch goes."""

        context: BaseContext
        # How it uses its memory.
        _is_written: bool

        @property
        def handle(self) -> int:
            """The object's number."""

        @property
        def _memory(self) -> AnyMemory: ...

        @property
        def _opened(self) -> AnyHandle: ...

    class Tensor(Protocol):
        """A tensor map, as far as a launch goes."""

        context: BaseContext
        # The bytes that are packed; no other class has this name.
        _encoded: bytes

        @property
        def _memory(self) -> AnyMemory: ...


class Argument:
    """A value ready for struct, the kind it was, and what the launch must order and hold.

    Attributes:
        value: what is packed.
        kind: how generated code reads such a value.
        memory: our memory that it stands for, if it does.
        writes: whether the kernel may write that.
        holds: what must live until the launch is queued, and as long as a graph of it.
    """

    __slots__ = ("holds", "kind", "memory", "value", "writes")

    def __init__(
        self,
        value: Packable,
        kind: Kind,
        memory: AnyMemory | None = None,
        *,
        writes: bool = True,
        holds: object = None,
    ) -> None:
        self.value: Packable = value
        self.kind: Kind = kind
        self.memory: AnyMemory | None = memory
        self.writes: bool = writes
        self.holds: object = holds
