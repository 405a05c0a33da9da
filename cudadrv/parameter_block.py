"""Memory for the parameters of one launch, as cuLaunchKernel reads them."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence

from .arguments import Kind, Parameter


class ParameterBlock:
    """Memory for one launch's parameters, and the pointer array that the driver reads."""

    __slots__ = ("_pointers", "_view", "address", "buffer")

    def __init__(self, offsets: Sequence[int], nbytes: int) -> None:
        # Of what is loaded anyway, the buffer that struct fills fastest. The view holds its place.
        self.buffer = bytearray(max(nbytes, 1))
        self._view = ctypes.c_char.from_buffer(self.buffer)
        base = ctypes.addressof(self._view)
        self._pointers = (ctypes.c_void_p * max(len(offsets), 1))(
            *(base + offset for offset in offsets)
        )
        self.address = ctypes.addressof(self._pointers) if offsets else 0


def packer(parameters: Sequence[Parameter], kinds: Sequence[Kind], nbytes: int) -> struct.Struct:
    """The packer of a parameter block: each value at its offset, padding between."""
    text, end = "=", 0
    for parameter, kind in zip(parameters, kinds, strict=True):
        gap = parameter.param.offset - end
        text += f"{gap}x" * (gap > 0) + parameter.code(kind)
        end = parameter.param.offset + parameter.param.nbytes
    return struct.Struct(text + f"{nbytes - end}x" * (nbytes > end))
