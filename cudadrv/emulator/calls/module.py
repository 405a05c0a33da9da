"""Modules: loading, linking, their functions and their variables.

CUDA Driver API: "Module Management". The errors of an image are in the JIT error log, in
cuGetErrorString and in `Emulator.last_fault`. The driver's linker links PTX to PTX here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Final

from ptx.cubin_mark import is_marked
from ptx.errors import PtxError

from ...border import instance_of, text
from ...driver._api import (
    CUdeviceptr,
    CUfunction,
    CUjit_option,
    CUjitInputType,
    CUlinkState,
    CUmodule,
    CUresult,
)
from ..call_error import OK, SUCCESS, CallError, invalid_handle, invalid_value
from ..driver_state import DriverState
from ..modules import Module, PendingLink, accepts_newer_ptx, newest_ptx
from .call import DriverCalls, call

_LAZY: Final = 2  # CU_MODULE_LAZY_LOADING
_ERROR_LOG: Final = int(CUjit_option.CU_JIT_ERROR_LOG_BUFFER)
_ERROR_LOG_SIZE: Final = int(CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
_PTX: Final = int(CUjitInputType.CU_JIT_INPUT_PTX)
_FATBIN: Final = int(CUjitInputType.CU_JIT_INPUT_FATBINARY)
_CUBIN: Final = int(CUjitInputType.CU_JIT_INPUT_CUBIN)
_KINDS: Final = {0: "a cubin", 3: "an object file", 4: "an archive", 5: "LTO-IR"}
_MAX_REGISTERS: Final = int(CUjit_option.CU_JIT_MAX_REGISTERS)


class ModuleCalls(DriverCalls):
    """Modules, their functions and their variables, and the driver's linker."""

    @call
    def cuModuleGetLoadingMode(self) -> tuple[CUresult, int]:
        """Return that kernels are prepared lazily."""
        return SUCCESS, _LAZY

    @call
    def cuModuleLoadData(self, image: bytes, /) -> tuple[CUresult, CUmodule]:
        """Load a PTX text, or the PTX of a fatbin, into the current context."""
        return SUCCESS, CUmodule(self._load(image).handle)

    @call
    def cuModuleLoadDataEx(
        self,
        image: bytes,
        num_options: int,
        options: Sequence[CUjit_option],
        option_values: Sequence[object],
        /,
    ) -> tuple[CUresult, CUmodule]:
        """Same; of the options, the error log is filled, the others have no effect."""
        try:
            return SUCCESS, CUmodule(self._load(image).handle)
        except CallError as error:
            pairs = zip(options[:num_options], option_values[:num_options], strict=True)
            write_log({int(option): value for option, value in pairs}, error.text)
            raise

    def _load(self, image: bytes) -> Module:
        # With the first module: saves 120 ms of an emulator that loads none.
        from ..module_loading import place_module, read_image

        context = self._state.handles.current()
        capability = context.device.profile.compute_capability
        return place_module(self._state, read_image(bytes(image), capability), context)

    @call
    def cuModuleUnload(self, hmod: CUmodule, /) -> tuple[CUresult]:
        """Free the module's variables and functions."""
        module = self._module(hmod)
        self._state.captures.reject_unsafe()
        self._state.operations.finish_context(module.context)
        with self._state.lock:
            self._module(hmod)  # another thread may have unloaded it
            forget_module(self._state, module)
        module.close()
        return OK

    def name_kernels(self, module: CUmodule, expressions: Mapping[str, str], /) -> None:
        """Let errors call the kernels of a module by name expressions, given by their symbols.

        It is not a function of the driver, which does not receive name expressions.

        Raises:
            ArgumentTypeError: the first is not a module, or the second maps other types than text
                to text.
        """
        handle = instance_of("Emulator.name_kernels: module", module, CUmodule)
        for names in instance_of(
            "Emulator.name_kernels: expressions", expressions, Mapping
        ).items():
            for name in names:
                text("Emulator.name_kernels: expressions", name)
        state = self._state.handles.modules.get(int(handle))
        if state is not None:
            state.program.shown.update(expressions)

    @call
    def cuModuleGetFunction(self, hmod: CUmodule, name: bytes, /) -> tuple[CUresult, CUfunction]:
        """Return the kernel of a name, always with the same handle, and prepare it."""
        module = self._module(hmod)
        text = bytes(name).decode(errors="replace")
        if not text:
            raise invalid_value("the kernel's name is empty")
        function = module.functions.get(text)
        if function is None:
            raise CallError(
                CUresult.CUDA_ERROR_NOT_FOUND, f"named symbol not found: no kernel is {text!r}"
            )
        function.kernel()
        return SUCCESS, CUfunction(function.handle)

    @call
    def cuModuleGetGlobal(
        self, hmod: CUmodule, name: bytes, /
    ) -> tuple[CUresult, CUdeviceptr, int]:
        """Return address and size of a variable."""
        address, nbytes = self._module(hmod).variable(name)
        return SUCCESS, CUdeviceptr(address), nbytes

    @call
    def cuModuleGetFunctionCount(self, mod: CUmodule, /) -> tuple[CUresult, int]:
        """Return how many kernels the module has."""
        return SUCCESS, len(self._module(mod).functions)

    @call
    def cuModuleEnumerateFunctions(
        self, num_functions: int, mod: CUmodule, /
    ) -> tuple[CUresult, list[CUfunction]]:
        """Return the first kernels of the module, also those that the emulator cannot run.

        Requested entries after the last kernel are null.
        """
        module = self._module(mod)
        if num_functions < 1:
            raise invalid_value("no functions were asked for")
        handles = [CUfunction(function.handle) for function in module.functions.values()]
        return SUCCESS, (handles + [CUfunction(0)] * num_functions)[:num_functions]

    def _module(self, handle: CUmodule) -> Module:
        module = self._state.handles.modules.get(int(handle))
        if module is None:
            raise invalid_handle(f"invalid resource handle: {int(handle):#x} is no loaded module")
        if module.context.destroyed:
            raise invalid_handle("the module's context is destroyed, and the module with it")
        self._state.handles.usable(module.context)
        return module

    @call
    def cuLinkCreate(
        self,
        num_options: int,
        options: Sequence[CUjit_option],
        option_values: Sequence[object],
        /,
    ) -> tuple[CUresult, CUlinkState]:
        """Begin a link; of the options the error log and the register limit are used."""
        self._state.handles.current()
        handle = self._state.handles.new()
        pairs = zip(options[:num_options], option_values[:num_options], strict=True)
        self._state.handles.links[handle] = PendingLink(
            {int(option): value for option, value in pairs}
        )
        return SUCCESS, CUlinkState(handle)

    @call
    def cuLinkAddData(
        self,
        state: CUlinkState,
        kind: CUjitInputType,
        data: bytes,
        size: int,
        name: bytes,
        num_options: int,
        options: Sequence[CUjit_option],
        option_values: Sequence[object],
        /,
    ) -> tuple[CUresult]:
        """Add an input: PTX, or a fatbin with PTX."""
        link = self._link(state)
        data, shown = bytes(data)[:size], bytes(name).decode(errors="replace")
        if int(kind) == _FATBIN:
            from ..module_loading import ptx_of_fatbin  # as in `_load`

            capability = self._state.handles.current().device.profile.compute_capability
            data = ptx_of_fatbin(data, capability).encode()
        elif int(kind) != _PTX and not (int(kind) == _CUBIN and is_marked(data)):
            noun = _KINDS.get(int(kind), f"an input of kind {int(kind)}")
            raise self._rejection(
                link,
                CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU,
                f"the emulator executes PTX and links PTX; {shown!r} is {noun}",
            )
        text = data.rstrip(b"\0").decode(errors="replace")
        if self._is_newer(text):
            # As measured with driver 580 and NVRTC 13.5.
            code = CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION
            if is_marked(data):
                code = CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU
            raise self._rejection(link, code, f"{shown!r} is newer than the driver's linker")
        link.inputs.append((shown, text))
        return OK

    def _is_newer(self, text: str) -> bool:
        """Return whether PTX, or that in place of a cubin, is newer than the driver."""
        from ptx.image import version_of_text  # few programs link

        driver_version = self._state.process.driver_version
        version = version_of_text(text) or (0, 0)
        return not accepts_newer_ptx(driver_version) and version > newest_ptx(driver_version)

    @call
    def cuLinkComplete(self, state: CUlinkState, /) -> tuple[CUresult, int, int]:
        """Link; the image is valid until the link is destroyed."""
        from ptx.isa.linked_text import link_texts, undefined_references  # 5 ms: few programs link
        from ptx.isa.module import with_register_limit

        link = self._link(state)
        try:
            text = link_texts(link.inputs) if link.inputs else ""
            if missing := undefined_references(text, link.inputs) if text else {}:
                words = "\nerror   : ".join(
                    f"Undefined reference to {symbol!r} in {name!r}"
                    for symbol, name in missing.items()
                )
                code = CUresult.CUDA_ERROR_INVALID_SOURCE  # as driver 580
                raise self._rejection(link, code, words)
            registers = link.options.get(_MAX_REGISTERS)
            if isinstance(registers, int) and registers:
                text = with_register_limit(text, registers)
        except PtxError as error:
            code = CUresult.CUDA_ERROR_INVALID_PTX
            raise self._rejection(link, code, str(error), error) from None
        link.image = ctypes.create_string_buffer(text.encode())
        return SUCCESS, ctypes.addressof(link.image), len(link.image)

    @staticmethod
    def _rejection(
        link: PendingLink, code: CUresult, text: str, cause: PtxError | None = None
    ) -> CallError:
        """Return the error of a link, and write it to the link's log."""
        write_log(link.options, text)
        return CallError(code, text, cause)

    @call
    def cuLinkDestroy(self, state: CUlinkState, /) -> tuple[CUresult]:
        """Forget a link and its image."""
        self._link(state)
        self._state.handles.links.pop(int(state), None)
        return OK

    def _link(self, handle: CUlinkState) -> PendingLink:
        link = self._state.handles.links.get(int(handle))
        if link is None:
            raise invalid_handle(f"invalid resource handle: {int(handle):#x} is no link")
        return link


def forget_module(driver: DriverState, module: Module) -> None:
    """Remove a module and its functions from the tables; `_lock` is held."""
    del driver.handles.modules[module.handle]
    for function in module.functions.values():
        del driver.handles.functions[function.handle]


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
