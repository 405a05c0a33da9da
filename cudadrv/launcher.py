"""Launchers: a kernel bound to a stream and a configuration, with code generated for its arguments.

A launch costs little more than the driver's own call because everything but the values is made
beforehand: one `struct.Struct` packs all parameters into a buffer whose pointer array was built
once, and one generated function, whose constants are locals, packs and calls. Its checks are those
that packing makes anyway. Only a refusal leads to the slow path, which finds the words for it.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from ._api import CUlaunchAttribute, CUlaunchAttributeID, CUlaunchConfig, CUresult, CUstream
from ._driver import failure
from .arguments import Kind, Parameter
from .errors import ArgumentError
from .launch_config import LaunchConfig

if TYPE_CHECKING:
    from .kernel import Kernel
    from .stream import Stream

# What packing raises for a value of the wrong kind: no .ptr, not a number, out of range; and what
# popping raises when every parameter block is in use by another thread.
_REFUSALS: Final = (AttributeError, TypeError, struct.error, OverflowError, IndexError)
_MISSING: Final = object()


class ParameterBlock:
    """Memory for one launch's parameters, and the pointer array that the driver reads."""

    __slots__ = ("_pointers", "address", "buffer")

    def __init__(self, offsets: Sequence[int], nbytes: int) -> None:
        self.buffer = ctypes.create_string_buffer(max(nbytes, 1))
        base = ctypes.addressof(self.buffer)
        self._pointers = (ctypes.c_void_p * max(len(offsets), 1))(
            *(base + offset for offset in offsets)
        )
        self.address = ctypes.addressof(self._pointers) if offsets else 0


_R = TypeVar("_R")
_Blocks: TypeAlias = list[tuple[ctypes.Array[ctypes.c_char], int, ParameterBlock]]


class Launcher(partial[None]):
    """Launches one kernel on one stream with one configuration: ``launcher(*args)``.

    Made by `Kernel.bind`. It may be called from several threads at once. The function behind it is
    generated for the kinds of arguments it has seen, and again when a new kind comes.

    Attributes:
        kernel: the kernel.
        stream: the stream.
        config: the configuration.
    """

    # A subclass of partial because calling one costs 30 ns over calling its function, where a
    # Python __call__ costs 130 ns.

    kernel: Kernel
    stream: Stream
    config: LaunchConfig

    def __new__(cls, kernel: Kernel, stream: Stream, config: LaunchConfig) -> Launcher:
        """A partial of no function yet; the constructor installs one."""
        return super().__new__(cls, _unbound)

    def __init__(self, kernel: Kernel, stream: Stream, config: LaunchConfig) -> None:
        self.kernel = kernel
        self.stream = stream
        self.config = config
        self._blocks: _Blocks = []
        self._kinds: tuple[Kind, ...] | None = None
        # Replaced functions stay alive: another thread may be entering one.
        self._functions: list[Callable[..., None]] = []
        self._call = _driver_call(self)
        self._install(self._launch_slowly)

    def __reduce__(self) -> tuple[type[object], tuple[()]]:
        raise TypeError("a launcher holds driver handles and cannot be pickled")

    def prepare(self, *args: object) -> PreparedLaunch:
        """The launch with these arguments packed once; calling the result only calls the driver.

        The arguments are kept alive by the result.

        Raises:
            ArgumentError: as a call would.
        """
        _, block = self._pack(args)
        return PreparedLaunch(self, args, block)

    def _install(self, function: Callable[..., None]) -> None:
        self._functions.append(function)
        # The documented state of a partial: function, arguments, keywords, attributes.
        self.__setstate__(  # type: ignore[attr-defined]  # the type stubs leave it out
            (function, (), {}, self.__dict__)
        )

    def _launch_slowly(self, *args: object) -> None:
        """Check, pack and launch with whatever `args` are, then generate code for their kinds."""
        while args and args[-1] is _MISSING:
            args = args[:-1]
        kinds, block = self._pack(args)
        (code,) = self._call(block.address)
        if code:
            raise self._failure(code)
        self._blocks.append((block.buffer, block.address, block))
        known = self._kinds
        if known is not None:
            kinds = tuple(
                new if new is old else Kind.CONVERTED for new, old in zip(kinds, known, strict=True)
            )
        if kinds != known:
            self._kinds = kinds
            self._install(_generate(self, kinds))

    def _pack(self, args: tuple[object, ...]) -> tuple[tuple[Kind, ...], ParameterBlock]:
        parameters = self.kernel.parameters
        if len(args) != len(parameters):
            raise ArgumentError(
                f"kernel {self.kernel.name!r} takes {len(parameters)} arguments, "
                f"{len(args)} were given: {self.kernel.describe_parameters()}",
                kernel=self.kernel.name,
            )
        read = [
            parameter.read(value, self.stream)
            for parameter, value in zip(parameters, args, strict=True)
        ]
        kinds = tuple(argument.kind for argument in read)
        block = self.kernel.new_block()
        packer = _packer(parameters, kinds, self.kernel.parameter_bytes)
        packer.pack_into(block.buffer, 0, *(argument.value for argument in read))
        return kinds, block

    def _failure(self, code: CUresult) -> Exception:
        return failure(
            self.stream.api,
            code,
            "cuLaunchKernel",
            f"launching kernel {self.kernel.name!r} with {self.config} on {self.stream!r}",
        )

    def _fail(self, code: CUresult) -> None:
        raise self._failure(code)


