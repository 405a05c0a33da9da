"""Launchers: a kernel bound to a stream and a configuration, with code generated for its arguments.

A launch costs little more than the driver's own call because everything but the values is made
beforehand: one `struct.Struct` packs all parameters into a buffer whose pointer array was built
once, and one generated function packs and calls.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Final, TypeAlias, cast

from ..driver._api import CUresult
from ..driver.handle import Closed
from ..driver.in_use import failure
from ..driver.registry import Registry
from ..driver.stream_box import StreamBox
from ..driver.stream_core import StreamCore
from ..errors import ArgumentError, ClosedError
from ..interop.foreign import interface_address, order_after
from ..memory.order import AnyMemory, Memory, note, use
from .arguments import REALS, WHOLE, Argument, Kind, Parameter, ParameterBlock, packer
from .code import LaunchCode, launch_code, prepared_code
from .config import LaunchConfig, native_config
from .kernel_core import KernelCore, ModuleBox
from .types import Launcher, PreparedLaunch

# What packing raises for a value of the wrong kind: no .buffer, not a number, out of range; what is
# closed; and what popping raises when every parameter block is in use by another thread.
_REFUSALS: Final = (AttributeError, TypeError, struct.error, OverflowError, IndexError, ClosedError)
_MISSING: Final = object()

# A driver call with all its arguments, handles among them, whose boxes the launcher holds.
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

    def __init__(
        self,
        kernel: KernelCore,
        stream: StreamCore,
        config: LaunchConfig,
        elsewhere: Callable[..., None],
        *,
        ordered: bool,
    ) -> None:
        self.kernel = kernel
        self._stream = stream
        self._config = config
        # Held as long as launches may be made with their handles; None once one was closed.
        self._own: StreamBox | None = stream._box
        self._loaded: ModuleBox | None = kernel._module._box
        self._use = _use_ordered if ordered else _use_unordered
        self._native = native_config(config, stream._box)
        self._blocks: _Blocks = []
        self._kinds: tuple[Kind, ...] | None = None
        self._version = 0
        self._packers: dict[tuple[Kind, ...], struct.Struct] = {}
        self._prepared: Registry[PreparedLaunch] = Registry()
        self._globals: dict[str, object] = {
            "__builtins__": {},
            "slowly": self._launch_slowly,
            "fail": self._fail,
            "elsewhere": elsewhere,
            "own_stream": stream,
            "own": self._own,
            "own_config": config,
            "module": kernel._module,
            "loaded": self._loaded,
            "follow": partial(self._follow, writes=True),
            "follow_reading": partial(self._follow, writes=False),
            "interface_address": interface_address,
            "order_after": order_after,
            "REFUSALS": _REFUSALS,
            "int": int,
            "float": float,
            "WHOLE": WHOLE,
            "REALS": REALS,
        }
        for number, parameter in enumerate(kernel.parameters):
            self._globals[f"convert{number}"] = partial(self._convert, parameter)
        launch = FunctionType(SLOW[0], self._globals)
        kernel_launch = FunctionType(SLOW[1], self._globals)
        self._functions = launch, kernel_launch
        # Given its attributes, the function is what the protocol says.
        launch.__dict__ |= {
            "kernel": kernel, "stream": stream, "config": config, "prepare": self._prepare,
            "kernel_launch": kernel_launch,
        }  # fmt: skip
        self.launcher = cast("Launcher", launch)
        stream.context.device.driver.launchers.add(self)

    def renew(self) -> None:
        """Take the driver's functions anew, for whoever has put others in their place."""
        self._blocks = []
        if self._version:
            assert self._kinds is not None  # code was made for them
            self._generate(self._kinds)
        for prepared in self._prepared.alive():
            # What `_prepare` made is a function.
            scope = cast(FunctionType, prepared).__globals__
            scope["call"] = self._driver_call(prepared.block)

    def let_go(self, owner: object) -> None:
        """Take the slow way, which finds the words, as `owner` was closed; hold nothing of it.

        A call under way holds what it uses in its own names.
        """
        if owner is not self._stream and owner is not self.kernel._module:
            return
        self._blocks = []
        self._version = 0
        self._own = self._loaded = None
        for prepared in self._prepared.alive():
            scope = cast(FunctionType, prepared).__globals__
            scope |= {"own": None, "loaded": None, "call": None}
        self._globals |= {"own": None, "loaded": None}
        for function, code in zip(self._functions, SLOW, strict=True):
            function.__code__ = code
        self.kernel._forget(self.launcher)

    def _prepare(self, *args: object) -> PreparedLaunch:
        read, block = self._pack(args)
        scope: dict[str, object] = {
            name: self._globals[name]
            for name in (
                "__builtins__", "fail", "own_stream", "own", "module", "loaded", "follow",
                "follow_reading",
            )
        }  # fmt: skip
        scope |= {f"a{number}": value for number, value in enumerate(args)}
        code = prepared_code(tuple(argument.kind for argument in read))
        launch = FunctionType(code, scope)
        # Given its attributes, the function is what the protocol says.
        prepared = cast("PreparedLaunch", launch)
        prepared.launcher, prepared.args_kept, prepared.block = self.launcher, args, block
        scope["call"] = self._driver_call(block)
        scope["slowly"] = partial(self._launch_prepared, args, block)
        self._prepared.add(prepared)
        return prepared

    def _launch_prepared(self, args: tuple[object, ...], block: ParameterBlock) -> None:
        """Launch what is packed, with what quick tests refused: find out why, and order it."""
        read, _ = self._pack(args)
        self._launch(read, self._driver_call(block))

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
        for function in self._functions:  # before the code that counts on it
            function.__defaults__ = (_MISSING,) * len(kinds)
        for function, code in zip(self._functions, launch_code(kinds, version), strict=True):
            function.__code__ = code

    def _launch_slowly(self, *args: object) -> None:
        """Check, pack and launch with whatever `args` are; from the second time on make code."""
        while args and args[-1] is _MISSING:
            args = args[:-1]
        read, block = self._pack(args)
        call = self._driver_call(block)
        self._launch(read, call)
        if self._stream._box is not self._own:
            return  # in a capture, or closed since
        self._blocks.append((block.buffer, call, block))
        kinds = tuple(argument.kind for argument in read)
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

    def _launch(self, read: list[Argument], call: DriverCall) -> None:
        """Order the stream after what the arguments wait for, and launch."""
        box: StreamBox = self._stream._box
        for argument in read:
            if argument.memory is not None:
                self._use(argument.memory, box, argument.writes)
        if box.capture is not None:
            box.capture.keeps += [
                self.kernel._module._box,
                *(a.holds for a in read if a.holds is not None),
            ]
        held = self._own, self._loaded  # until it is queued
        (code,) = call()
        del held
        if code:
            raise self._failure(code)

    def _follow(self, memory: AnyMemory | Closed, *, writes: bool) -> bool:
        """Make memory of another home ready; False leaves the words to the slow path."""
        own = self._own
        if own is None or not isinstance(memory, Memory):
            return False
        if memory.context is not own.context:
            return False
        self._use(memory, own, writes)
        return True

    def _convert(self, parameter: Parameter, value: object) -> tuple[bytes, Argument]:
        """The bytes of a value of any kind, its memory made ready; and what to hold."""
        argument = parameter.read(value, self._stream)
        if argument.memory is not None:
            self._use(argument.memory, self._stream._box, argument.writes)
        return parameter.packed(argument), argument

    def _pack(self, args: tuple[object, ...]) -> tuple[list[Argument], ParameterBlock]:
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
        block = self.kernel._new_block()
        fitting = self._packers.get(kinds)
        if fitting is None:
            fitting = packer(parameters, kinds, self.kernel.parameter_bytes)
            self._packers[kinds] = fitting
        fitting.pack_into(block.buffer, 0, *(argument.value for argument in read))
        return read, block

    def _driver_call(self, block: ParameterBlock) -> DriverCall:
        handle = self.kernel.handle  # raises once the module is closed
        api = self._stream._box.api  # raises once the stream is closed
        # This call takes the configuration as it is, where cuLaunchKernel converts nine numbers. A
        # partial costs less than loading the arguments for each call.
        return partial(api.cuLaunchKernelEx, self._native, handle, block.address, 0)

    def _failure(self, code: CUresult) -> Exception:
        doing = f"launching kernel {self.kernel.name!r} with {self._config} on {self._stream!r}"
        return failure(self._stream.context._api, code, "cuLaunchKernelEx", doing)

    def _fail(self, code: CUresult) -> None:
        raise self._failure(code)


def _use_ordered(memory: AnyMemory, stream: StreamBox, writes: bool) -> None:
    use(memory, stream, writes=writes)


def _use_unordered(memory: AnyMemory, stream: StreamBox, writes: bool) -> None:
    note(memory, stream)
