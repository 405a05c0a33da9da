"""Libraries, and kernels that no context owns.

CUDA Driver API: "Library Management". A library is loaded in a context when a part of it is needed
there (CUDA_MODULE_LOADING=LAZY).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...driver._api import CUdeviceptr, CUfunction, CUfunction_attribute, CUmodule, CUresult
from ..call_error import OK, SUCCESS, CallError, invalid_handle, invalid_value
from ..call_rules import CallRules
from ..contexts import Context
from ..modules import (
    KernelFunction,
    Library,
    LibraryKernel,
    Module,
    attribute_of,
    parameter_of,
    set_attribute,
)
from .call import call
from .module import forget_module


class LibraryCalls(CallRules):
    """Libraries, and kernels that no context owns."""

    @call
    def cuLibraryLoadData(
        self,
        code: bytes,
        jit_options: Sequence[int],
        jit_option_values: Sequence[object],
        num_jit_options: int,
        library_options: Sequence[int],
        library_option_values: Sequence[object],
        num_library_options: int,
        /,
    ) -> tuple[CUresult, int]:
        """Read an image and report its errors, except those of a device that rejects it."""
        from ..module_loading import read_image  # as in `ModuleCalls`

        library = Library(next(self._handles), read_image(bytes(code)))
        for entry in library.image.entries:
            if entry.span is not None:
                kernel = LibraryKernel(next(self._handles), library, entry.name)
                library.kernels[entry.name] = kernel
                self._kernels[kernel.handle] = kernel
        self._libraries[library.handle] = library
        if self._thread.stack:
            _loaded(self, library, self._current())
        return SUCCESS, library.handle

    @call
    def cuLibraryUnload(self, library: int, /) -> tuple[CUresult]:
        """Unload it in every context."""
        found = self._library(library)
        self._refuse_unsafe()
        for context in list(found.modules):
            if not context.destroyed:
                self._finish_context(context)
        with self._lock:
            self._library(library)  # another thread may have unloaded it
            del self._libraries[found.handle]
            for kernel in found.kernels.values():
                del self._kernels[kernel.handle]
            modules = list(found.modules.values())
            for module in modules:
                forget_module(self, module)
        for module in modules:
            if not module.context.destroyed:
                module.close()
        return OK

    @call
    def cuLibraryGetKernel(self, library: int, name: bytes, /) -> tuple[CUresult, int]:
        """Return the kernel of a name."""
        text = bytes(name).decode(errors="replace")
        kernel = self._library(library).kernels.get(text)
        if kernel is None:
            raise _not_found(f"no kernel is {text!r}")
        return SUCCESS, kernel.handle

    @call
    def cuLibraryGetKernelCount(self, library: int, /) -> tuple[CUresult, int]:
        """Return how many kernels it has."""
        return SUCCESS, len(self._library(library).kernels)

    @call
    def cuLibraryEnumerateKernels(
        self, num_kernels: int, library: int, /
    ) -> tuple[CUresult, list[int]]:
        """Return its first kernels; requested entries after the last are null."""
        kernels = self._library(library).kernels.values()
        found = [kernel.handle for kernel in kernels] + [0] * num_kernels
        return SUCCESS, found[:num_kernels]

    @call
    def cuLibraryGetModule(self, library: int, /) -> tuple[CUresult, CUmodule]:
        """Return its counterpart in the current context."""
        module = _loaded(self, self._library(library), self._current())
        return SUCCESS, CUmodule(module.handle)

    @call
    def cuLibraryGetGlobal(self, library: int, name: bytes, /) -> tuple[CUresult, CUdeviceptr, int]:
        """Return address and size of a variable in the current context."""
        module = _loaded(self, self._library(library), self._current())
        address, nbytes = module.variable(name)
        return SUCCESS, CUdeviceptr(address), nbytes

    @call
    def cuKernelGetLibrary(self, kernel: int, /) -> tuple[CUresult, int]:
        """Return the kernel's library."""
        return SUCCESS, self._kernel(kernel).library.handle

    @call
    def cuKernelGetName(self, kernel: int, /) -> tuple[CUresult, bytes]:
        """Return its name in the PTX."""
        return SUCCESS, self._kernel(kernel).name.encode()

    @call
    def cuKernelGetFunction(self, kernel: int, /) -> tuple[CUresult, CUfunction]:
        """Return its counterpart in the current context."""
        return SUCCESS, CUfunction(_in_context(self, self._kernel(kernel), self._current()).handle)

    @call
    def cuKernelGetParamInfo(self, kernel: int, param_index: int, /) -> tuple[CUresult, int, int]:
        """Return offset and size of a parameter."""
        function = _in_context(self, self._kernel(kernel), self._current())
        return SUCCESS, *parameter_of(function, param_index)

    @call
    def cuKernelGetAttribute(
        self, attrib: CUfunction_attribute, kernel: int, dev: int, /
    ) -> tuple[CUresult, int]:
        """Return an attribute on a device."""
        found = self._kernel(kernel)
        function = _in_context(self, found, self._context_on(int(dev)))
        return SUCCESS, attribute_of(function, int(attrib))

    @call
    def cuKernelSetAttribute(
        self, attrib: CUfunction_attribute, val: int, kernel: int, dev: int, /
    ) -> tuple[CUresult]:
        """Set an attribute on a device, in all of its contexts."""
        found, device = self._kernel(kernel), int(dev)
        functions = [_in_context(self, found, self._context_on(device))]
        functions += [
            module.functions[found.name]
            for context, module in found.library.modules.copy().items()
            if context.device.ordinal == device and not module.context.destroyed
        ]
        for function in functions:
            set_attribute(function, int(attrib), val)
        found.attributes[device, int(attrib)] = val
        return OK

    @call
    def cuKernelSetCacheConfig(self, kernel: int, config: int, dev: int, /) -> tuple[CUresult]:
        """Set the memory that a kernel prefers; without effect."""
        self._kernel(kernel)
        self._device_at(int(dev))
        if not 0 <= int(config) <= 3:
            raise invalid_value(f"there is no cache configuration {int(config)}")
        return OK

    def _library(self, handle: int) -> Library:
        library = self._libraries.get(int(handle))
        if library is None:
            raise invalid_handle(f"invalid resource handle: {int(handle):#x} is no library")
        return library

    def _kernel(self, handle: int) -> LibraryKernel:
        kernel = self._kernels.get(int(handle))
        if kernel is None:
            raise invalid_handle(
                f"invalid resource handle: {int(handle):#x} is no kernel of a library"
            )
        return kernel

    def _context_on(self, ordinal: int) -> Context:
        """Return a context of a device: the current one if it fits, else the primary one."""
        device = self._device_at(ordinal)
        stack = self._thread.stack
        if stack and stack[-1].device is device:
            return self._current()
        primary = self._primaries.get(ordinal)
        if primary is None or primary.destroyed:
            raise CallError(
                CUresult.CUDA_ERROR_INVALID_CONTEXT, f"device {ordinal} has no active context"
            )
        return self._usable(primary)


