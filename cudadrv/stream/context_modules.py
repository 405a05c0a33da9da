"""`ContextModules`: compiling, linking and loading for a context."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import ptx

from .. import border
from ..driver._api import CUcontext
from ..driver.context import BaseContext
from ..driver.device import Device, driver_version
from ..driver.stream import BaseStream

if TYPE_CHECKING:
    from ..launch.images import ImageLike
    from ..launch.jit_options import JitOptions
    from ..launch.linking import LinkerName
    from ..launch.module_and_kernel import Kernel, Module


@cache  # the same object at each call, whose form with a target is known
def _default_options() -> ptx.CompileOptions:
    return ptx.CompileOptions()


def _target_of(device: Device) -> ptx.Target:
    capability, driver = device.compute_capability, device._driver
    if driver.is_emulated and (driver.accepts_newer_ptx or not _loads_only_cubins()):
        return ptx.nearest_target(capability, ptx.ImageKind.PTX)
    return ptx.choose_target(capability, driver_version())


def _loads_only_cubins() -> bool:
    """Return whether the driver is of an older minor version than NVRTC."""
    nvrtc, installed = ptx.default_cache().nvrtc().version, driver_version()
    return installed < nvrtc and installed[0] == nvrtc[0]


class ContextModules(BaseContext):
    """Compiles for the device of a context, and loads modules there; a part of `Context`."""

    __slots__ = ("_last_options", "_target")

    if TYPE_CHECKING:

        @property
        def default_stream(self) -> BaseStream:
            """The stream of launches without one."""

    def __init__(self, device: Device, handle: CUcontext | None, *, is_primary: bool) -> None:
        super().__init__(device, handle, is_primary=is_primary)
        self._target: ptx.Target | None = None
        # Options that `compile` was called with, and these with the target.
        self._last_options: tuple[ptx.CompileOptions, ptx.CompileOptions] | None = None

    @property
    def target(self) -> ptx.Target:
        """The target to compile for, a cubin for this device, or PTX on the emulator.

        If an emulated driver is older than NVRTC, the target is a cubin there too.

        Raises:
            UnsupportedTargetError: the driver cannot load any output of the installed NVRTC; the
                text has the versions and the remedy.
        """
        target = self._target
        if target is None:
            target = self._target = _target_of(self.device)
        return target

    def compile(
        self,
        source: str,
        options: ptx.CompileOptions | None = None,
        *,
        name: str = "kernel.cu",
        name_expressions: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
        cancel: ptx.Cancel | None = None,
    ) -> Module:
        """Compile CUDA C++ for this device (or read it from the cache) and load it.

        The arguments are those of `ptx.compile`; the target defaults to `self.target`.

        Raises:
            ptx.PtxError: the source does not compile, or NVRTC is missing.
            CudaError: the driver rejects the image.
        """
        self._handle.raw  # noqa: B018  # raises once it is closed
        if options is None:
            options = _default_options()
        if isinstance(options, ptx.CompileOptions):  # `compile` rejects any other type
            options = self._with_target(options)
        image = ptx.compile(
            source,
            options,
            name=name,
            name_expressions=name_expressions,
            headers=headers,
            cancel=cancel,
        )
        return self.load_module(image)

    def _with_target(self, options: ptx.CompileOptions) -> ptx.CompileOptions:
        """Return options with this context's target filled in: for the same ones the same."""
        former = self._last_options
        if former is not None and former[0] is options:
            return former[1]
        filled = options.for_target(self.target, lineinfo=self.device.is_emulated)
        self._last_options = options, filled
        return filled

    def compile_kernel(
        self,
        source: str,
        name: str | None = None,
        options: ptx.CompileOptions | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Kernel:
        """Compile CUDA C++ and return one kernel: ``kernel(stream, config, *args)`` launches it.

        Args:
            source: the source.
            name: the kernel's, or a name expression such as "scale<float>"; None is the only
                kernel.
            options: as for `compile`.
            headers: as for `compile`.

        Raises:
            KernelNotFoundError: no kernel has the name, or without a name there is not exactly one.
            ptx.PtxError: the source does not compile, or NVRTC is missing.
        """
        expressions = () if name is None else (name,)
        module = self.compile(source, options, name_expressions=expressions, headers=headers)
        if name is None:
            from ..launch.kernel_names import not_the_only_one

            names = module.kernel_names
            if len(names) != 1:
                raise not_the_only_one(names)
            name = names[0]
        return module.kernel(name)

    def compile_nvvm(
        self,
        ir: ptx.NvvmIr | Sequence[ptx.NvvmIr],
        options: ptx.NvvmOptions | None = None,
        *,
        name: str = "kernel.ll",
    ) -> Module:
        """Compile NVVM IR for this device (or read it from the cache) and load it.

        The arguments are those of `ptx.compile_nvvm`. The result is linked, so that a driver older
        than libNVVM can load it.

        Raises:
            ptx.NvvmError: libNVVM rejects the IR or an option; it carries the log.
            ptx.NvvmNotFoundError: libNVVM is not installed.
            CudaError: the driver rejects the image.
            OSError: a file cannot be read.
        """
        self._handle.raw  # noqa: B018  # raises once it is closed
        chosen = border.optional("Context.compile_nvvm: options", options, ptx.NvvmOptions)
        target = self.target.as_kind(ptx.ImageKind.PTX)
        image = ptx.compile_nvvm(ir, (chosen or ptx.NvvmOptions()).for_target(target), name=name)
        return self.link([image])

    def when_module_loaded(self, function: Callable[[Module], object]) -> None:
        """Call a function with each module that is loaded here from now on.

        Its errors are raised by `load_module`. `Module.when_closed` reports the end.
        """
        border.function("Context.when_module_loaded: function", function, takes=1)
        self._handle.raw  # noqa: B018  # raises once it is closed
        self._loading.append(function)

    def load_module(self, image: ImageLike, *, jit: JitOptions | None = None) -> Module:
        """Load an image: a `ptx.Image`, PTX text, the bytes of a cubin, fatbin or PTX, or a file.

        A file is given as a `Path`; a str is PTX. `jit` is for the driver's compiler of PTX. An
        emulated device executes the PTX of a `ptx.Image` that is a cubin for it.

        Raises:
            CudaError: the driver rejects the image; the JIT's log is in the text.
            OSError: a file cannot be read.
        """
        from ..launch.module_and_kernel import Module  # with the first module: saves 25 ms

        return Module(self, image, lambda: self.default_stream, jit)

    def link(
        self,
        images: Sequence[ptx.Linkable],
        options: ptx.LinkOptions | None = None,
        *,
        cache: ptx.ImageCache | bool = True,
        linker: LinkerName | None = None,
    ) -> Module:
        """Link for this device and load the result, in which the inputs can call each other.

        Args:
            images: as for `ptx.link`: images, PTX, bytes, files. An emulated device takes PTX,
                LTO-IR, and images of cubins with their PTX.
            options: of the link.
            cache: as for `ptx.link`.
            linker: the linker; None is nvJitLink, or the driver if that is not installed, which the
                image's `log` then reports. The driver accepts no LTO-IR.

        Raises:
            ptx.LinkError: the inputs do not link; it carries the linker's log.
            CudaError: the driver rejects the result.
            OSError: a file cannot be read.
        """
        self._handle.raw  # noqa: B018  # raises once it is closed
        from ..launch.linking import linked

        chosen = border.optional("Context.link: options", options, ptx.LinkOptions)
        image = linked(
            self._handle, images, self.target, chosen or ptx.LinkOptions(), cache, linker
        )
        return self.load_module(image)
