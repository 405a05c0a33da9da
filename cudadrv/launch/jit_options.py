"""Options and logs of the driver's compiler and linker."""

from __future__ import annotations

from dataclasses import dataclass

from .. import border
from ..driver._api import CUjit_option

_MOST_REGISTERS = 255
_LOG_BYTES = 16384


@dataclass(frozen=True, slots=True)
class JitOptions:
    """Options for PTX that the driver compiles; without effect on cubins and on the emulator.

    Attributes:
        max_registers: the most registers of a thread; None leaves it to the compiler.
        optimization: 0 to 4; None is 4.
        line_info: whether the code has source line information.
        debug: whether it can be debugged, which makes it slow.

    Raises:
        ArgumentValueError: a number is out of its range.
    """

    max_registers: int | None = None
    optimization: int | None = None
    line_info: bool = False
    debug: bool = False

    def __post_init__(self) -> None:
        border.integer_fields(self, "max_registers", least=1, most=_MOST_REGISTERS)
        border.integer_fields(self, "optimization", most=4)

    def native(self) -> dict[CUjit_option, object]:
        """Return the options that differ from the driver's defaults."""
        native_options: dict[CUjit_option, object] = {}
        if self.max_registers is not None:
            native_options[CUjit_option.CU_JIT_MAX_REGISTERS] = self.max_registers
        if self.optimization is not None:
            native_options[CUjit_option.CU_JIT_OPTIMIZATION_LEVEL] = self.optimization
        if self.line_info:
            native_options[CUjit_option.CU_JIT_GENERATE_LINE_INFO] = 1
        if self.debug:
            native_options[CUjit_option.CU_JIT_GENERATE_DEBUG_INFO] = 1
        return native_options


class JitLog:
    """The errors of one call of the driver's compiler or linker.

    Attributes:
        options: makes the driver write here.
    """

    def __init__(self) -> None:
        self._bytes = bytearray(_LOG_BYTES)
        self.options: dict[CUjit_option, object] = {
            CUjit_option.CU_JIT_ERROR_LOG_BUFFER: self._bytes,
            CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: _LOG_BYTES,
        }

    @property
    def text(self) -> str:
        """The text of the log so far."""
        return self._bytes.split(b"\0", 1)[0].decode(errors="replace")
