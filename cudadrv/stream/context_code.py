"""The code of a context: compiled, linked and loaded for its device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import ptx

from .. import border, errors
from ..driver._api import CUcontext
from ..driver.context import ContextCore
from ..driver.device import Device, driver_version
from ..driver.stream_core import StreamCore

if TYPE_CHECKING:
    from ..launch.images import ImageLike
    from ..launch.jit_options import JitOptions
    from ..launch.linking import LinkerName
    from ..launch.module import Kernel, Module


class ContextCode(ContextCore):
    """A context, as far as its modules go; `Context` adds streams."""

    __slots__ = ("_target",)

    def __init__(self, device: Device, handle: CUcontext | None, *, is_primary: bool) -> None:
        super().__init__(device, handle, is_primary=is_primary)
        self._target: ptx.Target | None = None

    @property
    def default_stream(self) -> StreamCore:
        """The context's own stream."""
        raise NotImplementedError

    @property
    def target(self) -> ptx.Target:
        """What to compile for: a cubin for this device, or PTX on the emulator.

        Raises:
            UnsupportedTargetError: the installed NVRTC makes nothing that this driver loads; the
                text names the versions and the remedy.
        """
        target = self._target
        if target is None:
            capability = self.device.compute_capability
            try:
                if self.device.is_emulated:
                    target = ptx.nearest_target(capability, ptx.ImageKind.PTX)
                else:
                    target = ptx.choose_target(capability, driver_version())
            except ptx.UnsupportedTargetError as error:
                raise errors.UnsupportedTargetError(
                    str(error), error.target, error.supported
                ) from error
            self._target = target
        return target

    def compile(
        self,
        source: str,
        options: ptx.CompileOptions | None = None,
        *,
        name: str = "kernel.cu",
        name_expressions: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Module:
        """Compile CUDA C++ for this device (or take it from the cache) and load it.

        The arguments are those of `ptx.compile`; a target left open is `self.target`.

        Raises:
            ptx.PtxError: the source does not compile, or NVRTC is missing.
            CudaError: the driver refuses the image.
        """
        if options is None:
            options = ptx.CompileOptions()
        if isinstance(options, ptx.CompileOptions):  # anything else, `compile` refuses
            options = options.for_target(self.target, lineinfo=self.device.is_emulated)
        image = ptx.compile(
            source, options, name=name, name_expressions=name_expressions, headers=headers
        )
        return self.load_module(image)

    def compile_kernel(
        self,
        source: str,
        name: str | None = None,
        options: ptx.CompileOptions | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Kernel:
        """Compile CUDA C++ and take a kernel of it: ``kernel(stream, config, *args)`` launches it.

        Args:
            source: the source.
            name: the kernel's, or a name expression such as "scale<float>"; the only one without.
            options: as for `compile`.
            headers: as for `compile`.

        Raises:
            KernelNotFoundError: there is none of the name, or without one not just one kernel.
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
        """Compile NVVM IR for this device (or take it from the cache) and load it.

        The arguments are those of `ptx.compile_nvvm`. What libNVVM makes is linked, so that a
        driver which is older than libNVVM loads it.

        Raises:
            ptx.NvvmError: libNVVM refuses the IR or an option; it carries the log.
            ptx.NvvmNotFoundError: libNVVM is not installed.
            CudaError: the driver refuses the image.
            OSError: a file cannot be read.
        """
        chosen = border.optional("Context.compile_nvvm: options", options, ptx.NvvmOptions)
        target = self.target.as_kind(ptx.ImageKind.PTX)
        image = ptx.compile_nvvm(ir, (chosen or ptx.NvvmOptions()).for_target(target), name=name)
        return self.link([image])

    def when_module_loaded(self, function: Callable[[Module], object]) -> None:
        """Let a function be called with each module that is loaded here from now on.

        What it raises, `load_module` raises. `Module.when_closed` tells of the end.
        """
        border.function("Context.when_module_loaded: function", function, takes=1)
        self._box.raw  # noqa: B018  # raises once it is closed
        self._loading.append(function)

    def load_module(self, image: ImageLike, *, jit: JitOptions | None = None) -> Module:
        """Load an image: a `ptx.Image`, PTX text, the bytes of a cubin, fatbin or PTX, or a file.

        A file is given as a `Path`; a str is PTX. `jit` is for the driver's compiler of PTX.

        Raises:
            CudaError: the driver refuses the image; the JIT's log is in the text.
            OSError: a file cannot be read.
        """
        from ..launch.module import Module  # with the first module: saves 25 ms of a context

        return Module(self, image, lambda: self.default_stream, jit)

    def link(
        self,
        images: Sequence[ptx.Linkable],
        options: ptx.LinkOptions | None = None,
        *,
        cache: ptx.ImageCache | bool = True,
        linker: LinkerName | None = None,
    ) -> Module:
        """Link for this device and load the result, in which each input calls the others.

        Args:
            images: as for `ptx.link`: images, PTX, bytes, files. An emulated device takes PTX and
                LTO-IR.
            options: of the link.
            cache: as for `ptx.link`.
            linker: who links; None is nvJitLink, or the driver where that is not installed, which
                the image's `log` says then. The driver takes no LTO-IR.

        Raises:
            ptx.LinkError: the inputs do not link; it carries the linker's log.
            CudaError: the driver refuses the result.
            OSError: a file cannot be read.
        """
        from ..launch.linking import linked

        chosen = border.optional("Context.link: options", options, ptx.LinkOptions)
        image = linked(self._box, images, self.target, chosen or ptx.LinkOptions(), cache, linker)
        return self.load_module(image)
