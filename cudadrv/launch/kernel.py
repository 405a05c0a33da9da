"""Kernels: a function of a module, what it takes and needs, and its launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ptx

from .. import errors
from ..driver._api import CUfunction, CUfunction_attribute, CUresult
from ..driver.in_use import Bound, Handle, failure
from ..errors import ClosedError
from .arguments import Parameter, ParameterBlock
from .config import LaunchConfig, check_launch
from .launcher import LauncherState, live_launchers

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..stream import Stream
    from .attributes import KernelAttributes
    from .module import Module
    from .occupancy import PotentialBlock
    from .types import KernelLaunch, Launcher

_MOST_LAUNCHERS = 64
_DEFAULT_DYNAMIC_SHARED = 48 * 1024


class Kernel(Handle):
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

    __slots__ = (
        "_attributes", "_launchers", "_offsets", "_shared_allowed",
        "handle", "launch", "module", "name", "parameter_bytes", "parameters", "signature",
    )  # fmt: skip

    # An attribute, so that it can be a function generated for the stream and configuration that
    # it was last called with.
    launch: KernelLaunch
    handle: CUfunction

    def __init__(
        self, module: Module, name: str, handle: CUfunction, signature: ptx.KernelSignature | None
    ) -> None:
        self.module = module
        self.name = name
        self.handle = handle
        self.signature = signature or _asked_signature(module, name, handle)
        self.parameters = tuple(
            Parameter(name, position, param) for position, param in enumerate(self.signature.params)
        )
        self.parameter_bytes = self.signature.nbytes
        self._offsets = tuple(param.offset for param in self.signature.params)
        self._attributes: dict[int, int] = {}
        self._launchers: dict[tuple[Stream, LaunchConfig], Launcher] = {}
        self._shared_allowed = _DEFAULT_DYNAMIC_SHARED
        self.forget_launch()

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> object:
            if name == "handle":
                raise ClosedError(f"the module of kernel {self.name!r} was closed")
            raise AttributeError(f"a Kernel has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<Kernel {self.name}({self.describe_parameters()})>"

    @property
    def attributes(self) -> KernelAttributes:
        """What the kernel needs, of all that `attribute` tells."""
        from .attributes import attributes_of  # few programs ask

        return attributes_of(self)

    def attribute(self, attribute: CUfunction_attribute) -> int:
        """One attribute, which the driver is asked for once.

        Source: CUfunction_attribute in the CUDA Driver API manual.
        """
        found = self._attributes.get(int(attribute))
        if found is None:
            api = self.module.api
            code, found = api.cuFuncGetAttribute(attribute, self.handle)
            if code:
                doing = f"attributes of kernel {self.name!r}"
                raise failure(api, code, "cuFuncGetAttribute", doing)
            self._attributes[int(attribute)] = found
        return found

    def max_active_blocks(self, block_threads: int, shared_bytes: int = 0) -> int:
        """How many blocks one multiprocessor can hold at once (the occupancy calculator).

        Raises:
            InvalidValueError: a block cannot have so many threads or so much shared memory.
        """
        if block_threads < 1 or shared_bytes < 0:
            raise errors.InvalidValueError(
                f"the occupancy of kernel {self.name!r} with {block_threads} threads and "
                f"{shared_bytes} bytes of shared memory a block"
            )
        self._allow_shared(shared_bytes)
        api = self.module.api
        with Bound(api, self.module.context.handle):
            code, blocks = api.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                self.handle, block_threads, shared_bytes
            )
        if code:
            call = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
            raise failure(api, code, call, f"the occupancy of kernel {self.name!r}")
        return blocks

    def max_potential_block_size(
        self, shared_bytes: int | Callable[[int], int] = 0, *, limit: int | None = None
    ) -> PotentialBlock:
        """The threads of a block that keep most of a multiprocessor busy.

        Args:
            shared_bytes: dynamic shared memory of a block, or what gives it for so many threads.
            limit: the most threads that a block may have, where less than the kernel allows.

        Source: "Occupancy" in the CUDA Driver API manual, cuOccupancyMaxPotentialBlockSize.
        """
        from .occupancy import potential_block  # many programs know their blocks

        return potential_block(self, shared_bytes, limit)

    def bind(self, stream: Stream, config: LaunchConfig) -> Launcher:
        """A launcher for one stream and configuration, checked here once: ``launcher(*args)``.

        Raises:
            ArgumentError: `stream` is no stream of cudadrv.
            LaunchConfigError: the device or the kernel cannot run the configuration.
            WrongDeviceError: the stream belongs to another context than the module.
        """
        from ..stream import Stream  # loaded, unless this is none

        if not isinstance(stream, Stream):
            raise errors.ArgumentError(
                f"kernel {self.name!r} is to be launched on {stream!r}: give a stream of "
                "cudadrv, such as Context.default_stream, or Context.external_stream(...)",
                kernel=self.name,
            )
        stream.require(self.module.context, f"kernel {self.name!r}")
        check_launch(self, config)
        self._allow_shared(config.shared_bytes)
        return LauncherState(self, stream, config).launcher

    def launch_anew(self, stream: Stream, config: LaunchConfig, *args: object) -> None:
        """Launch, and let `launch` be what is generated for this stream and configuration."""
        launcher = self._launchers.get((stream, config))
        if launcher is None:
            launcher = self.bind(stream, config)
            # Bounded: a caller may make a configuration a launch, and a launcher keeps its stream.
            if len(self._launchers) >= _MOST_LAUNCHERS:
                self._launchers.clear()
            self._launchers[stream, config] = launcher
        launcher(*args)
        if launcher.config is config:
            self.launch = launcher.kernel_launch

    def forget(self, stopped: Launcher) -> None:
        """Keep a launcher whose stream or module was closed, and so its stream, no longer."""
        key = stopped.stream, stopped.config
        if self._launchers.get(key) is stopped:
            del self._launchers[key]
        if self.launch is stopped.kernel_launch:
            self.forget_launch()

    def forget_launch(self) -> None:
        """Let `launch` look for its launcher again."""
        self.launch = self.launch_anew

    def describe_parameters(self) -> str:
        """The parameters' types in words."""
        return ", ".join(parameter.type_name for parameter in self.parameters) or "none"

    def new_block(self) -> ParameterBlock:
        """Memory for one launch's parameters."""
        return ParameterBlock(self._offsets, self.parameter_bytes)

    def discard(self) -> None:
        """Take the handle away, with its module."""
        self._launchers.clear()
        self.forget_launch()
        del self.handle
        for state in live_launchers():
            if state.kernel is self:
                state.stop()

    def _allow_shared(self, nbytes: int) -> None:
        """Ask the driver for dynamic shared memory above 48 KiB; it must be asked once a kernel."""
        if nbytes <= self._shared_allowed:
            return
        api = self.module.api
        (code,) = api.cuFuncSetAttribute(
            self.handle,
            CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            nbytes,
        )
        if code:
            doing = f"allowing kernel {self.name!r} {nbytes} bytes of dynamic shared memory"
            raise failure(api, code, "cuFuncSetAttribute", doing)
        self._shared_allowed = nbytes
        self._attributes.clear()  # one of them tells of it


def _asked_signature(module: Module, name: str, handle: CUfunction) -> ptx.KernelSignature:
    """Sizes and offsets as the driver knows them, for an image without PTX text.

    A parameter of 1, 2, 4 or 8 bytes is "bits": it takes an integer or a float of that size.
    """
    api = module.api
    params: list[ptx.KernelParam] = []
    end = 0
    while True:
        code, offset, nbytes = api.cuFuncGetParamInfo(handle, len(params))
        if code == CUresult.CUDA_ERROR_INVALID_VALUE:
            break
        if code:
            raise failure(api, code, "cuFuncGetParamInfo", f"the parameters of kernel {name!r}")
        scalar = nbytes in (1, 2, 4, 8)
        params.append(
            ptx.KernelParam(
                name=f"{name}_param_{len(params)}",
                ptx_type=f"b{8 * nbytes}" if scalar else "b8",
                nbytes=nbytes,
                align=nbytes if scalar else 1,
                offset=offset,
                is_pointer=None if nbytes == 8 else False,
                count=1 if scalar else nbytes,
            )
        )
        end = offset + nbytes
    return ptx.KernelSignature(name, tuple(params), end, 0, None, None)
