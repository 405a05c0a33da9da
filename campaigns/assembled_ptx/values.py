"""The values of initialised variables: in the assembler's machine code, and in the emulator."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.layout import CodeAddresses, ModuleLayout
from ptx.isa import PtxModule
from ptx.isa.instruction_facts import TYPE_BYTES
from ptx.isa.model import SymbolValue
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
    """The variables whose bytes differ; addresses, which relocations set, are left out.

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
        found = bytearray(memory.data[start : start + nbytes])
        size = TYPE_BYTES[variable.ptx_type]
        for number, element in enumerate(variable.initialiser):
            if isinstance(element, SymbolValue):
                found[number * size : (number + 1) * size] = bytes(size)
        if bytes(found) != expected[name]:
            wrong.append(f"{name} is {found.hex()}, and {expected[name].hex()} in machine code")
    layout.close()
    return wrong
