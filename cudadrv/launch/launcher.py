"""Launchers: a kernel bound to a stream and a configuration, with code generated for its arguments.

A launch costs little more than the driver's own call because everything but the values is made
beforehand: one `struct.Struct` packs all parameters into a buffer whose pointer array was built
once, and one generated function packs and calls.
"""

from __future__ import annotations

import contextlib
import struct
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from ..driver._api import CUresult
from ..driver.in_use import failure
from ..errors import ArgumentError, ClosedError
from .arguments import REALS, WHOLE, Kind, ParameterBlock, packer
from .config import LaunchConfig, native_config

if TYPE_CHECKING:
    from ..memory.array import AnyDeviceArray
    from ..memory.buffer import DeviceBuffer
    from ..stream import Stream
    from ..texture.view import View
    from .code import LaunchCode
    from .kernel import Kernel
    from .types import Launcher, PreparedLaunch

# What packing raises for a value of the wrong kind: no .ptr, not a number, out of range; and what
# popping raises when every parameter block is in use by another thread.
_REFUSALS: Final = (AttributeError, TypeError, struct.error, OverflowError, IndexError)
_MISSING: Final = object()

# A driver call with all its arguments, handles among them; it is not made once they are closed.
DriverCall: TypeAlias = Callable[[], tuple[CUresult]]
_Blocks: TypeAlias = list[tuple[bytearray, DriverCall, ParameterBlock]]


# The code below is never run in this module; these stand for the globals that it is given.
own_stream: object = None
own_config: object = None


def slowly(*args: object) -> None:
    """Check, pack and launch."""


def elsewhere(stream: object, config: object, *args: object) -> None:
    """Launch on another stream or with another configuration."""


def launcher(*args: object) -> None:
    """Launch with arguments of any number and kind."""
    slowly(*args)


def launch(stream: object, config: object, *args: object) -> None:
    """Launch with arguments of any number and kind, on any stream."""
    if stream is own_stream and config is own_config:
        slowly(*args)
    else:
        elsewhere(stream, config, *args)


SLOW: Final[LaunchCode] = (launcher.__code__, launch.__code__)
"""For arguments of any number and kind; it takes the four globals above."""


