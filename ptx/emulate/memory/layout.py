"""Addresses of the variables of modules, kernels and functions, and of a device's functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.generic_addresses import CODE_WINDOW
from ptx.isa.instruction_facts import TYPE_BYTES
from ptx.isa.model import (
    Body,
    Element,
    FloatImmediate,
    Function,
    Linkage,
    Space,
    SymbolValue,
    Variable,
)
from ptx.isa.module import PtxModule
from ptx.isa.signature import kernel_params

FRAME_ALIGN = 16
_CODE_STEP = 16
_CODE_SHRINK = 12  # devices lie 2**40 bytes apart, so that each has 2**24 functions of its own
MOST_LOCAL_BYTES = 512 << 10  # CUDA guide, "Technical Specifications per Compute Capability"


def aligned(offset: int, align: int) -> int:
    """The first multiple of `align` that is not below `offset`."""
    return -(-offset // align) * align


class CodePlace(NamedTuple):
    """A function of a module that is on the device."""

    layout: ModuleLayout
    name: str


class CodeAddresses:
    """One address for each function of each module; no other function ever gets it.

    So a pointer may be stored in memory, read by the host and passed to a kernel of another module.
    Those of other devices are different, as the device's memory, at `base`, is elsewhere.
    """

    def __init__(self, base: int) -> None:
        self._next = CODE_WINDOW + (base >> _CODE_SHRINK) + _CODE_STEP
        self._places: dict[int, CodePlace] = {}

    def place(self, layout: ModuleLayout, names: Iterable[str]) -> dict[str, int]:
        """Addresses for the functions of a module."""
        addresses: dict[str, int] = {}
        for name in names:
            addresses[name] = self._next
            self._places[self._next] = CodePlace(layout, name)
            self._next += _CODE_STEP
        return addresses

    def find(self, address: int) -> CodePlace | None:
        """Return the function at an address, while its module is loaded."""
        return self._places.get(address)

    def remove(self, addresses: Iterable[int]) -> None:
        """Remove the functions at these addresses."""
        for address in addresses:
            self._places.pop(address, None)


class ModuleLayout:
    """A module's variables in device memory, and the addresses that stand for its functions.

    Attributes:
        globals: name -> (address, nbytes) of `.global` and `.const` variables.
        code: function name -> address for calls by address.
        undefined: names of variables that the module only declares.
        const_base: what an address of constants lacks in a register of 32 bits.
    """

    def __init__(
        self, module: PtxModule, memory: DeviceMemory, code_addresses: CodeAddresses, origin: str
    ) -> None:
        self.module = module
        self._memory = memory
        self._code_addresses = code_addresses
        self.aliases: dict[str, str] = module.aliases
        self.globals: dict[str, tuple[int, int]] = {}
        self.code: dict[str, int] = code_addresses.place(self, module.functions)
        placed = [v for v in module.static_variables if v.nbytes]
        # As driver 580: a variable that is only declared is a variable of zeros.
        self.undefined: list[str] = [v.name for v in placed if v.linkage is Linkage.EXTERN]
        try:
            for variable in placed:
                address = memory.allocate(
                    variable.nbytes,
                    origin=f"variable {variable.name.partition('@')[0]} of {origin}",
                    alignment=max(variable.align, 1),
                )
                self.globals[variable.name] = (address, variable.nbytes)
        except BaseException:
            self.close()
            raise
        self.const_ranges: tuple[tuple[int, int], ...] = tuple(
            (self.globals[v.name][0], self.globals[v.name][0] + v.nbytes)
            for v in placed
            if v.space is Space.CONST
        )
        first = self.const_ranges[0][0] if self.const_ranges else memory.base
        self.const_base: int = first & ~0xFFFFFFFF
        for variable in placed:
            self.initialise(variable)

    def initialise(self, variable: Variable) -> None:
        """Write a variable's initial value; bytes without one are zero."""
        address, nbytes = self.globals[variable.name]
        size = TYPE_BYTES[variable.ptx_type]
        data = self._content(variable.initialiser, size)
        start = address - self._memory.base
        self._memory.mark_written(address, nbytes)
        self._memory.data[start : start + nbytes] = 0
        self._memory.data[start : start + min(len(data), nbytes)] = np.frombuffer(
            data[:nbytes], dtype=np.uint8
        )

    def _content(self, elements: tuple[Element, ...], size: int) -> bytes:
        """The bytes of an initialiser whose elements take `size` bytes each."""
        try:
            return np.array(elements, dtype=np.int64).astype(f"<u{size}").tobytes()
        except (TypeError, OverflowError):  # floats, addresses, or integers of 64 bits
            return b"".join(self._element(element, size) for element in elements)

    def _element(self, element: Element, size: int) -> bytes:
        if isinstance(element, FloatImmediate):
            # As ptxas of CUDA 13.0: bits are cut or extended, but for 64 bits in a word of 32.
            bits = element.bits
            if element.width == 64 and size == 4:
                with np.errstate(over="ignore"):
                    value = np.uint64(bits).view(np.float64).astype(np.float32)
                bits = int(value.view(np.uint32))
            return (bits & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        if isinstance(element, SymbolValue):
            value_of = self.address_of(element.name) + element.offset
            if element.mask:
                shift = (element.mask & -element.mask).bit_length() - 1
                value_of = (value_of & element.mask) >> shift
            return (value_of & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        return (element & ((1 << 8 * size) - 1)).to_bytes(size, "little")

    def address_of(self, name: str) -> int:
        """The address of a variable or function; 0 where it is not placed (an extern function)."""
        if name in self.globals:
            return self.globals[name][0]
        return self.code.get(self.aliases.get(name, name), 0)

    def close(self) -> None:
        """Free the variables and take the functions away; once is enough."""
        self._code_addresses.remove(self.code.values())
        while self.globals:
            _, (address, _) = self.globals.popitem()
            self._memory.free(address)


@dataclass(slots=True)
class FrameLayout:
    """A function's part of a thread's local memory: offset of each variable, and the size.

    Its `.local` variables, its formal parameters and results where it is a `.func`, and the
    parameters that it passes on to others.
    """

    offsets: dict[str, int] = field(default_factory=dict)
    nbytes: int = 0
    params: dict[str, int] = field(default_factory=dict)

    def place(self, name: str, nbytes: int, align: int) -> None:
        """Give a variable the next free place."""
        self.offsets[name] = aligned(self.nbytes, max(align, 1))
        self.nbytes = self.offsets[name] + nbytes


def frame_layout(function: Function, body: Body) -> FrameLayout:
    """The frame of a function; an entry's own parameters lie in the launch's parameter block."""
    frame = FrameLayout()
    for variable in body.variables:
        if variable.space is Space.LOCAL:
            frame.place(variable.name, variable.nbytes, variable.align)
    for variable in body.variables:
        if variable.space is Space.PARAM:
            frame.place(variable.name, variable.nbytes, max(variable.align, 8))
    if function.is_entry:
        laid_out, _ = kernel_params(function.params)
        frame.params = {param.name: param.offset for param in laid_out}
    else:
        for param in (*function.returns, *function.params):
            frame.place(param.name, param.nbytes, max(param.align, 8))
        frame.nbytes = max(frame.nbytes, FRAME_ALIGN)  # a call without end fills the stack
    frame.nbytes = aligned(frame.nbytes, FRAME_ALIGN)
    return frame
