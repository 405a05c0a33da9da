"""Libraries, and kernels that no context owns.

CUDA Driver API: "Library Management". A library is loaded in a context when a part of it is needed
there (CUDA_MODULE_LOADING=LAZY).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ...driver._api import CUdeviceptr, CUfunction, CUfunction_attribute, CUmodule, CUresult
from ..call_error import OK, SUCCESS, CallError, invalid_handle, invalid_value
from ..contexts import Context
from ..driver_state import DriverState
from ..modules import (
    KernelFunction,
    Library,
    LibraryKernel,
    Module,
    attribute_of,
    parameter_of,
    set_attribute,
)
from .call import DriverCalls, call
from .module import forget_module, write_log

if TYPE_CHECKING:
    from ptx.isa import PtxModule


_OF_IMAGES: Final = (
    CUresult.CUDA_ERROR_INVALID_PTX,
    CUresult.CUDA_ERROR_INVALID_IMAGE,
    CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
)


class LibraryCalls(DriverCalls):
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
        """Read an image; only its log has errors of the image.

        As with driver 580, the functions that use a part of the library report them.
        """
        from ..module_loading import read_image  # as in `ModuleCalls`

        stack = self._state.thread.stack
        device = stack[-1].device if stack else self._state.devices.visible[0]
        library = Library(self._state.handles.new(), None)
        try:
            library.image = read_image(bytes(code), device.profile.compute_capability)
            if stack:
                _loaded(self._state, library, self._state.handles.current())
        except CallError as error:
            if error.code not in _OF_IMAGES:
                raise
            options = zip(jit_options, jit_option_values, strict=False)
            write_log({int(option): value for option, value in options}, error.text)
            library.error = error
        else:
            self._add_kernels(library, library.image)
        self._state.handles.libraries[library.handle] = library
        return SUCCESS, library.handle

    def _add_kernels(self, library: Library, image: PtxModule) -> None:
        for entry in image.entries:
            if entry.span is not None:
                kernel = LibraryKernel(self._state.handles.new(), library, entry.name)
                library.kernels[entry.name] = kernel
                self._state.handles.kernels[kernel.handle] = kernel

    @call
    def cuLibraryUnload(self, library: int, /) -> tuple[CUresult]:
        """Unload it in every context."""
        state = self._library(library)
        self._state.captures.reject_unsafe()
        for context in list(state.modules):
            if not context.destroyed:
                self._state.operations.finish_context(context)
        with self._state.lock:
            self._library(library)  # another thread may have unloaded it
            del self._state.handles.libraries[state.handle]
            for kernel in state.kernels.values():
                del self._state.handles.kernels[kernel.handle]
            modules = list(state.modules.values())
            for module in modules:
                forget_module(self._state, module)
        for module in modules:
            if not module.context.destroyed:
                module.close()
        return OK

    @call
    def cuLibraryGetKernel(self, library: int, name: bytes, /) -> tuple[CUresult, int]:
        """Return the kernel of a name."""
        text = bytes(name).decode(errors="replace")
        state = self._library(library)
        kernel = state.kernels.get(text)
        if kernel is None:
            _image_of(state)
            raise _not_found(f"no kernel is {text!r}")
        if self._state.thread.stack:
            _loaded(self._state, kernel.library, self._state.handles.current())
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
        handles = [kernel.handle for kernel in kernels] + [0] * num_kernels
        return SUCCESS, handles[:num_kernels]

    @call
    def cuLibraryGetModule(self, library: int, /) -> tuple[CUresult, CUmodule]:
        """Return its counterpart in the current context."""
        module = _loaded(self._state, self._library(library), self._state.handles.current())
        return SUCCESS, CUmodule(module.handle)

    @call
    def cuLibraryGetGlobal(self, library: int, name: bytes, /) -> tuple[CUresult, CUdeviceptr, int]:
        """Return address and size of a variable in the current context."""
        module = _loaded(self._state, self._library(library), self._state.handles.current())
        address, nbytes = module.variable(name)
        return SUCCESS, CUdeviceptr(address), nbytes

    @call
    def cuKernelGetLibrary(self, kernel: int, /) -> tuple[CUresult, int]:
        """Return the kernel's library."""
        return SUCCESS, self._kernel(kernel).library.handle

    @call
    def cuKernelGetName(self, kernel: int, /) -> tuple[CUresult, bytes | None]:
        """Return its name in the PTX; as with a function, a null handle is an invalid value."""
        if not int(kernel):
            raise invalid_value("the kernel is null")
        return SUCCESS, self._kernel(kernel).name.encode()

    @call
    def cuKernelGetFunction(self, kernel: int, /) -> tuple[CUresult, CUfunction]:
        """Return its counterpart in the current context."""
        return SUCCESS, CUfunction(
            _in_context(self._state, self._kernel(kernel), self._state.handles.current()).handle
        )

    @call
    def cuKernelGetParamInfo(self, kernel: int, param_index: int, /) -> tuple[CUresult, int, int]:
        """Return offset and size of a parameter."""
        function = _in_context(self._state, self._kernel(kernel), self._state.handles.current())
        return SUCCESS, *parameter_of(function, param_index)

    @call
    def cuKernelGetAttribute(
        self, attrib: CUfunction_attribute, kernel: int, dev: int, /
    ) -> tuple[CUresult, int]:
        """Return an attribute on a device."""
        state = self._kernel(kernel)
        with self._function_on(state, int(dev)) as function:
            return SUCCESS, attribute_of(function, int(attrib))

    @call
    def cuKernelSetAttribute(
        self, attrib: CUfunction_attribute, val: int, kernel: int, dev: int, /
    ) -> tuple[CUresult]:
        """Set an attribute on a device, in all of its contexts."""
        state, device = self._kernel(kernel), int(dev)
        with self._function_on(state, device) as checked:
            set_attribute(checked, int(attrib), val)
        for context, module in state.library.modules.copy().items():
            if context.device.ordinal == device and not context.destroyed:
                set_attribute(module.functions[state.name], int(attrib), val)
        state.attributes[device, int(attrib)] = val
        return OK

    @call
    def cuKernelSetCacheConfig(self, kernel: int, config: int, dev: int, /) -> tuple[CUresult]:
        """Set the memory that a kernel prefers; without effect."""
        self._kernel(kernel)
        self._state.devices.at(int(dev))
        if not 0 <= int(config) <= 3:
            raise invalid_value(f"there is no cache configuration {int(config)}")
        return OK

    def _library(self, handle: int) -> Library:
        library = self._state.handles.libraries.get(int(handle))
        if library is None:
            raise invalid_handle(f"invalid resource handle: {int(handle):#x} is no library")
        return library

    def _kernel(self, handle: int) -> LibraryKernel:
        kernel = self._state.handles.kernels.get(int(handle))
        if kernel is None:
            raise invalid_handle(
                f"invalid resource handle: {int(handle):#x} is no kernel of a library"
            )
        return kernel

    @contextmanager
    def _function_on(self, kernel: LibraryKernel, ordinal: int) -> Iterator[KernelFunction]:
        """Yield a kernel on a device: in its context, else in one for this call alone."""
        device = self._state.devices.at(ordinal)
        stack = self._state.thread.stack
        primary = self._state.handles.primaries.get(ordinal)
        if stack and stack[-1].device is device:
            yield _in_context(self._state, kernel, self._state.handles.current())
        elif primary is not None and not primary.destroyed:
            yield _in_context(self._state, kernel, self._state.handles.usable(primary))
        else:
            device.reject_if_broken()
            context = Context(0, device, flags=0, primary=False)
            module = _placed(self._state, kernel.library, context)
            try:
                yield module.functions[kernel.name]
            finally:
                with self._state.lock:
                    forget_module(self._state, module)
                module.close()


