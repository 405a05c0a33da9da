"""`Module` and `Kernel`: they refer to each other, so they share one file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, Protocol, TypeVar, cast, overload

import numpy as np

import ptx
from ptx.read_only import ReadOnly

from .. import border, errors
from ..driver._api import (
    CUdevice_attribute as _OfDevice,
    CUfunction,
    CUlaunchConfig,
    CUmodule,
    CUresult,
)
from ..driver.context import BaseContext
from ..driver.context_handle import ModuleHandle
from ..driver.driver_selection import failure
from ..driver.handle import Closeable, ClosedHandle, NotCopyable, raise_all
from ..driver.stream import BaseStream
from ..memory.array import AnyDeviceArray, DeviceArray
from ..memory.buffer import DeviceBuffer, owning
from ..memory.dtypes import TypedDType, checked_dtype
from ..memory.layout import Shape
from .arguments import KernelParameter
from .config import LaunchConfig, native_config
from .images import ImageLike, as_loadable, bytes_of, disassembled, executable, loaded
from .jit_options import JitOptions
from .kernel_attributes import KernelAttributes
from .kernel_names import names_of, no_kernel, no_variable
from .launch_check import LaunchCheck
from .launcher import LauncherState
from .parameters import KernelParameters, ParameterBlock
from .signatures import WrittenSignatures, check_signature, signature_by_driver

if TYPE_CHECKING:
    import numpy.typing as npt

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
# Bounded: a caller may make a configuration per launch, and a launcher keeps its stream alive.
_MOST_LAUNCHERS: Final = 64
_ELSEWHERE: Final = "compile it on the stream's context too, or for each device by PtxModuleCache"


class PotentialBlock(NamedTuple):
    """The block size that keeps the most threads resident.

    Attributes:
        threads: threads of the block; the largest of equally good ones.
        blocks: the blocks that fill the whole device.
    """

    threads: int
    blocks: int


class KernelLaunch(Protocol):
    """``kernel.launch(stream, config, *args)``."""

    def __call__(self, stream: BaseStream, config: LaunchConfig, *args: object) -> None:
        """Queue the kernel on a stream.

        The kernel waits for earlier work on its memory, our own and other libraries'. Our own
        memory is freed after the kernel, even if objects are dropped or closed before. Keep other
        libraries' memory alive yourself.

        Args:
            stream: a stream of the module's context.
            config: blocks, threads and resources.
            args: numbers of Python, NumPy or ctypes; device arrays and buffers, those of other
                libraries, pinned host arrays, other host arrays in `In`, `Out` or `InOut`,
                addresses, None for a null pointer; and bytes, NumPy
                or ctypes structures and complex numbers for parameters by value.

        Raises:
            ArgumentError: an argument has the wrong count, type, range or memory space.
            LaunchConfigError: the device or the kernel cannot run the configuration.
            WrongDeviceError: the stream or an argument belongs to another device.
        """


class Launcher(Protocol):
    """Launches one kernel on one stream with one configuration: ``launcher(*args)``.

    Made by `Kernel.bind`. It may be called from several threads at once. It is a function, which
    Python calls faster than any other object. Its code is generated for the kinds of arguments it
    has seen, and again for each new kind.

    Attributes:
        kernel: the kernel.
        stream: the stream.
        config: the configuration.
        kernel_launch: the function that `Kernel.launch` may become while it is used with this
            stream and configuration.
    """

    kernel: Kernel
    stream: BaseStream
    config: LaunchConfig
    kernel_launch: Callable[..., None]

    def __call__(self, *args: object) -> None:
        """Launch.

        Raises:
            ArgumentError: an argument has the wrong count, type, range or memory space.
            WrongDeviceError: an argument belongs to another device.
            ClosedError: the stream, the module or an argument was closed.
        """

    # An attribute of the function, not a method.
    @property
    def prepare(self) -> Callable[..., PreparedLaunch]:
        """Pack the arguments of a launch once, by ``prepare(*args)``.

        Calling the result only calls the driver. The result keeps the arguments alive.

        Raises:
            ArgumentError: the same as a call.
        """


class PreparedLaunch(Protocol):
    """A launch whose arguments are packed: ``prepared()``; made by `Launcher.prepare`.

    The arguments stay alive as long as it does.

    Attributes:
        launcher: the launcher that made it.
        args_kept: the arguments.
        block: the packed parameters.
    """

    launcher: Launcher
    args_kept: tuple[object, ...]
    block: ParameterBlock

    def __call__(self) -> None:
        """Launch.

        Raises:
            ClosedError: the stream, the module or an array among the arguments was closed.
        """


def _warn_of_method(former: str, new: str) -> None:
    warnings.warn(
        f"Kernel.{former} is deprecated and goes with 1.0: use Kernel.{new}",
        DeprecationWarning,
        stacklevel=3,
    )


class Kernel(NotCopyable):
    """A kernel of a module; made by `Module.kernel`.

    Attributes:
        launch: queues the kernel: ``launch(stream, config, *args)``; see `KernelLaunch`.
        name: the requested name.
        module: the module, kept alive by the kernel.
        signature: its parameters, from the image or the driver.
        handle: the CUfunction; reading it after the module's `close` raises `ClosedError`.
        parameters: its parameters, each of which packs its argument.
        parameter_bytes: size of the parameter block.
    """

    __slots__ = (
        "__weakref__",
        "_attributes",
        "_check",
        "_function",
        "_launchers",
        "_module",
        "_name",
        "_packing",
        "_parameter_bytes",
        "_parameters",
        "_signature",
        "launch",
    )

    module: ReadOnly[Module] = ReadOnly("_module")
    name: ReadOnly[str] = ReadOnly("_name")
    parameter_bytes: ReadOnly[int] = ReadOnly("_parameter_bytes")
    parameters: ReadOnly[tuple[KernelParameter, ...]] = ReadOnly("_parameters")
    signature: ReadOnly[ptx.KernelSignature] = ReadOnly("_signature")

    # An attribute, so that it can be a function generated for the stream and configuration of the
    # last call.
    launch: KernelLaunch

    if not TYPE_CHECKING:  # a property over a private slot would slow down each launch

        def __setattr__(self, name: str, value: object) -> None:
            if name == "launch":
                raise AttributeError("launch of a Kernel cannot be set")
            object.__setattr__(self, name, value)

        def __delattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"{name} of a Kernel cannot be deleted")

    def __init__(
        self,
        module: Module,
        name: str,
        function: CUfunction,
        signature: ptx.KernelSignature | None,
    ) -> None:
        self._module: Module = module
        self._name: str = name
        self._function = function
        self._signature: ptx.KernelSignature = signature or signature_by_driver(
            module._handle, name, function
        )
        self._packing = KernelParameters(name, self._signature)
        self._parameters: tuple[KernelParameter, ...] = self._packing.each
        self._parameter_bytes: int = self._packing.nbytes
        self._attributes = KernelAttributes(name, self._loaded)
        self._check = LaunchCheck(
            name, module.context, self._attributes, self._signature, self.max_active_blocks
        )
        self._launchers: dict[tuple[BaseStream, LaunchConfig], Launcher] = {}
        _set_launch(self, self._launch_cached)

    def __repr__(self) -> str:
        return f"<Kernel {self._name}({self.describe_parameters()})>"

    def __call__(self, stream: BaseStream, config: LaunchConfig, *args: object) -> None:
        """Launch it, as `launch` does."""
        self.launch(stream, config, *args)

    def bind(self, stream: BaseStream, config: LaunchConfig, *, ordered: bool = True) -> Launcher:
        """Return a launcher for one stream and configuration, checked once: ``launcher(*args)``.

        Args:
            stream: the stream of the launches.
            config: blocks, threads and resources.
            ordered: whether a launch waits for work of other streams on the memory of its
                arguments. Without it you order the streams yourself; the memory is still freed
                after the launch.

        Raises:
            ArgumentError: `stream` is not a stream of cudadrv.
            LaunchConfigError: the device or the kernel cannot run the configuration.
            WrongDeviceError: the stream belongs to another context than the module.
        """
        if not isinstance(stream, BaseStream):
            raise errors.ArgumentError(
                f"kernel {self._name!r} is to be launched on {border.shown(stream)}\n"
                "  give a stream of cudadrv, such as Context.default_stream, or "
                "Context.external_stream(...)",
                kernel=self._name,
            )
        self._loaded()  # raises if the module was closed
        stream._handle.raw  # noqa: B018  # raises if the stream was closed
        if stream.context is not self._module.context:
            stream._require(self._module.context, f"kernel {self._name!r}", _ELSEWHERE)
        self._check.require(config)
        self._attributes._allow_shared_of(config)
        state = LauncherState(
            self._packing,
            self._module,
            self._loaded,
            stream,
            config,
            forget=self._forget,
            launch_elsewhere=self._launch_cached,
            ordered=ordered,
        )
        # For `help`. With these attributes, the function satisfies the protocol.
        state.function.__doc__ = Launcher.__call__.__doc__
        state.kernel_launch.__doc__ = KernelLaunch.__call__.__doc__
        launcher = cast("Launcher", state.function)
        launcher.kernel = self
        return launcher

    @property
    def handle(self) -> CUfunction:
        """The CUfunction.

        Raises:
            ClosedError: the module was closed.
        """
        return self._loaded()[0]

    @property
    def attributes(self) -> KernelAttributes:
        """The driver's attributes of the kernel, by name or by ``attributes[number]``."""
        return self._attributes

    def attribute(self, attribute: int) -> int:
        """Return ``attributes[attribute]``; deprecated, use that."""
        value = self._attributes[attribute]
        _warn_of_method("attribute(number)", "attributes[number]")
        return value

    def set_attribute(self, attribute: int, value: int) -> None:
        """Set ``attributes[attribute]``; deprecated, use that."""
        self._attributes[attribute] = value
        _warn_of_method("set_attribute(number, value)", "attributes[number] = value")

    def max_active_blocks(self, block_threads: int, shared_bytes: int = 0) -> int:
        """Return how many blocks one multiprocessor can hold at once (the occupancy calculator).

        Raises:
            InvalidValueError: a block cannot have so many threads or so much shared memory.
        """
        if type(block_threads) is not int or type(shared_bytes) is not int:
            block_threads = border.integer("max_active_blocks: block_threads", block_threads)
            shared_bytes = border.integer("max_active_blocks: shared_bytes", shared_bytes)
        if not 1 <= block_threads < 1 << 31 or not 0 <= shared_bytes < 1 << 31:
            raise errors.InvalidValueError(
                f"the occupancy of kernel {self._name!r} with {block_threads} threads and "
                f"{shared_bytes} bytes of shared memory a block"
            )
        self._attributes._allow_shared(shared_bytes)
        function, module = self._loaded()
        query = module.api.cuOccupancyMaxActiveBlocksPerMultiprocessor
        code, blocks = module.context.call(query, function, block_threads, shared_bytes)
        if code:
            call = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
            raise failure(module.api, code, call, f"the occupancy of kernel {self._name!r}")
        return blocks

    def describe_parameters(self) -> str:
        """Return the parameters' types in words."""
        return str(self._packing)

    def max_potential_block_size(
        self, shared_bytes: int | Callable[[int], int] = 0, *, limit: int | None = None
    ) -> PotentialBlock:
        """Return the threads per block that keep most of a multiprocessor busy.

        Args:
            shared_bytes: dynamic shared memory of a block, or a function of the number of threads.
            limit: the most threads of a block, if less than the kernel allows.

        Source: "Occupancy" in the CUDA Driver API manual, cuOccupancyMaxPotentialBlockSize.

        Raises:
            LaunchConfigError: no block of the kernel fits with so much shared memory.
        """
        device = self._module.context.device
        warp = device.attribute(_OfDevice.CU_DEVICE_ATTRIBUTE_WARP_SIZE)
        all_threads = device.attribute(_OfDevice.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)
        optin = _OfDevice.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        shared_limit = device.attribute(optin) - self.attributes.static_shared_bytes
        max_threads = self.attributes.max_threads_per_block
        if callable(shared_bytes):
            border.function("max_potential_block_size: shared_bytes", shared_bytes, takes=1)
        else:
            shared_bytes = border.int_in_range(
                "max_potential_block_size: shared_bytes", shared_bytes
            )
        if limit is not None:
            max_threads = min(max_threads, border.integer("max_potential_block_size: limit", limit))
        best, best_blocks = 0, 0
        # A limit that is not a multiple of the warp size is a candidate itself.
        for multiple in range(-(-max_threads // warp) * warp, 0, -warp):
            threads = min(multiple, max_threads)
            nbytes = shared_bytes(threads) if callable(shared_bytes) else shared_bytes
            nbytes = border.int_in_range("max_potential_block_size: shared_bytes(threads)", nbytes)
            if nbytes > shared_limit:
                continue
            blocks = self.max_active_blocks(threads, nbytes)
            if threads * blocks > best * best_blocks:
                best, best_blocks = threads, blocks
            if best * best_blocks >= all_threads:
                break
        if not best:
            raise errors.LaunchConfigError(
                f"no block of kernel {self._name!r} of at most {max_threads} threads fits "
                f"{device!r}\n"
                f"  {shared_limit} bytes of shared memory are left for it"
            )
        multiprocessors = device.attribute(_OfDevice.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        return PotentialBlock(best, best_blocks * multiprocessors)

    def max_active_clusters(self, config: LaunchConfig) -> int:
        """Return how many clusters of a configuration the device can hold at once.

        Raises:
            LaunchConfigError: the device or the kernel cannot run it, or it has no clusters.
        """
        self._check.require(config)
        if config.cluster is None and not self.attributes.required_cluster_width:
            raise errors.LaunchConfigError(f"{config} has no clusters, and {self!r} asks for none")
        query = self._module._handle.api.cuOccupancyMaxActiveClusters
        return self._clusters(config, query, "cuOccupancyMaxActiveClusters", "the clusters")

    def max_potential_cluster_size(self, config: LaunchConfig) -> int:
        """Return the most blocks of a cluster, with the threads and memory of a configuration.

        Raises:
            LaunchConfigError: the device or the kernel cannot run it.
        """
        self._check.require(config)
        query = self._module._handle.api.cuOccupancyMaxPotentialClusterSize
        return self._clusters(
            config, query, "cuOccupancyMaxPotentialClusterSize", "the largest cluster"
        )

    def _clusters(
        self,
        config: LaunchConfig,
        query: Callable[[CUfunction, CUlaunchConfig], tuple[CUresult, int]],
        call: str,
        quantity: str,
    ) -> int:
        """Query the driver for a number of a configuration's clusters."""
        self._attributes._allow_shared_of(config)
        function, module = self._loaded()
        code, count = module.context.call(query, function, native_config(config))
        if code:
            doing = f"{quantity} of kernel {self._name!r} with {config}"
            raise failure(module.api, code, call, doing)
        return count

    def _launch_cached(self, stream: BaseStream, config: LaunchConfig, *args: object) -> None:
        """Launch, and set `launch` to the function generated for this stream and configuration."""
        try:
            launcher = self._launchers.get((stream, config))
        except TypeError:  # unhashable, so no stream or configuration: `bind` raises
            launcher = None
        if launcher is None:
            launcher = self.bind(stream, config)
            if len(self._launchers) >= _MOST_LAUNCHERS:
                self._launchers.clear()
            self._launchers[stream, config] = launcher
        launcher(*args)
        _set_launch(self, launcher.kernel_launch)

    # For `help(kernel.launch)`.
    _launch_cached.__name__ = "launch"
    _launch_cached.__doc__ = KernelLaunch.__call__.__doc__

    def _forget(self, launcher: object) -> None:
        """Drop a launcher, as its stream or the module was closed."""
        _set_launch(self, self._launch_cached)
        for key, cached in self._launchers.copy().items():
            if cached is launcher:
                self._launchers.pop(key, None)

    def _loaded(self) -> tuple[CUfunction, ModuleHandle]:
        """Return the CUfunction, and the handle of the module that it is in.

        Raises:
            ClosedError: the module was closed.
        """
        module: ModuleHandle | ClosedHandle = self._module._handle
        if isinstance(module, ClosedHandle):
            raise module.error_of(f"the module of kernel {self._name!r} was closed")
        return self._function, module


class Module(Closeable):
    """An image loaded on a context; made by `Context.load_module`.

    Attributes:
        context: the context, kept alive by the module.
        handle: the CUmodule; reading it after `close` raises `ClosedError`.
        image: the image it was loaded from, if that is a `ptx.Image` or PTX text.
        closed: whether it was closed.
    """

    __slots__ = (
        "_closing",
        "_context",
        "_default_stream",
        "_image",
        "_kernels",
        "_names",
        "_written",
    )

    context: ReadOnly[BaseContext] = ReadOnly("_context")
    image: ReadOnly[ptx.Image | None] = ReadOnly("_image")

    _handle: ModuleHandle

    def __init__(
        self,
        context: BaseContext,
        image: ImageLike,
        default_stream: Callable[[], BaseStream],
        jit: JitOptions | None = None,
    ) -> None:
        if jit is not None:
            border.instance_of("load_module: jit", jit, JitOptions)
        image = as_loadable(image)
        self._context: BaseContext = context
        self._image: ptx.Image | None = image if isinstance(image, ptx.Image) else None
        self._default_stream = default_stream
        self._kernels: dict[str, Kernel] = {}
        self._names: tuple[str, ...] | None = None
        device = context.device
        data = bytes_of(
            executable(image, device.compute_capability) if device.is_emulated else image
        )
        # Those of an image with signatures are read where it lacks one.
        has_signatures = self._image is not None and bool(self._image.signatures)
        self._written = None if has_signatures else WrittenSignatures(data)
        self._closing: list[Callable[[Module], object]] = []
        self._own(loaded(context._handle, data, jit))
        context._adopt(self)
        name_kernels = self._handle.driver.name_kernels
        if name_kernels is not None:
            name_kernels(self._handle.raw, {v: k for k, v in self._lowered().items()})
        for function in tuple(context._loading):
            function(self)

    def __repr__(self) -> str:
        state = "closed " if self.closed else ""
        return f"<Module {state}on device {self._context.ordinal}>"

    @property
    def _closed_text(self) -> str:
        return f"the module on device {self._context.ordinal} was closed"

    @property
    def handle(self) -> CUmodule:
        """The CUmodule.

        Raises:
            ClosedError: it was closed.
        """
        return self._handle.raw

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """The names of the kernels in the image; name expressions can be used in addition."""
        if self._names is None:
            self._names = tuple(self._image.signatures) if self._image else ()
            if not self._names:
                self._names = self._enumerate()
        return self._names

    def kernel(self, name: str, signature: ptx.KernelSignature | None = None) -> Kernel:
        """Return the kernel of a name, or of a name expression that the image was compiled with.

        Args:
            name: such as "saxpy" or "scale<float>".
            signature: its parameters, if the image has no PTX text to read them from.

        Raises:
            KernelNotFoundError: there is none; the text has the existing names.
        """
        kernel = self._kernels.get(border.instance_of("Module.kernel: name", name, str))
        if signature is not None:
            check_signature(signature)
        if kernel is None or (signature is not None and kernel.signature != signature):
            lowered = self._lowered().get(border.text("Module.kernel: name", name), name)
            if signature is None and self._image is not None:
                signature = self._image.signatures.get(lowered)
            if signature is None:
                signature = self._written_signatures().get(lowered)
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
    # A dtype given as text has no static type.
    @overload
    def global_array(
        self, name: str, shape: Shape | None = None, dtype: npt.DTypeLike = "u1"
    ) -> AnyDeviceArray: ...
    def global_array(
        self, name: str, shape: Shape | None = None, dtype: npt.DTypeLike = "u1"
    ) -> AnyDeviceArray:
        """Return a module variable (``__device__``, ``__constant__``) as an array over its memory.

        Args:
            name: the variable's name, or a name expression such as "&table<float>".
            shape: its extents; None takes as many elements of `dtype` as fit.
            dtype: the element type.

        Raises:
            KernelNotFoundError: the module has no such variable.
            InvalidValueError: the variable is smaller than the shape, or than one element.
        """
        lowered = self._lowered().get(border.text("Module.global_array: name", name), name)
        handle = self._handle
        find = handle.api.cuModuleGetGlobal
        code, pointer, nbytes = handle.context.call(find, handle.raw, lowered.encode())
        if code == CUresult.CUDA_ERROR_NOT_FOUND:
            raise no_variable(name)
        if code:
            doing = f"variable {border.shown_name(name)}"
            raise failure(handle.api, code, "cuModuleGetGlobal", doing)
        kind = checked_dtype(dtype)
        if shape is None:
            shape = max(nbytes // kind.itemsize, 1)
        buffer = DeviceBuffer.borrowed(self._default_stream(), int(pointer), nbytes, handle)
        array: AnyDeviceArray = owning(DeviceArray(buffer, shape, kind))
        self._adopt(buffer)
        return array

    def sass(self) -> dict[str, ptx.SassFunction]:
        """Return the machine code of the module, by kernel, as `ptx.disassemble` does.

        A kernel has its name expression if the image was compiled with one. PTX and LTO-IR are
        assembled for the device by nvJitLink; the driver's assembler can choose other instructions.

        Raises:
            UnsupportedError: the module was loaded from bytes.
            PtxError: the errors of `ptx.disassemble`, as where nvdisasm is not installed.
        """
        functions = disassembled(self._image, self._context.device.compute_capability)
        names = {lowered: expression for expression, lowered in self._lowered().items()}
        return {names.get(function.name, function.name): function for function in functions}

    def when_closed(self, function: Callable[[Module], object]) -> None:
        """Call a function with the module when `close` begins, or its context's does.

        The function can use the module. Its errors are raised by `close` after everything is
        closed. Dropping a module without closing it calls nothing.
        """
        border.function("Module.when_closed: function", function, takes=1)
        self._handle.raw  # noqa: B018  # raises once it is closed
        self._closing.append(function)

    def close(self) -> None:
        """Close the module; its kernels and variables then raise `ClosedError`. Idempotent.

        It is unloaded when no graph needs it.

        Raises:
            CudaError: unloading failed, or reported failed work.
            ExceptionGroup: there were several errors, with those of functions of `when_closed`.
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
        self._kernels = {}
        for launcher in self._context.device.driver.launchers.alive():
            launcher.on_owner_closed(self)
        try:
            super().close()
        except (errors.CudadrvError, ExceptionGroup) as fault:
            faults.append(fault)

    def _written_signatures(self) -> WrittenSignatures:
        written = self._written
        if written is None:
            assert self._image is not None
            written = self._written = WrittenSignatures(self._image.data)
        return written

    def _lowered(self) -> Mapping[str, str]:
        return self._image.lowered_names if self._image is not None else {}

    def _take(self, name: str, lowered: str, signature: ptx.KernelSignature | None) -> Kernel:
        module = self._handle
        find = module.api.cuModuleGetFunction
        code, handle = module.context.call(find, module.raw, lowered.encode())
        if code == CUresult.CUDA_ERROR_NOT_FOUND:
            raise no_kernel(name, (*self._lowered(), *self.kernel_names))
        if code:
            doing = f"getting kernel {border.shown_name(name)}"
            raise failure(module.api, code, "cuModuleGetFunction", doing)
        return Kernel(self, name, handle, signature)

    def _enumerate(self) -> tuple[str, ...]:
        """Return the kernel names that the driver reports; drivers before 12.4 report none."""
        handle = self._handle
        return handle.context.call(names_of, handle)


# The slot itself, which `__setattr__` keeps from users.
_set_launch: Final = vars(Kernel)["launch"].__set__
