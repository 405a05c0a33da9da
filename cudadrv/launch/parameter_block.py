"""Where a launch's parameters are packed, and what packs them."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ..driver._api import CUresult
from ..driver.context_handle import ModuleHandle
from ..driver.stream_handle import StreamHandle
from .arguments import Parameter
from .kinds import ADDRESSES, Kind

# An address of the device. It is packed in half the time of a whole number of 64 bits (Q), as it is
# not checked for a sign: only what cudadrv made is packed so.
_ADDRESS_CODE: Final = "P"


# A driver call with all its arguments, handles among them.
DriverCall: TypeAlias = Callable[[], tuple[CUresult]]


class ParameterBlock:
    """Memory for one launch's parameters, and behind them the pointers that the driver reads."""

    __slots__ = ("_view", "address", "buffer")

    def __init__(self, offsets: Sequence[int], nbytes: int) -> None:
        # Of what is loaded anyway, the buffer that struct fills fastest. The view holds its place.
        start = -(-max(nbytes, 1) // 8) * 8
        self.buffer: bytearray = bytearray(start + 8 * len(offsets))
        self._view = ctypes.c_char.from_buffer(self.buffer)
        base = ctypes.addressof(self._view)
        pointers = [base + offset for offset in offsets]
        struct.pack_into(f"={len(offsets)}Q", self.buffer, start, *pointers)
        self.address: int = base + start if offsets else 0


class LaunchSlot:
    """What one launch at a time uses: where parameters are packed, the call, what lives for it.

    Attributes:
        buffer: where parameters are packed.
        call: launches with what is packed.
        parameters: what has the buffer.
        stream: where the call launches.
        module: where the kernel is.
        packed: of each argument that is packed, the array's address or the number, as objects;
            None while nothing is known. The same object in its place is the same value, and an
            address that is not 0 is one object only for arrays of one memory and dtype.
        left: of the stream, as all arrays in `packed` had their home there.
        first: the address of the first array at the last launch, as an object.
        patience: how many launches are to come before something is known again.
    """

    __slots__ = (
        "buffer",
        "call",
        "first",
        "left",
        "module",
        "packed",
        "parameters",
        "patience",
        "stream",
    )

    def __init__(
        self,
        call: DriverCall,
        parameters: ParameterBlock,
        stream: StreamHandle,
        module: ModuleHandle,
    ) -> None:
        self.buffer: bytearray = parameters.buffer
        self.call: DriverCall = call
        self.parameters: ParameterBlock = parameters
        self.stream: StreamHandle = stream
        self.module: ModuleHandle = module
        self.packed: tuple[object, ...] | None = None
        self.first: object = None
        self.left: object = None
        self.patience: int = 0


def packer(
    parameters: Sequence[Parameter], kinds: Sequence[Kind], nbytes: int, start: int = 0
) -> struct.Struct:
    """The packer of parameters from `start` on: each value at its offset, padding between.

    Args:
        parameters: those to pack.
        kinds: how each is read.
        nbytes: where the last ends, with the padding behind it.
        start: where the first begins.
    """
    # struct aligns native codes itself, and knows only there an address.
    native = start % 8 == 0 and all(_is_aligned(parameter) for parameter in parameters)
    text, end = "@" if native else "=", start
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
