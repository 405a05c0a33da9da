"""The arguments of one launch, read and packed."""

from __future__ import annotations

import struct

from ..driver.stream import BaseStream
from ..errors import ArgumentError
from .kernel_core import KernelCore
from .kinds import Argument, Kind
from .parameter_block import ParameterBlock, packer


def pack(
    kernel: KernelCore,
    args: tuple[object, ...],
    stream: BaseStream,
    packers: dict[tuple[Kind, ...], struct.Struct],
) -> tuple[list[Argument], ParameterBlock]:
    """The arguments of a launch, read, and packed into memory of their own.

    Args:
        kernel: the kernel.
        args: what it is given.
        stream: a stream of its context, which is ordered after what other libraries' memory waits
            for.
        packers: packs values of these kinds; more come in.

    Raises:
        ArgumentError: an argument has the wrong count, type, range or memory space.
        WrongDeviceError: an argument belongs to another device.
    """
    parameters = kernel.parameters
    if len(args) != len(parameters):
        text = (
            f"kernel {kernel.name!r} takes {_arguments(len(parameters))}, "
            f"{len(args)} {'was' if len(args) == 1 else 'were'} given"
        )
        if parameters:
            text += f"\n  they are: {kernel.describe_parameters()}"
        if len(args) == 1 and isinstance(args[0], (tuple, list)):
            text += "\n  give them one by one, not as one sequence: launch(stream, config, *args)"
        raise ArgumentError(text, kernel=kernel.name)
    read = [
        parameter.read(value, stream) for parameter, value in zip(parameters, args, strict=True)
    ]
    kinds = tuple([argument.kind for argument in read])
    block = kernel._new_block()
    fitting = packers.get(kinds)
    if fitting is None:
        fitting = packers[kinds] = packer(parameters, kinds, kernel.parameter_bytes)
    fitting.pack_into(block.buffer, 0, *[argument.value for argument in read])
    return read, block


def _arguments(count: int) -> str:
    return f"{count} argument{'' if count == 1 else 's'}"
