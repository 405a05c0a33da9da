"""The parameters of a kernel: the memory for one launch, and how it is packed."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import ptx

from ..driver._api import CUresult
from ..driver.context_handle import ModuleHandle
from ..driver.stream import BaseStream
from ..driver.stream_handle import StreamHandle
from ..errors import ArgumentError
from .arguments import ADDRESSES, Argument, KernelParameter, Kind

# A device address. It is packed in half the time of a 64-bit integer (Q), as its sign is not
# checked: only values that cudadrv made are packed so.
_ADDRESS_CODE: Final = "P"
_bytes_of: Final = ctypes.c_char.from_buffer

# A driver call with all its arguments, handles among them.
DriverCall: TypeAlias = Callable[[], tuple[CUresult]]


class BlockLayout:
    """Where a kernel's parameters and the pointers to them lie in a block.

    All pointers form one number, as adding to each of them takes three times as long.

    Attributes:
        nbytes: the size of a block.
        start: the offset of the pointers.
        offsets: the offsets of the parameters, 64 bits each, the first one lowest.
        ones: the same number with 1 for each offset.
    """

    __slots__ = ("nbytes", "offsets", "ones", "start")

    def __init__(self, offsets: Sequence[int], nbytes: int) -> None:
        self.start: int = (nbytes + 7 & -8) or 8
        self.nbytes: int = self.start + 8 * len(offsets)
        self.offsets: int = sum(offset << 64 * i for i, offset in enumerate(offsets))
        self.ones: int = sum(1 << 64 * i for i in range(len(offsets)))


class ParameterBlock:
    """Memory for one launch's parameters, followed by the pointers that the driver reads."""

    __slots__ = ("_view", "address", "buffer")

    def __init__(self, layout: BlockLayout) -> None:
        # struct fills a bytearray fastest. The view prevents its reallocation.
        start = layout.start
        self.buffer: bytearray = bytearray(layout.nbytes)
        self._view = view = _bytes_of(self.buffer)
        base = ctypes.addressof(view)
        pointers = base * layout.ones + layout.offsets
        self.buffer[start:] = pointers.to_bytes(layout.nbytes - start, "little")
        self.address: int = base + start if layout.ones else 0


class LaunchSlot:
    """The resources of one launch at a time: the packed parameters, the call, and its handles.

    Attributes:
        buffer: the memory for packed parameters.
        call: launches with the packed parameters.
        parameters: the owner of the buffer.
        stream: the stream of the call.
        module: the module of the kernel.
        last_values: the contents of the block, an array's address or the number for each argument,
            as objects; None while they are not cached.
        home_version: that of the stream when all arrays in `last_values` were ordered on it.
        first_address: the address of the first array at the last launch, as an object.
        retry_in: how many launches remain before values are cached again.
    """

    __slots__ = (
        "__weakref__",
        "buffer",
        "call",
        "first_address",
        "home_version",
        "last_values",
        "module",
        "parameters",
        "retry_in",
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
        self.last_values: tuple[object, ...] | None = None
        self.first_address: object = None
        self.home_version: object = None
        self.retry_in: int = 0


def packer(
    parameters: Sequence[KernelParameter], kinds: Sequence[Kind], nbytes: int, start: int = 0
) -> struct.Struct:
    """Return the packer of parameters from `start` on: each value at its offset, padding between.

    Args:
        parameters: those to pack.
        kinds: how each is read.
        nbytes: the end of the last, with the padding after it.
        start: the beginning of the first.
    """
    # struct aligns native codes itself, and supports addresses only among them.
    native = start % 8 == 0
    for parameter in parameters:
        nbytes_of_one = parameter.param.nbytes
        if nbytes_of_one in (2, 4, 8) and parameter.param.offset % nbytes_of_one:
            native = False
    text, end = "@" if native else "=", start
    for parameter, kind in zip(parameters, kinds, strict=True):
        gap = parameter.param.offset - end
        code = _ADDRESS_CODE if native and kind in ADDRESSES else parameter.code(kind)
        text += f"{gap}x" * (gap > 0) + code
        end = parameter.param.offset + parameter.param.nbytes
    return struct.Struct(text + f"{nbytes - end}x" * (nbytes > end))


class KernelParameters:
    """The parameters of one kernel, which pack the arguments of its launches.

    Attributes:
        kernel: the kernel's name.
        each: the parameters.
        nbytes: the size of all together.
        layout: the layout of their blocks.
        names: the name of each argument in generated code.
        follow_names: the name of the function there that orders each argument's memory, and
            whether the kernel only reads it.
    """

    __slots__ = ("_packers", "each", "follow_names", "kernel", "layout", "names", "nbytes")

    def __init__(self, kernel: str, signature: ptx.KernelSignature) -> None:
        self.kernel: str = kernel
        self.each: tuple[KernelParameter, ...] = tuple(
            KernelParameter(kernel, position, param)
            for position, param in enumerate(signature.params)
        )
        self.nbytes: int = signature.nbytes
        offsets = [param.offset for param in signature.params]
        self.layout: BlockLayout = BlockLayout(offsets, signature.nbytes)
        self.names: tuple[str, ...] = tuple(f"a{number}" for number in range(len(self.each)))
        self.follow_names: tuple[tuple[str, bool], ...] = tuple(
            (f"follow{number}", parameter.is_const) for number, parameter in enumerate(self.each)
        )
        # By the kinds of the arguments.
        self._packers: dict[tuple[Kind, ...], struct.Struct] = {}

    def __str__(self) -> str:
        return ", ".join(parameter.type_name for parameter in self.each) or "none"

    def packer(self, kinds: tuple[Kind, ...]) -> struct.Struct:
        """Return the packer of arguments of these kinds."""
        cached = self._packers.get(kinds)
        if cached is None:
            cached = self._packers[kinds] = packer(self.each, kinds, self.nbytes)
        return cached

    def pack(
        self, args: tuple[object, ...], stream: BaseStream
    ) -> tuple[list[Argument], ParameterBlock]:
        """Read the arguments of a launch, and pack them into memory of their own.

        Args:
            args: the arguments.
            stream: a stream of the kernel's context, which is ordered after the work that memory of
                other libraries waits for.

        Raises:
            ArgumentError: an argument has the wrong count, type, range or memory space.
            WrongDeviceError: an argument belongs to another device.
        """
        if len(args) != len(self.each):
            raise self._wrong_count(args)
        read = [
            parameter.read(value, stream) for parameter, value in zip(self.each, args, strict=True)
        ]
        block = ParameterBlock(self.layout)
        pack_into = self.packer(tuple([argument.kind for argument in read])).pack_into
        pack_into(block.buffer, 0, *[argument.value for argument in read])
        return read, block

    def _wrong_count(self, args: tuple[object, ...]) -> ArgumentError:
        count = len(self.each)
        text = (
            f"kernel {self.kernel!r} takes {count} argument{'' if count == 1 else 's'}, "
            f"{len(args)} {'was' if len(args) == 1 else 'were'} given"
        )
        if count:
            text += f"\n  they are: {self}"
        if len(args) == 1 and isinstance(args[0], (tuple, list)):
            text += "\n  give them separately, not as one sequence: launch(stream, config, *args)"
        return ArgumentError(text, kernel=self.kernel)