def function_of(
    driver: DriverState, handle: CUfunction, context: Context | None = None
) -> KernelFunction:
    """Return the function of a handle; a library's kernel has one in the context of its stream."""
    kernel = driver.handles.kernels.get(int(handle)) if driver.handles.kernels else None
    if kernel is None:
        function = driver.handles.functions.get(int(handle))
        if function is None:
            raise invalid_handle(
                f"invalid resource handle: {int(handle):#x} is no function of a loaded module"
            )
        driver.handles.usable(function.module.context)
        return function
    return _in_context(driver, kernel, context or driver.handles.current())


def _in_context(driver: DriverState, kernel: LibraryKernel, context: Context) -> KernelFunction:
    return _loaded(driver, kernel.library, context).functions[kernel.name]


def _loaded(driver: DriverState, library: Library, context: Context) -> Module:
    """Return the module of a library in a context, loaded there if necessary."""
    module = library.modules.get(context)
    if module is None:
        with context.device.lock:
            module = library.modules.get(context)
            if module is None:
                module = library.modules[context] = _placed(driver, library, context)
    return module


def _placed(driver: DriverState, library: Library, context: Context) -> Module:
    """Load a library as a new module, whose functions have the attributes that were set."""
    from ..module_loading import place_module

    module = place_module(driver, _image_of(library), context)
    for kernel in library.kernels.values():
        for (device, attribute), value in kernel.attributes.items():
            if device == context.device.ordinal:
                set_attribute(module.functions[kernel.name], attribute, value)
    return module


def _image_of(library: Library) -> PtxModule:
    """Return the image of a library.

    Raises:
        CallError: the image is wrong.
    """
    error = library.error
    if error is not None:
        raise CallError(error.code, error.text, error.cause)
    assert library.image is not None
    return library.image


def _not_found(text: str) -> CallError:
    return CallError(CUresult.CUDA_ERROR_NOT_FOUND, f"named symbol not found: {text}")
