"""The values of initialised variables: in the assembler's machine code, and in the emulator."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.layout import CodeAddresses, ModuleLayout
from ptx.isa import PtxModule
from ptx.isa.instruction_facts import TYPE_BYTES
from ptx.isa.model import Space, SymbolValue, Variable
from ptx.linker import Linker, LinkInput, LinkKind

_BASE: Final = 1 << 40
_SYMBOLS: Final = struct.Struct("<IBBHQQ")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_OF_ZEROS: Final = 8  # SHT_NOBITS


class _Section(NamedTuple):
    """The fields of an ELF section that matter here."""

    kind: int
    offset: int
    nbytes: int
    linked: int


def _sections(image: bytes) -> list[_Section]:
    (first,) = struct.unpack_from("<Q", image, 40)
    size, count = struct.unpack_from("<HH", image, 58)
    found = [_SECTION.unpack_from(image, first + number * size) for number in range(count)]
    return [_Section(each[1], each[4], each[5], each[6]) for each in found]


def _variables(image: bytes) -> Iterator[tuple[str, bytes]]:
    """The symbols of a cubin with their bytes."""
    sections = _sections(image)
    for table in (each for each in sections if each.kind == 2):  # SHT_SYMTAB
        names = sections[table.linked].offset
        for at in range(table.offset, table.offset + table.nbytes, _SYMBOLS.size):
            name, _, _, index, value, nbytes = _SYMBOLS.unpack_from(image, at)
            if not nbytes or not 0 < index < len(sections):
                continue
            end = image.index(b"\0", names + name)
            section = sections[index]
            start = section.offset + value
            data = bytes(nbytes) if section.kind == _OF_ZEROS else image[start : start + nbytes]
            yield image[names + name : end].decode(), data


def differing_values(module: PtxModule, text: str, arch: str) -> list[str]:
    """The variables whose bytes differ; addresses, which the linker sets, are left out.

    Raises:
        LinkError: the module does not link.
    """
    with Linker((f"-arch={arch}",)) as linker:
        linker.add(LinkInput(LinkKind.PTX, text.encode(), "module"))
        linker.complete()
        expected = dict(_variables(linker.cubin()))
    memory = DeviceMemory(_BASE, 1 << 20)
    layout = ModuleLayout(module, memory, CodeAddresses(_BASE), "a module")
    wrong = []
    for name, variable in module.variables.items():
        if name not in layout.globals or name not in expected:
            continue
        if variable.ptx_type == "b128":  # of which ptxas writes the upper half without a value
            continue
        address, nbytes = layout.globals[name]
        start = address - memory.base
        found = _without_addresses(variable, memory.data[start : start + nbytes].tobytes())
        assembled = _without_addresses(variable, expected[name])
        if found != assembled:
            wrong.append(f"{name} is {found.hex()}, and {assembled.hex()} in machine code")
    layout.close()
    return wrong


def _without_addresses(variable: Variable, data: bytes) -> bytes:
    """The bytes with zeros for addresses: of constants, machine code has their offsets."""
    size = TYPE_BYTES[variable.ptx_type]
    values = bytearray(data)
    for number, element in enumerate(variable.initialiser):
        if isinstance(element, SymbolValue):
            values[number * size : (number + 1) * size] = bytes(size)
    return bytes(values)


def has_narrow_constant(module: PtxModule) -> bool:
    """Whether 32 bits hold the address of a constant: nvJitLink overwrites those after them."""
    return any(
        isinstance(element, SymbolValue)
        and TYPE_BYTES[variable.ptx_type] == 4
        and element.name in module.variables
        and module.variables[element.name].space is Space.CONST
        for variable in module.variables.values()
        for element in variable.initialiser
    )
