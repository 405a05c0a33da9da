"""Modules and kernels as users hold them; each gives the other, so they are one file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar, overload

import numpy as np

import ptx

from .. import border, errors
from ..driver._api import CUfunction, CUmodule, CUresult
from ..driver.context import BaseContext
from ..driver.context_handle import ModuleHandle
from ..driver.driver_selection import failure
from ..driver.handle import Closeable, raise_all
from ..driver.registry import Registry
from ..driver.stream import BaseStream
from ..memory.array import AnyDeviceArray, DeviceArray
from ..memory.buffer import DeviceBuffer
from ..memory.dtypes import TypedDType, checked_dtype
from ..memory.layout import Shape
from .config import LaunchConfig, check_launch
from .images import ImageLike, WrittenSignatures, bytes_of, given, loaded
from .jit_options import JitOptions
from .kernel_core import KernelCore, check_signature
from .kernel_names import names_of, no_kernel, no_variable
from .launcher import LauncherState
from .occupancy import PotentialBlock, active_clusters, potential_block, potential_cluster_size
from .types import KernelLaunch, Launcher

if TYPE_CHECKING:
    import numpy.typing as npt

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
# Bounded: a caller may make a configuration a launch, and a launcher keeps its stream.
_MOST_LAUNCHERS: Final = 64
_ELSEWHERE: Final = "compile it on the stream's context too, or for each device by PtxModuleCache"


class Kernel(KernelCore):
    """A kernel of a module; made by `Module.kernel`.

    Attributes:
        launch: queues the kernel: ``launch(stream, config, *args)``; see `KernelLaunch`.
        name: the name it was asked for.
        module: the module, kept alive by the kernel.
        signature: its parameters; None where neither the image nor the driver tells.
        handle: the CUfunction; reading it after the module's `close` raises `ClosedError`.
        parameters: what packs each argument.
        parameter_bytes: size of the parameter block.
    """

    __slots__ = ("_launchers", "launch", "module")

    # An attribute, so that it can be a function generated for the stream and configuration that
    # it was last called with.
    launch: KernelLaunch

    def __init__(
        self,
        module: Module,
        name: str,
        function: CUfunction,
        signature: ptx.KernelSignature | None,
    ) -> None:
        super().__init__(module, name, function, signature)
        self.module: Module = module
        self._launchers: dict[tuple[BaseStream, LaunchConfig], Launcher] = {}
        self.launch = self._launch_cached

    def __call__(self, stream: BaseStream, config: LaunchConfig, *args: object) -> None:
        """Launch it, as `launch` does."""
        self.launch(stream, config, *args)

    def max_potential_block_size(
        self, shared_bytes: int | Callable[[int], int] = 0, *, limit: int | None = None
    ) -> PotentialBlock:
        """The threads of a block that keep most of a multiprocessor busy.

        Args:
            shared_bytes: dynamic shared memory of a block, or what gives it for so many threads.
            limit: the most threads that a block may have, where less than the kernel allows.

        Source: "Occupancy" in the CUDA Driver API manual, cuOccupancyMaxPotentialBlockSize.
        """
        return potential_block(self, shared_bytes, limit)

    def max_active_clusters(self, config: LaunchConfig) -> int:
        """How many clusters of a configuration the device can hold at once.

        Raises:
            LaunchConfigError: the device or the kernel cannot run it, or it has no clusters.
        """
        return active_clusters(self, config)

    def max_potential_cluster_size(self, config: LaunchConfig) -> int:
        """The most blocks that a cluster can have, with the threads and memory of a configuration.

        Raises:
            LaunchConfigError: the device or the kernel cannot run it.
        """
        return potential_cluster_size(self, config)

    def bind(self, stream: BaseStream, config: LaunchConfig, *, ordered: bool = True) -> Launcher:
        """A launcher for one stream and configuration, checked here once: ``launcher(*args)``.

        Args:
            stream: where it launches.
            config: blocks, threads and resources.
            ordered: whether a launch waits for what other streams do with the memory among its
                arguments. Without it the user orders the streams; the memory is given back after
                the launch all the same.

        Raises:
            ArgumentError: `stream` is no stream of cudadrv.
            LaunchConfigError: the device or the kernel cannot run the configuration.
            WrongDeviceError: the stream belongs to another context than the module.
        """
        if not isinstance(stream, BaseStream):
            raise errors.ArgumentError(
                f"kernel {self.name!r} is to be launched on {border.shown(stream)}\n"
                "  give a stream of cudadrv, such as Context.default_stream, or "
                "Context.external_stream(...)",
                kernel=self.name,
            )
        self.handle, stream.handle  # noqa: B018  # raise if the module or the stream was closed
        stream._require(self.module.context, f"kernel {self.name!r}", _ELSEWHERE)
        check_launch(self, config)
        self._allow_shared(config.shared_bytes)
        return LauncherState(self, stream, config, self._launch_cached, ordered=ordered).launcher

    def _launch_cached(self, stream: BaseStream, config: LaunchConfig, *args: object) -> None:
        """Launch, and let `launch` be what is generated for this stream and configuration."""
        try:
            launcher = self._launchers.get((stream, config))
        except TypeError:  # what has no hash is no stream or no configuration: `bind` says it
            launcher = None
        if launcher is None:
            launcher = self.bind(stream, config)
            if len(self._launchers) >= _MOST_LAUNCHERS:
                self._launchers.clear()
            self._launchers[stream, config] = launcher
        launcher(*args)
        self.launch = launcher.kernel_launch

    # For `help(kernel.launch)`.
    _launch_cached.__name__ = "launch"
    _launch_cached.__doc__ = KernelLaunch.__call__.__doc__

    def _forget(self, launcher: object) -> None:
        """Keep a launcher no longer, as its stream or the module was closed."""
        self.launch = self._launch_cached
        for key, kept in self._launchers.copy().items():
            if kept is launcher:
                self._launchers.pop(key, None)


class Module(Closeable):
    """An image loaded on a context; made by `Context.load_module`.

    Attributes:
        context: the context, kept alive by the module.
        handle: the CUmodule; reading it after `close` raises `ClosedError`.
        image: the image it was loaded from, where it is a `ptx.Image` or PTX text.
        closed: whether it was closed.
    """

    __slots__ = (
        "_closing",
        "_default_stream",
        "_kernels",
        "_names",
        "_variables",
        "_written",
        "context",
        "image",
    )

    _handle: ModuleHandle

    def __init__(
        self,
        context: BaseContext,
        image: ImageLike,
        default_stream: Callable[[], BaseStream],
        jit: JitOptions | None = None,
    ) -> None:
        image = given(image)
        self.context: BaseContext = context
        self.image: ptx.Image | None = image if isinstance(image, ptx.Image) else None
        self._default_stream = default_stream
        self._kernels: dict[str, Kernel] = {}
        self._names: tuple[str, ...] | None = None
        # The module's own memory, which is closed with it.
        self._variables: Registry[DeviceBuffer] = Registry()
        data = bytes_of(image)
        self._written = WrittenSignatures(data)
        self._closing: list[Callable[[Module], object]] = []
        options = border.optional("load_module: jit", jit, JitOptions)
        self._own(loaded(context._handle, data, options))
        context._adopt(self)
        name_kernels = self._handle.driver.name_kernels
        if name_kernels is not None:
            name_kernels(self._handle.raw, {v: k for k, v in self._lowered().items()})
        for function in tuple(context._loading):
            function(self)

    def __repr__(self) -> str:
        state = "closed " if self.closed else ""
        return f"<Module {state}on device {self.context.ordinal}>"

    @property
    def _closed_text(self) -> str:
        return f"the module on device {self.context.ordinal} was closed"

    @property
    def handle(self) -> CUmodule:
        """The CUmodule.

        Raises:
            ClosedError: it was closed.
        """
        return self._handle.raw

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """The names of the kernels, as the image has them; name expressions come in addition."""
        if self._names is None:
            self._names = tuple(self.image.signatures) if self.image else ()
            if not self._names:
                self._names = self._enumerate()
        return self._names

    def kernel(self, name: str, signature: ptx.KernelSignature | None = None) -> Kernel:
        """The kernel of a name, or of a name expression that the image was compiled with.

        Args:
            name: such as "saxpy" or "scale<float>".
            signature: its parameters, where the image has no PTX text to read them from.

        Raises:
            KernelNotFoundError: there is none; the text has the names that there are.
        """
        kernel = self._kernels.get(border.instance("Module.kernel: name", name, str))
        if signature is not None:
            check_signature(signature)
        if kernel is None or (signature is not None and kernel.signature != signature):
            lowered = self._lowered().get(border.text("Module.kernel: name", name), name)
            if signature is None and self.image is not None:
                signature = self.image.signatures.get(lowered)
            if signature is None:
                signature = self._written.get(lowered)
            kernel = self._kernels.setdefault(name, self._take(name, lowered, signature))
        return kernel

    @overload
    def global_array(
        self, name: str, shape: Shape | None = None, *, dtype: TypedDType[_ScalarT]
    ) -> DeviceArray[_ScalarT]: ...
    @overload
    def global_array(
        self, name: str, shape: Shape | None, dtype: TypedDType[_ScalarT]
    ) -> DeviceArray[_ScalarT]: ...
    # A dtype given as text says nothing to a type checker.
    @overload
    def global_array(
        self, name: str, shape: Shape | None = None, dtype: npt.DTypeLike = "u1"
    ) -> AnyDeviceArray: ...
    def global_array(
        self, name: str, shape: Shape | None = None, dtype: npt.DTypeLike = "u1"
    ) -> AnyDeviceArray:
        """A module variable (``__device__`` or ``__constant__``) as an array over its memory.

        Args:
            name: the variable's name, or a name expression such as "&table<float>".
            shape: its extents; None takes as many elements of `dtype` as fit.
            dtype: the element type.

        Raises:
            KernelNotFoundError: the module has no such variable.
            InvalidValueError: the variable is smaller than the shape, or one element, asks for.
        """
        lowered = self._lowered().get(border.text("Module.global_array: name", name), name)
        box = self._handle
        find = box.api.cuModuleGetGlobal
        code, pointer, nbytes = box.context.call(find, box.raw, lowered.encode())
        if code == CUresult.CUDA_ERROR_NOT_FOUND:
            raise no_variable(name)
        if code:
            raise failure(box.api, code, "cuModuleGetGlobal", f"variable {name!r}")
        kind = checked_dtype(dtype)
        if shape is None:
            shape = max(nbytes // kind.itemsize, 1)
        buffer = DeviceBuffer.borrowed(self._default_stream(), int(pointer), nbytes, box)
        array: AnyDeviceArray = DeviceArray(buffer, shape, kind)
        self._variables.add(buffer)
        return array

    def when_closed(self, function: Callable[[Module], object]) -> None:
        """Let a function be called with the module when `close` begins, or its context's does.

        The module can be used in it. What it raises, `close` raises when all is closed. A module
        that is dropped, and not closed, calls nothing.
        """
        border.function("Module.when_closed: function", function, takes=1)
        self._handle.raw  # noqa: B018  # raises once it is closed
        self._closing.append(function)

    def close(self) -> None:
        """Give the module up; its kernels and variables raise `ClosedError` then. Idempotent.

        It is unloaded when no graph needs it.

        Raises:
            CudaError: it was unloaded, and the driver refused or told of failed work.
            ExceptionGroup: so did several, with functions of `when_closed`.
        """
        faults: list[Exception] = []
        try:
            while self._closing:  # each is called once
                try:
                    self._closing.pop(0)(self)
                except Exception as fault:
                    faults.append(fault)
        finally:
            self._close_now(faults)
        raise_all(faults, f"closing {self!r}")

    def _close_now(self, faults: list[Exception]) -> None:
        for variable in self._variables.alive():
            variable.close()
        self._kernels = {}
        for launcher in self.context.device.driver.launchers.alive():
            launcher.on_owner_closed(self)
        try:
            super().close()
        except (errors.CudadrvError, ExceptionGroup) as fault:
            faults.append(fault)

    def _lowered(self) -> Mapping[str, str]:
        return self.image.lowered_names if self.image is not None else {}

    def _take(self, name: str, lowered: str, signature: ptx.KernelSignature | None) -> Kernel:
        box = self._handle
        find = box.api.cuModuleGetFunction
        code, handle = box.context.call(find, box.raw, lowered.encode())
        if code == CUresult.CUDA_ERROR_NOT_FOUND:
            raise no_kernel(name, (*self._lowered(), *self.kernel_names))
        if code:
            raise failure(box.api, code, "cuModuleGetFunction", f"taking kernel {name!r}")
        return Kernel(self, name, handle, signature)

    def _enumerate(self) -> tuple[str, ...]:
        """The kernel names that the driver knows; drivers before 12.4 know none."""
        box = self._handle
        return box.context.call(names_of, box)
