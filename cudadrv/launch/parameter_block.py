"""Where a launch's parameters are packed, and what packs them."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Final

from .arguments import Parameter
from .kinds import ADDRESSES, Kind

# An address of the device. It is packed in half the time of a whole number of 64 bits (Q), as it is
# not checked for a sign: only what cudadrv made is packed so.
_ADDRESS_CODE: Final = "P"


class ParameterBlock:
    """Memory for one launch's parameters, and behind them the pointers that the driver reads."""

    __slots__ = ("_view", "address", "buffer")

    def __init__(self, offsets: Sequence[int], nbytes: int) -> None:
        # Of what is loaded anyway, the buffer that struct fills fastest. The view holds its place.
        start = -(-max(nbytes, 1) // 8) * 8
        self.buffer: bytearray = bytearray(start + 8 * len(offsets))
        self._view = ctypes.c_char.from_buffer(self.buffer)
        base = ctypes.addressof(self._view)
        pointers = (base + offset for offset in offsets)
        struct.pack_into(f"={len(offsets)}Q", self.buffer, start, *pointers)
        self.address: int = base + start if offsets else 0


def packer(parameters: Sequence[Parameter], kinds: Sequence[Kind], nbytes: int) -> struct.Struct:
    """The packer of a parameter block: each value at its offset, padding between."""
    # struct aligns native codes itself, and knows only there an address.
    native = all(_is_aligned(parameter) for parameter in parameters)
    text, end = "@" if native else "=", 0
    for parameter, kind in zip(parameters, kinds, strict=True):
        gap = parameter.param.offset - end
        code = _ADDRESS_CODE if native and kind in ADDRESSES else parameter.code(kind)
        text += f"{gap}x" * (gap > 0) + code
        end = parameter.param.offset + parameter.param.nbytes
    return struct.Struct(text + f"{nbytes - end}x" * (nbytes > end))


def _is_aligned(parameter: Parameter) -> bool:
    """Whether a parameter lies where struct would put a value of its size."""
    nbytes = parameter.param.nbytes
    return nbytes not in (2, 4, 8) or parameter.param.offset % nbytes == 0