def function_of(
    driver: CallRules, handle: CUfunction, context: Context | None = None
) -> KernelFunction:
    """Return the function of a handle; a library's kernel has one in the context of its stream."""
    kernel = driver._kernels.get(int(handle)) if driver._kernels else None
    if kernel is None:
        function = driver._functions.get(int(handle))
        if function is None:
            raise invalid_handle(
                f"invalid resource handle: {int(handle):#x} is no function of a loaded module"
            )
        driver._usable(function.module.context)
        return function
    return _in_context(driver, kernel, context or driver._current())


def _in_context(driver: CallRules, kernel: LibraryKernel, context: Context) -> KernelFunction:
    return _loaded(driver, kernel.library, context).functions[kernel.name]


def _loaded(driver: CallRules, library: Library, context: Context) -> Module:
    """Return the module of a library in a context, loaded there if necessary."""
    module = library.modules.get(context)
    if module is None:
        with context.device.lock:
            module = library.modules.get(context)
            if module is None:
                from ..module_loading import place_module

                module = place_module(driver, library.image, context)
                ordinal = context.device.ordinal
                for kernel in library.kernels.values():
                    function = module.functions[kernel.name]
                    for (device, attribute), value in kernel.attributes.items():
                        if device == ordinal:
                            set_attribute(function, attribute, value)
                library.modules[context] = module
    return module


def _not_found(text: str) -> CallError:
    return CallError(CUresult.CUDA_ERROR_NOT_FOUND, f"named symbol not found: {text}")