class LauncherState:
    """What is behind a launcher: its parameter blocks, and the code that fits its arguments.

    Attributes:
        kernel: the kernel.
        launcher: the function that users call.
    """

    def __init__(self, kernel: Kernel, stream: Stream, config: LaunchConfig) -> None:
        self.kernel = kernel
        self._stream = stream
        self._config = config
        self._native = native_config(config, stream)
        self._blocks: _Blocks = []
        self._kinds: tuple[Kind, ...] | None = None
        self._version = 0
        self._packers: dict[tuple[Kind, ...], struct.Struct] = {}
        self._prepared: weakref.WeakSet[PreparedLaunch] = weakref.WeakSet()
        self._globals: dict[str, object] = {
            "__builtins__": {},
            "slowly": self._launch_slowly,
            "fail": self._fail,
            "elsewhere": kernel.launch_anew,
            "own_stream": stream,
            "own_config": config,
            "context": stream.context,
            "REFUSALS": _REFUSALS,
            "int": int,
            "float": float,
            "WHOLE": WHOLE,
            "REALS": REALS,
        }
        for number, parameter in enumerate(kernel.parameters):
            self._globals[f"convert{number}"] = parameter.convert
        launch = FunctionType(SLOW[0], self._globals)
        kernel_launch = FunctionType(SLOW[1], self._globals)
        self._functions = launch, kernel_launch
        # Given its attributes, the function is what the protocol says.
        launch.__dict__ |= {
            "kernel": kernel, "stream": stream, "config": config, "prepare": self._prepare,
            "kernel_launch": kernel_launch,
        }  # fmt: skip
        self.launcher = cast("Launcher", launch)
        stream.adopt(self)
        with _registry_lock:
            _launchers.add(self)

    def _prepare(self, *args: object) -> PreparedLaunch:
        kinds, block = self._pack(args)
        # What was read as memory is of these types.
        memory = [
            cast("AnyDeviceArray | DeviceBuffer", value)
            for value, kind in zip(args, kinds, strict=True)
            if kind == "memory"
        ]
        views = [
            cast("View", value) for value, kind in zip(args, kinds, strict=True) if kind == "view"
        ]
        launch = self._prepared_launch(self._driver_call(block), memory, views)
        # Given its attributes, the function is what the protocol says.
        prepared = cast("PreparedLaunch", launch)
        prepared.launcher, prepared.args_kept, prepared.block = self.launcher, args, block
        with _registry_lock:
            self._prepared.add(prepared)
        return prepared

    def renew(self) -> None:
        """Take the driver's functions anew, for whoever has substituted them."""
        self._blocks = []
        if self._kinds is not None:
            self._generate(self._kinds)
        with _registry_lock:
            alive = tuple(self._prepared)
        for prepared in alive:
            _substitute(prepared, self._driver_call(prepared.block))

    def stop(self) -> None:
        """Let every launch take the slow path, which finds that the stream or module is closed."""
        self._blocks = []
        self._run(SLOW)
        self.kernel.forget(self.launcher)

    def _run(self, code: LaunchCode) -> None:
        launch, kernel_launch = self._functions
        launch.__code__, kernel_launch.__code__ = code

    def _generate(self, kinds: tuple[Kind, ...]) -> None:
        """Run code for arguments of these kinds from now on, on the present list of blocks."""
        kernel, blocks = self.kernel, self._blocks
        # A thread that still runs the former version finds the names of that.
        version = self._version = self._version + 1
        self._globals |= {
            f"pack_{version}": packer(kernel.parameters, kinds, kernel.parameter_bytes).pack_into,
            f"pop_{version}": blocks.pop,
            f"push_{version}": blocks.append,
        }
        if "foreign" in kinds:
            from ..interop import foreign  # loaded already, by the argument that was of this kind

            self._globals["interface_address"] = foreign.interface_address
            self._globals["order_after"] = foreign.order_after
        for function in self._functions:  # before the code that counts on it
            function.__defaults__ = (_MISSING,) * len(kinds)
        from .code import launch_code  # many kernels are launched once

        self._run(launch_code(kinds, version))

    def _launch_slowly(self, *args: object) -> None:
        """Check, pack and launch with whatever `args` are; from the second time on make code."""
        while args and args[-1] is _MISSING:
            args = args[:-1]
        kinds, block = self._pack(args)
        call = self._driver_call(block)
        (code,) = call()
        if code:
            raise self._failure(code)
        self._blocks.append((block.buffer, call, block))
        known = self._kinds
        if known is None:
            # Code costs milliseconds, which a kernel that is launched once never wins back.
            self._kinds = kinds
            return
        kinds = tuple(
            new if new == old else "converted" for new, old in zip(kinds, known, strict=True)
        )
        if kinds != known or self._version == 0:
            self._kinds = kinds
            self._generate(kinds)

    def _pack(self, args: tuple[object, ...]) -> tuple[tuple[Kind, ...], ParameterBlock]:
        parameters = self.kernel.parameters
        if len(args) != len(parameters):
            raise ArgumentError(
                f"kernel {self.kernel.name!r} takes {len(parameters)} arguments, "
                f"{len(args)} were given: {self.kernel.describe_parameters()}",
                kernel=self.kernel.name,
            )
        read = [
            parameter.read(value, self._stream)
            for parameter, value in zip(parameters, args, strict=True)
        ]
        kinds = tuple(argument.kind for argument in read)
        block = self.kernel.new_block()
        fitting = self._packers.get(kinds)
        if fitting is None:
            fitting = packer(parameters, kinds, self.kernel.parameter_bytes)
            self._packers[kinds] = fitting
        fitting.pack_into(block.buffer, 0, *(argument.value for argument in read))
        return kinds, block

    def _driver_call(self, block: ParameterBlock) -> DriverCall:
        stream, handle = self._stream, self.kernel.handle
        stream.handle  # noqa: B018  # raises once the stream is closed
        # This call takes the configuration as it is, where cuLaunchKernel converts nine numbers. A
        # partial costs less than loading the arguments for each call.
        return partial(stream.api.cuLaunchKernelEx, self._native, handle, block.address, 0)

    def _failure(self, code: CUresult) -> Exception:
        doing = f"launching kernel {self.kernel.name!r} with {self._config} on {self._stream!r}"
        return failure(self._stream.api, code, "cuLaunchKernelEx", doing)

    def _fail(self, code: CUresult) -> None:
        raise self._failure(code)

    def _prepared_launch(
        self,
        call: DriverCall,
        memory: Sequence[AnyDeviceArray | DeviceBuffer],
        views: Sequence[View],
    ) -> Callable[[], None]:
        """The function behind a prepared launch."""
        kernel, stream, fail = self.kernel, self._stream, self._fail

        def launch() -> None:
            kernel.handle  # noqa: B018  # raises once the module is closed
            stream.handle  # noqa: B018  # raises once the stream is closed
            for each in memory:
                each.ptr  # noqa: B018  # raises once the memory is closed
            code = call()[0]
            if code:
                fail(code)

        def launch_with_views() -> None:
            for view in views:
                view.kernel_handle  # noqa: B018  # raises once the texture or surface is closed
            for each in memory:
                each.ptr  # noqa: B018
            kernel.handle, stream.handle  # noqa: B018
            code = call()[0]
            if code:
                fail(code)

        # Most launches have none, and shall not pay for it.
        return launch_with_views if views else launch


# Every launcher alive, so that a trace can substitute what they call; bounded by what users hold.
# A launcher and its state hold each other.
_launchers: Final[weakref.WeakSet[LauncherState]] = weakref.WeakSet()
_registry_lock: Final = threading.Lock()


def live_launchers() -> tuple[LauncherState, ...]:
    """What is behind every launcher alive."""
    with _registry_lock:
        return tuple(_launchers)


def renew_launchers() -> None:
    """Let every launcher take the driver's functions anew."""
    for state in live_launchers():
        with contextlib.suppress(ClosedError):
            state.renew()


def _substitute(prepared: PreparedLaunch, call: DriverCall) -> None:
    """Give a prepared launch another driver call: the content of a cell of its function."""
    function = cast(FunctionType, prepared)  # what `LauncherState._prepared_launch` made
    assert function.__closure__ is not None
    function.__closure__[function.__code__.co_freevars.index("call")].cell_contents = call