class PreparedLaunch(partial[None]):
    """A launch whose arguments are packed: ``prepared()``; made by `Launcher.prepare`."""

    launcher: Launcher
    args_kept: tuple[object, ...]

    def __new__(
        cls, launcher: Launcher, args: tuple[object, ...], block: ParameterBlock
    ) -> PreparedLaunch:
        """A partial of a function that calls the driver with the block and checks the answer."""
        call, fail, address = launcher._call, launcher._fail, block.address

        def launch() -> None:
            code = call(address)[0]
            if code:
                fail(code)

        return super().__new__(cls, launch)

    def __init__(self, launcher: Launcher, args: tuple[object, ...], block: ParameterBlock) -> None:
        self.launcher = launcher
        self.args_kept = (*args, block)

    def __reduce__(self) -> tuple[type[object], tuple[()]]:
        raise TypeError("a prepared launch holds driver handles and cannot be pickled")


def _unbound(*args: object) -> None:
    raise TypeError("this launcher was not made by Kernel.bind")


def _packer(parameters: Sequence[Parameter], kinds: Sequence[Kind], nbytes: int) -> struct.Struct:
    """The packer of a parameter block: each value at its offset, padding between."""
    text, end = "=", 0
    for parameter, kind in zip(parameters, kinds, strict=True):
        gap = parameter.param.offset - end
        text += f"{gap}x" * (gap > 0) + parameter.code(kind)
        end = parameter.param.offset + parameter.param.nbytes
    return struct.Struct(text + f"{nbytes - end}x" * (nbytes > end))


_CALL = "launch(kernel.handle, {extents}, stream.handle, {address}, 0)"
_CALL_EX = "launch_ex(launch_config(stream.handle), kernel.handle, {address}, 0)"


def _call_text(config: LaunchConfig, address: str) -> str:
    if config.cooperative or config.cluster is not None:
        return _CALL_EX.format(address=address)
    extents = ", ".join(map(str, (*config.grid, *config.block, config.shared_bytes)))
    return _CALL.format(extents=extents, address=address)


def _environment(launcher: Launcher) -> dict[str, object]:
    api = launcher.stream.api
    return {
        "launch": api.cuLaunchKernel,
        "launch_ex": api.cuLaunchKernelEx,
        "launch_config": _ExtendedConfig(launcher.config),
        "kernel": launcher.kernel,
        "stream": launcher.stream,
    }


def _driver_call(launcher: Launcher) -> Callable[[int], tuple[CUresult]]:
    """A function that launches with the parameters at an address."""
    text = f"def call(address):\n    return {_call_text(launcher.config, 'address')}\n"
    return _define(text, "call", _environment(launcher))


def _generate(launcher: Launcher, kinds: tuple[Kind, ...]) -> Callable[..., None]:
    """The fast path for arguments of these kinds."""
    kernel = launcher.kernel
    packer = _packer(kernel.parameters, kinds, kernel.parameter_bytes)
    names = [f"a{i}" for i in range(len(kinds))]
    values, conditions = [], ["not rest"]
    environment = _environment(launcher)
    for i, kind in enumerate(kinds):
        if kind is Kind.MEMORY:
            values.append(f"a{i}.ptr")
            conditions.append(f"a{i}.context is context")
        elif kind is Kind.CONVERTED:
            environment[f"convert{i}"] = kernel.parameters[i].convert
            values.append(f"convert{i}(a{i}, stream)")
        else:
            values.append(f"a{i}")
    environment |= {
        "pack_into": packer.pack_into,
        "pop": launcher._blocks.pop,
        "push": launcher._blocks.append,
        "context": launcher.stream.context,
        "slowly": launcher._launch_slowly,
        "fail": launcher._fail,
        "MISSING": _MISSING,
        "REFUSALS": _REFUSALS,
    }
    text = f"""
def launcher({"".join(f"{name}=MISSING, " for name in names)}*rest):
    try:
        block = pop()
        pack_into(block[0], 0{"".join(f", {value}" for value in values)})
        fits = {" and ".join(conditions)}
    except REFUSALS:
        fits = False
    if fits:
        code = {_call_text(launcher.config, "block[1]")}[0]
        push(block)
        if code:
            fail(code)
    else:
        slowly({"".join(f"{name}, " for name in names)}*rest)
"""
    return _define(text, "launcher", environment)


def _define(text: str, name: str, environment: dict[str, object]) -> Callable[..., _R]:
    """Define a function whose environment's names are its locals in an enclosing scope."""
    body = "\n".join(f"    {line}" for line in text.strip().splitlines())
    outer = f"def make({', '.join(environment)}):\n{body}\n    return {name}\n"
    scope: dict[str, Callable[..., Callable[..., _R]]] = {}
    # The text holds only names made here and whole numbers of a checked configuration.
    exec(compile(outer, f"<cudadrv {name}>", "exec"), scope)
    return scope["make"](**environment)


class _ExtendedConfig:
    """Fills the CUlaunchConfig of a configuration with cluster or cooperative attributes."""

    __slots__ = ("_config",)

    def __init__(self, config: LaunchConfig) -> None:
        self._config = config

    def __call__(self, stream: CUstream) -> CUlaunchConfig:
        config = self._config
        native = CUlaunchConfig()
        native.gridDimX, native.gridDimY, native.gridDimZ = config.grid
        native.blockDimX, native.blockDimY, native.blockDimZ = config.block
        native.sharedMemBytes = config.shared_bytes
        native.hStream = stream
        attributes = []
        if config.cooperative:
            attribute = CUlaunchAttribute()
            attribute.id = CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
            attribute.value.cooperative = 1
            attributes.append(attribute)
        if config.cluster is not None:
            attribute = CUlaunchAttribute()
            attribute.id = CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            extents = attribute.value.clusterDim
            extents.x, extents.y, extents.z = config.cluster
            attributes.append(attribute)
        native.attrs = attributes
        native.numAttrs = len(attributes)
        return native
