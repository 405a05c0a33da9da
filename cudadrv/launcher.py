"""Launchers: a kernel bound to a stream and a configuration, with code generated for its arguments.

A launch costs little more than the driver's own call because everything but the values is made
beforehand: one `struct.Struct` packs all parameters into a buffer whose pointer array was built
once, and one generated function, whose constants are locals, packs and calls. Its checks are those
that packing makes anyway. Only a refusal leads to the slow path, which finds the words for it.
"""

from __future__ import annotations

import contextlib
import ctypes
import struct
import threading
import weakref
from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from types import FunctionType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, cast

from ._api import CUlaunchAttribute, CUlaunchAttributeID, CUlaunchConfig, CUresult
from ._driver import failure
from .arguments import Kind, Parameter
from .errors import ArgumentError, ClosedError
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
        # The buffer that struct fills fastest; it is never resized, so its address stays.
        self.buffer = array("B", bytes(max(nbytes, 1)))
        base = self.buffer.buffer_info()[0]
        self._pointers = (ctypes.c_void_p * max(len(offsets), 1))(
            *(base + offset for offset in offsets)
        )
        self.address = ctypes.addressof(self._pointers) if offsets else 0


# A driver call with all its arguments, handles among them; it is not made once they are closed.
DriverCall: TypeAlias = Callable[[], tuple[CUresult]]
# Text, because arrays take no type argument at run time before Python 3.12.
_Blocks: TypeAlias = "list[tuple[array[int], DriverCall, ParameterBlock]]"


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
        self._packers: dict[tuple[Kind, ...], struct.Struct] = {}
        self._prepared: weakref.WeakSet[PreparedLaunch] = weakref.WeakSet()
        # What `Kernel.launch` may be while it is this launcher's stream and configuration.
        self.kernel_launch: Callable[..., None] | None = None
        # Replaced functions stay alive: another thread may be entering one.
        self._functions: list[Callable[..., None]] = []
        self._install(self._launch_slowly)
        with _registry_lock:
            _launchers.add(self)

    def __reduce__(self) -> tuple[type[object], tuple[()]]:
        raise TypeError("a launcher holds driver handles and cannot be pickled")

    def prepare(self, *args: object) -> PreparedLaunch:
        """The launch with these arguments packed once; calling the result only calls the driver.

        The arguments are kept alive by the result.

        Raises:
            ArgumentError: as a call would.
        """
        _, block = self._pack(args)
        prepared = _prepared(self, self._driver_call(block), args, block)
        with _registry_lock:
            self._prepared.add(prepared)
        return prepared

    def renew(self) -> None:
        """Take the driver's functions anew, for whoever has substituted them."""
        self._blocks = []
        if self._kinds is not None:
            self._regenerate(self._kinds)
        with _registry_lock:
            alive = tuple(self._prepared)
        for prepared in alive:
            _substitute(prepared, self._driver_call(prepared.block))

    def _regenerate(self, kinds: tuple[Kind, ...]) -> None:
        functions = _generate(self, kinds)
        self._install(functions.launcher)
        self.kernel_launch = functions.kernel_launch
        self.kernel.forget_launch()

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
        call = self._driver_call(block)
        (code,) = call()
        if code:
            raise self._failure(code)
        self._blocks.append((block.buffer, call, block))
        known = self._kinds
        if known is not None:
            kinds = tuple(
                new if new is old else Kind.CONVERTED for new, old in zip(kinds, known, strict=True)
            )
        if kinds != known:
            self._kinds = kinds
            self._regenerate(kinds)

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
        packer = self._packers.get(kinds)
        if packer is None:
            packer = _packer(parameters, kinds, self.kernel.parameter_bytes)
            self._packers[kinds] = packer
        packer.pack_into(block.buffer, 0, *(argument.value for argument in read))
        return kinds, block

    def _driver_call(self, block: ParameterBlock) -> DriverCall:
        api, handle, config = self.stream.api, self.kernel.handle, self.config
        if config.cooperative or config.cluster is not None:
            native = _extended_config(config)
            native.hStream = self.stream.handle
            return partial(api.cuLaunchKernelEx, native, handle, block.address, 0)
        extents = (*config.grid, *config.block, config.shared_bytes)
        # A partial of many arguments costs less than loading them for each call.
        return partial(api.cuLaunchKernel, handle, *extents, self.stream.handle, block.address, 0)

    def _failure(self, code: CUresult) -> Exception:
        return failure(
            self.stream.api,
            code,
            "cuLaunchKernel",
            f"launching kernel {self.kernel.name!r} with {self.config} on {self.stream!r}",
        )

    def _fail(self, code: CUresult) -> None:
        raise self._failure(code)


class PreparedLaunch(Protocol):
    """A launch whose arguments are packed: ``prepared()``; made by `Launcher.prepare`.

    It is a function, which Python calls faster than any other object; the arguments stay alive
    as long as it does.

    Attributes:
        launcher: what it was made by.
        args_kept: the arguments.
        block: the packed parameters.
    """

    launcher: Launcher
    args_kept: tuple[object, ...]
    block: ParameterBlock

    def __call__(self) -> None:
        """Launch."""


