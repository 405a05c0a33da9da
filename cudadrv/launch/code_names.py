"""The globals of the generated code of launches, beside those that a launcher adds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..driver.stream_core import StreamCore
from ..interop.elements import named_dtype
from ..interop.reader import Foreign
from ..memory.buffer import DeviceBuffer
from .arguments import Parameter
from .code import readers_of
from .kinds import NUMBERS, REALS, WHOLE, Argument, Kind
from .parameter_block import packer


def general_names(
    parameters: Sequence[Parameter],
    convert: Callable[[Parameter, object], tuple[bytes, Argument]],
) -> dict[str, object]:
    """For arguments of all kinds; `convert` is called for one that no test knows."""
    names: dict[str, object] = {
        "__builtins__": {},
        "int": int,
        "float": float,
        "WHOLE": WHOLE,
        "REALS": REALS,
        "DeviceBuffer": DeviceBuffer,
    }
    for number, parameter in enumerate(parameters):
        names[f"convert{number}"] = partial(convert, parameter)
        elements = names[f"taken_{number}"] = parameter.elements
        if elements is not None:
            names[f"usual_{number}"] = named_dtype(elements.usual)
            names[f"nbytes_{number}"] = elements.nbytes
    return names


def number_names(
    parameters: Sequence[Parameter], kinds: tuple[Kind, ...], version: int
) -> dict[str, object]:
    """For numbers among arrays: what packs those of a launch with the same arrays."""
    numbers = [i for i, kind in enumerate(kinds) if kind in NUMBERS]
    if not numbers:
        return {}
    between = slice(numbers[0], numbers[-1] + 1)
    start, last = parameters[numbers[0]].param.offset, parameters[numbers[-1]].param
    fitting = packer(parameters[between], kinds[between], last.offset + last.nbytes, start)
    return {f"numbers_{version}": fitting.pack_into, f"start_{version}": start}


def foreign_names(kinds: tuple[Kind, ...], version: int, stream: StreamCore) -> dict[str, object]:
    """For arguments that are other libraries' memory."""
    known = {i: kind for i, kind in enumerate(kinds) if isinstance(kind, Foreign)}
    if not known and "foreign" not in kinds:
        return {}
    from ..interop import foreign, ordering  # loaded already, by such an argument

    names: dict[str, object] = {
        "interface_address": foreign.interface_address,
        "follow_producer": ordering.follow_producer,
        "follow_producers": ordering.follow_producers,
        "before": ordering.needs_no_wait(stream),
        "ordinal": stream.context.ordinal,
        "Exception": Exception,
    }
    for i, (kind, reader, dtype) in known.items():
        of = f"{version}_{i}"
        names |= {f"type_{of}": kind, f"get_dtype_{of}": reader.dtype, f"dtype_{of}": dtype}
        names |= {f"device_{of}": reader.device, f"address_{of}": reader.address}
        names[f"is_lazy_{of}"] = reader.is_lazy
    for number, reader in enumerate(readers_of(kinds)):
        names[f"stream_{version}_{number}"] = reader.stream
    return names
