"""Where the variables of a module, a kernel and a function lie."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.windows import CODE_WINDOW
from ptx.isa.model import (
    TYPE_BYTES,
    Body,
    Element,
    FloatImmediate,
    Function,
    Space,
    SymbolValue,
    Variable,
)
from ptx.isa.module import PtxModule
from ptx.isa.signature import kernel_params

CODE_STEP = 16
FRAME_ALIGN = 16
MOST_LOCAL_BYTES = 512 << 10  # CUDA guide, "Technical Specifications per Compute Capability"


def aligned(offset: int, align: int) -> int:
    """The first multiple of `align` that is not below `offset`."""
    return -(-offset // align) * align


class ModuleLayout:
    """A module's variables in device memory, and the addresses that stand for its functions.

    Attributes:
        globals: name -> (address, nbytes) of `.global` and `.const` variables.
        code: function name -> address for indirect calls.
    """

    def __init__(self, module: PtxModule, memory: DeviceMemory, origin: str) -> None:
        self._memory = memory
        self.aliases = module.aliases
        self.globals: dict[str, tuple[int, int]] = {}
        self.code: dict[str, int] = {
            name: CODE_WINDOW + CODE_STEP * (index + 1)
            for index, name in enumerate(module.functions)
        }
        placed = [v for v in module.variables.values() if v.space in (Space.GLOBAL, Space.CONST)]
        placed = [v for v in placed if v.nbytes]
        try:
            for variable in placed:
                address = memory.allocate(
                    variable.nbytes,
                    origin=f"variable {variable.name} of {origin}",
                    alignment=max(variable.align, 1),
                )
                self.globals[variable.name] = (address, variable.nbytes)
        except BaseException:
            self.close()
            raise
        self.const_ranges = tuple(
            (self.globals[v.name][0], self.globals[v.name][0] + v.nbytes)
            for v in placed
            if v.space is Space.CONST
        )
        for variable in placed:
            self.initialise(variable)

    def initialise(self, variable: Variable) -> None:
        """Write a variable's initial value; bytes without one are zero."""
        address, nbytes = self.globals[variable.name]
        size = TYPE_BYTES[variable.ptx_type]
        data = self._content(variable.initialiser, size)
        start = address - self._memory.base
        self._memory.data[start : start + nbytes] = 0
        self._memory.data[start : start + min(len(data), nbytes)] = np.frombuffer(
            data[:nbytes], dtype=np.uint8
        )

    def _content(self, elements: tuple[Element, ...], size: int) -> bytes:
        """The bytes of an initialiser whose elements take `size` bytes each."""
        try:
            return np.array(elements, dtype=np.int64).astype(f"<u{size}").tobytes()
        except (TypeError, OverflowError):  # floats, addresses, or integers of 64 bits
            return b"".join(self._element(each, size) for each in elements)

    def _element(self, element: Element, size: int) -> bytes:
        if isinstance(element, FloatImmediate):
            bits = element.bits
            if element.width == 64 and size == 4:
                with np.errstate(over="ignore"):
                    value = np.uint64(bits).view(np.float64).astype(np.float32)
                bits = int(value.view(np.uint32))
            elif element.width == 32 and size == 8:
                bits = int(np.uint32(bits).view(np.float32).astype(np.float64).view(np.uint64))
            return bits.to_bytes(size, "little")
        if isinstance(element, SymbolValue):
            value_of = self.address_of(element.name) + element.offset
            if element.mask:
                shift = (element.mask & -element.mask).bit_length() - 1
                value_of = (value_of & element.mask) >> shift
            return (value_of & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        return (element & ((1 << 8 * size) - 1)).to_bytes(size, "little")

    def address_of(self, name: str) -> int:
        """The address of a variable or function; 0 where it is not placed (an extern symbol)."""
        if name in self.globals:
            return self.globals[name][0]
        return self.code.get(name, 0)

    def close(self) -> None:
        """Free the variables; once is enough."""
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
    local_bytes: int = 0
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
    frame.local_bytes = frame.nbytes
    for variable in body.variables:
        if variable.space is Space.PARAM:
            frame.place(variable.name, variable.nbytes, max(variable.align, 8))
    if function.is_entry:
        laid_out, _ = kernel_params(function.params)
        frame.params = {param.name: param.offset for param in laid_out}
    else:
        for param in (*function.returns, *function.params):
            if param.space is Space.PARAM:
                frame.place(param.name, param.nbytes, max(param.align, 8))
    frame.nbytes = aligned(frame.nbytes, FRAME_ALIGN)
    return frame
