"""The bounds of the memory that a pointer was made from, and accesses beyond them.

PTX has no bounds: `a + 4 * i` may lie in another array. C++ restricts a pointer to the array that
it was made from ("Additive operators"). If that array can be determined from the code, accesses
outside of it are faults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.site import Site


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a pointer: a parameter of the kernel, or a variable.

    Attributes:
        name: of the parameter or the variable.
        space: where it points to: "global", "shared" or "local".
        parameter: its offset among the kernel's parameters; -1 for a variable.
        start, end: where the variable lies; an end of 0 is that of the block's shared memory.
    """

    name: str
    space: str
    parameter: int = -1
    start: int = 0
    end: int = 0

    @property
    def shown(self) -> str:
        """Its name in messages: NVRTC names no parameter but by its number."""
        return self.name.rpartition("_param_")[2]


@dataclass(frozen=True, slots=True)
class Span:
    """Memory from `start` to below `end`.

    Attributes:
        words: its description for messages.
        is_freed: whether it is freed, so that no access is allowed.
    """

    start: int
    end: int
    words: str
    is_freed: bool = False


Origins = Mapping[Site, frozenset[Origin]]


def pointer_at(params: NDArray[np.uint8], offset: int) -> int:
    """The eight bytes of parameters from an offset on, as an address; 0 beyond their end."""
    word = params[offset : offset + 8].tobytes()
    return int.from_bytes(word, "little") if len(word) == 8 else 0


def outside(
    spans: tuple[Span, ...], every: NDArray[np.int64], site: Site
) -> tuple[int, Span] | None:
    """The first of some addresses that lies in none of the spans, and the span next to it."""
    inside = np.zeros(len(every), dtype=np.bool_)
    for span in spans:
        if span.is_freed:
            continue
        inside |= (every + site.first >= span.start) & (every + site.end <= span.end)
    if inside.all():
        return None
    position = int(np.argmin(inside))
    address = int(every[position])
    nearest = min(spans, key=lambda span: max(span.start - address, address - span.end, 0))
    return position, nearest
