"""Modules: loading, their functions and their variables.

CUDA Driver API: "Module Management". What is wrong with an image is in the JIT error log, in
cuGetErrorString and in `Emulator.last_fault`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Final

from ptx.isa import PtxModule

from ...border import instance, text
from ...driver._api import CUdeviceptr, CUfunction, CUjit_option, CUmodule, CUresult
from ..call_rules import CallRules
from ..contexts import Context
from ..modules import (
    Function,
    Module,
    check_target,
    checked_signatures,
    load_program,
    new_function,
    read_image,
)
from ..refusal import OK, SUCCESS, Refusal, invalid_handle, invalid_value
from .call import call

_ERROR_LOG: Final = int(CUjit_option.CU_JIT_ERROR_LOG_BUFFER)
_ERROR_LOG_SIZE: Final = int(CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)


class ModuleCalls(CallRules):
    """Modules: loading, their functions and their variables."""

    @call(1)
    def cuModuleLoadData(self, image: bytes, /) -> tuple[CUresult, CUmodule]:
        """Load a PTX text into the current context."""
        return SUCCESS, CUmodule(self._load(image).handle)

    @call(1)
    def cuModuleLoadDataEx(
        self,
        image: bytes,
        num_options: int,
        options: Sequence[CUjit_option],
        option_values: Sequence[object],
        /,
    ) -> tuple[CUresult, CUmodule]:
        """The same; of the options, the error log is filled, the others have no effect."""
        try:
            return SUCCESS, CUmodule(self._load(image).handle)
        except Refusal as refusal:
            given = zip(options[:num_options], option_values[:num_options], strict=True)
            write_log({int(option): value for option, value in given}, refusal.text)
            raise

    def _load(self, image: bytes) -> Module:
        context = self._current()
        return self._place_module(read_image(bytes(image)), context)

    def _place_module(self, parsed: PtxModule, context: Context) -> Module:
        check_target(parsed, context.device.profile.compute_capability, self._driver_version)
        signatures = checked_signatures(parsed)
        handle = next(self._handles)
        module = Module(handle, context, load_program(parsed, context, f"module {handle:#x}"))
        for signature in signatures:
            function = new_function(next(self._handles), module, signature)
            module.functions[signature.name] = function
            self._functions[function.handle] = function
        self._modules[handle] = module
        if self.checks.assembly is not None:
            self.checks.assembly.look_at(parsed, context.device.profile.compute_capability)
        return module

    @call()
    def cuModuleUnload(self, hmod: CUmodule, /) -> tuple[CUresult]:
        """Free the module's variables and functions."""
        module = self._module(hmod)
        self._refuse_unsafe()
        self._finish_context(module.context)
        with self._lock:
            self._module(hmod)  # another thread may have unloaded it
            self._forget_module(module)
        module.close()
        return OK

    def _forget_module(self, module: Module) -> None:
        """Take a module and its functions out of the tables; `_lock` is held."""
        del self._modules[module.handle]
        for function in module.functions.values():
            del self._functions[function.handle]

    def name_kernels(self, module: CUmodule, expressions: Mapping[str, str], /) -> None:
        """Let errors call the kernels of a module by name expressions, given by their symbols.

        It is no function of the driver, which never hears of name expressions.

        Raises:
            ArgumentTypeError: the first is no module, or the second maps no text to text.
        """
        handle = instance("Emulator.name_kernels: module", module, CUmodule)
        for names in instance("Emulator.name_kernels: expressions", expressions, Mapping).items():
            for name in names:
                text("Emulator.name_kernels: expressions", name)
        found = self._modules.get(int(handle))
        if found is not None:
            found.program.shown.update(expressions)

    @call(1)
    def cuModuleGetFunction(self, hmod: CUmodule, name: bytes, /) -> tuple[CUresult, CUfunction]:
        """The kernel of a name, always with the same handle; it is made ready to run here."""
        module = self._module(hmod)
        text = bytes(name).decode(errors="replace")
        if not text:
            raise invalid_value("the kernel's name is empty")
        function = module.functions.get(text)
        if function is None:
            raise Refusal(
                CUresult.CUDA_ERROR_NOT_FOUND, f"named symbol not found: no kernel is {text!r}"
            )
        function.kernel()
        return SUCCESS, CUfunction(function.handle)

    @call(2)
    def cuModuleGetGlobal(
        self, hmod: CUmodule, name: bytes, /
    ) -> tuple[CUresult, CUdeviceptr, int]:
        """Address and size of a variable."""
        module = self._module(hmod)
        text = bytes(name).decode(errors="replace")
        found = module.program.globals.get(text)
        if found is None:
            raise Refusal(
                CUresult.CUDA_ERROR_NOT_FOUND, f"named symbol not found: no variable is {text!r}"
            )
        address, nbytes = found
        return SUCCESS, CUdeviceptr(address), nbytes

    @call(1)
    def cuModuleGetFunctionCount(self, mod: CUmodule, /) -> tuple[CUresult, int]:
        """How many kernels the module has."""
        return SUCCESS, len(self._module(mod).functions)

    @call(1)
    def cuModuleEnumerateFunctions(
        self, num_functions: int, mod: CUmodule, /
    ) -> tuple[CUresult, list[CUfunction]]:
        """The first kernels of the module, also those that the emulator cannot run.

        There is a null for each that is asked for beyond them.
        """
        module = self._module(mod)
        if num_functions < 1:
            raise invalid_value("no functions were asked for")
        handles = [CUfunction(function.handle) for function in module.functions.values()]
        return SUCCESS, (handles + [CUfunction(0)] * num_functions)[:num_functions]

    def _module(self, handle: CUmodule) -> Module:
        module = self._modules.get(int(handle))
        if module is None:
            raise invalid_handle(f"invalid resource handle: {int(handle):#x} is no loaded module")
        self._usable(module.context)
        return module

    def _function(self, handle: CUfunction) -> Function:
        function = self._functions.get(int(handle))
        if function is None:
            raise invalid_handle(
                f"invalid resource handle: {int(handle):#x} is no function of a loaded module"
            )
        self._usable(function.module.context)
        return function


def write_log(values: Mapping[int, object], text: str) -> None:
    """Fill the caller's error log, cut to its size and ended by a NUL."""
    buffer, size = values.get(_ERROR_LOG), values.get(_ERROR_LOG_SIZE)
    if buffer is None or not isinstance(size, int) or size < 1:
        return
    data = f"error   : {text}".encode()[: size - 1] + b"\0"
    if isinstance(buffer, int):
        ctypes.memmove(buffer, data, len(data))
    elif isinstance(buffer, bytes):
        # cuda.bindings takes bytes as a buffer and lets the driver write into them.
        ctypes.memmove(ctypes.c_char_p(buffer), data, len(data))
    elif isinstance(buffer, (bytearray, memoryview)):
        buffer[: len(data)] = data