# Every launcher alive, so that a trace can substitute what they call; bounded by what users hold.
_launchers: Final[weakref.WeakSet[Launcher]] = weakref.WeakSet()
_registry_lock: Final = threading.Lock()


def live_launchers() -> tuple[Launcher, ...]:
    """Every launcher alive."""
    with _registry_lock:
        return tuple(_launchers)


def renew_launchers() -> None:
    """Let every launcher take the driver's functions anew."""
    for launcher in live_launchers():
        with contextlib.suppress(ClosedError):
            launcher.renew()


def _prepared(
    launcher: Launcher, call: DriverCall, args: tuple[object, ...], block: ParameterBlock
) -> PreparedLaunch:
    kernel, stream, fail = launcher.kernel, launcher.stream, launcher._fail

    def launch() -> None:
        kernel.handle  # noqa: B018  # raises once the module is closed
        stream.handle  # noqa: B018  # raises once the stream is closed
        code = call()[0]
        if code:
            fail(code)

    # Given its attributes, the function is what the protocol says.
    prepared = cast(PreparedLaunch, launch)
    prepared.launcher, prepared.args_kept, prepared.block = launcher, args, block
    return prepared


def _substitute(prepared: PreparedLaunch, call: DriverCall) -> None:
    """Give a prepared launch another driver call: the content of a cell of its function."""
    function = cast(FunctionType, prepared)  # what `_prepared` made
    assert function.__closure__ is not None
    function.__closure__[function.__code__.co_freevars.index("call")].cell_contents = call


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


class Functions(NamedTuple):
    """What is generated for a launcher: the launch itself, and the same as `Kernel.launch`."""

    launcher: Callable[..., None]
    kernel_launch: Callable[..., None]


def _generate(launcher: Launcher, kinds: tuple[Kind, ...]) -> Functions:
    """The fast paths for arguments of these kinds."""
    kernel = launcher.kernel
    packer = _packer(kernel.parameters, kinds, kernel.parameter_bytes)
    return Functions(
        *_maker(kinds)(
            [parameter.convert for parameter in kernel.parameters],
            pack_into=packer.pack_into,
            pop=launcher._blocks.pop,
            push=launcher._blocks.append,
            kernel=kernel,
            own_stream=launcher.stream,
            own_config=launcher.config,
            context=launcher.stream.context,
            slowly=launcher._launch_slowly,
            elsewhere=kernel.launch_anew,
            fail=launcher._fail,
            MISSING=_MISSING,
            REFUSALS=_REFUSALS,
        )
    )


_MAKER: Final = """
def make(converters, *, pack_into, pop, push, kernel, own_stream, own_config, context, slowly,
         elsewhere, fail, MISSING, REFUSALS):
{converters}
    def launcher({defaults}*rest):
        if True:
            {launch}

    def launch(stream, config, {defaults}*rest):
        if stream is own_stream and config is own_config:
            {launch}
        else:
            elsewhere(stream, config, {names}*rest)

    return launcher, launch
"""
_LAUNCH: Final = """
kernel.handle; own_stream.handle  # each raises once it is closed
try:
    block = pop()
    pack_into(block[0], 0{values})
    fits = {conditions}
except REFUSALS:
    fits = False
if fits:
    code = block[1]()[0]
    push(block)
    if code:
        fail(code)
else:
    slowly({names}*rest)
"""


@lru_cache(maxsize=256)
def _maker(kinds: tuple[Kind, ...]) -> Callable[..., tuple[Callable[..., None], ...]]:
    """What makes launch functions for arguments of these kinds: compiled once, whatever kernel."""
    values, conditions, converters = "", ["not rest"], ""
    for i, kind in enumerate(kinds):
        if kind is Kind.MEMORY:
            values += f", a{i}.ptr"
            conditions.append(f"a{i}.context is context")
        elif kind is Kind.CONVERTED:
            converters += f"    convert{i} = converters[{i}]\n"
            values += f", convert{i}(a{i}, own_stream)"
        else:
            values += f", a{i}"
    names = "".join(f"a{i}, " for i in range(len(kinds)))
    launch = _LAUNCH.strip().format(values=values, conditions=" and ".join(conditions), names=names)
    text = _MAKER.format(
        converters=converters,
        defaults=names.replace(",", "=MISSING,"),
        launch=launch.replace("\n", "\n            "),
        names=names,
    )
    scope: dict[str, Callable[..., tuple[Callable[..., None], ...]]] = {}
    # The text holds only names made here.
    exec(compile(text, "<cudadrv launcher>", "exec"), scope)
    return scope["make"]


def _extended_config(config: LaunchConfig) -> CUlaunchConfig:
    """The CUlaunchConfig of a configuration with cluster or cooperative attributes."""
    native = CUlaunchConfig()
    native.gridDimX, native.gridDimY, native.gridDimZ = config.grid
    native.blockDimX, native.blockDimY, native.blockDimZ = config.block
    native.sharedMemBytes = config.shared_bytes
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
