"""Launchers: a kernel bound to a stream and a configuration, with code generated for its arguments.

A launch costs little more than the driver's own call, as everything except the values is prepared.
One `struct.Struct` packs all parameters into a buffer, whose pointer array is built once. One
generated function packs and calls. `Kernel.bind` checks the configuration first.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from types import CellType, FunctionType
from typing import Any, Final, TypeAlias
from weakref import ref

from ..driver._api import CUfunction, CUresult
from ..driver.call_gate import room_for_one
from ..driver.context_handle import ModuleHandle
from ..driver.driver_selection import failure
from ..driver.handle import FREE_THREADED, ClosedHandle
from ..driver.registry import Registry
from ..driver.stream import BaseStream
from ..driver.stream_handle import StreamHandle
from ..errors import ClosedError, LaunchConfigError
from ..memory.order import AnyMemory, Memory, order_access, record_access
from .arguments import Argument, KernelParameter, Kind
from .code import (
    LaunchCode,
    foreign_names,
    general_names,
    launch_code,
    number_names,
    packing_code,
    prepared_code,
)
from .config import LaunchConfig, native_config
from .host_arguments import is_copied, launch_with
from .parameters import KernelParameters, LaunchSlot, Packing, ParameterBlock

# Packing raises these for a value of the wrong kind (no `_handle`, not a number, out of range) and
# for a closed object. Popping raises IndexError if other threads use every slot.
_ARGUMENT_ERRORS: Final = (
    AttributeError,
    TypeError,
    struct.error,
    OverflowError,
    IndexError,
    ClosedError,
)
_MISSING: Final = object()
# Stays empty: its `pop` raises IndexError.
_NO_CALLS: Final[list[Any]] = []  # Any: slots of launchers, calls of prepared launches


# The code below is never run in this module; these names stand for the globals that it receives.
own_stream: object = None
own_config: object = None


def slow_path(*args: object) -> None:
    """Check, pack and launch."""


def is_own_config(config: object) -> object:
    """Return whether it equals the launcher's configuration; not True for other objects."""
    return config == own_config


def launch_elsewhere(stream: object, config: object, *args: object) -> None:
    """Launch on another stream or with another configuration."""


def _slow(kept: object) -> LaunchCode:
    """Return code for arguments of any number and kind; it takes the five globals above.

    A call under way holds the variable `kept` of its closure, which is its globals. A collection of
    a free-threaded Python 3.14.7 does not count the reference of the call itself. Without the
    variable it clears the globals of a running function that is dropped meanwhile.
    """

    def launcher(*args: object) -> None:
        """Launch with arguments of any number and kind."""
        _ = kept
        slow_path(*args)

    def launch(stream: object, config: object, *args: object) -> None:
        """Launch with arguments of any number and kind, on any stream."""
        _ = kept
        if stream is own_stream and (config is own_config or is_own_config(config) is True):
            slow_path(*args)
        else:
            launch_elsewhere(stream, config, *args)

    return launcher.__code__, launch.__code__


SLOW: Final = _slow(None)


class _PreparedPartial(partial[None]):
    """Calls the function of a prepared launch, and releases its arguments when it is dropped.

    For free-threaded builds of Python, which free a function at the next collection. On others the
    function itself is the prepared launch: it is called in 25 ns less.
    """

    def __del__(self) -> None:
        scope = self.__globals__
        # No launch runs it. Freed by another thread than their own, they exist for a while.
        issued, calls = scope["issued"], list(scope["calls"])
        scope.clear()
        for call in calls:
            issued.discard(call)

    @property
    def __globals__(self) -> dict[str, Any]:
        scope: dict[str, Any] = self.func.__globals__
        return scope


_Prepared: TypeAlias = FunctionType | _PreparedPartial
# The kinds of arguments, their names in a prepared launch, the handles of their memory, and the
# packed block.
_Packed: TypeAlias = tuple[tuple[Kind, ...], dict[str, object], Sequence[object], ParameterBlock]


class LauncherState:
    """The state of a launcher: its slots, and the code made for the kinds of its arguments.

    Args:
        parameters: the kernel's.
        module: the kernel's module; once it is closed, no reference to it stays.
        loaded: returns the kernel's CUfunction and the handle of its module; raises once that was
            closed.
        stream: the stream of the launches.
        config: the configuration of the launches.
        forget: called with the launcher when its stream or module is closed.
        launch_elsewhere: launches on another stream or with another configuration.
        ordered: whether a launch waits for work of other streams on the memory of its arguments.

    Attributes:
        function: the launcher that users call.
        kernel_launch: the function that `Kernel.launch` becomes.
    """

    def __init__(
        self,
        parameters: KernelParameters,
        module: object,
        loaded: Callable[[], tuple[CUfunction, ModuleHandle]],
        stream: BaseStream,
        config: LaunchConfig,
        *,
        forget: Callable[[object], None],
        launch_elsewhere: Callable[..., None],
        ordered: bool,
    ) -> None:
        self._parameters = parameters
        self._loaded = loaded
        self._stream = stream
        self._module = module
        self._forget = forget
        self._config = config
        # Memory ordered on it needs no wait; None once stream or module was closed.
        handle: StreamHandle = stream._handle
        plain = handle if handle.capture is None else handle.own
        self._own: StreamHandle | None = plain
        self._use = _use_ordered if ordered else _use_unordered
        self._native = native_config(config)
        self._native.hStream = handle.raw
        # Those of generated code that no launch uses. A launch under way has its slot.
        self._slots: list[LaunchSlot] = room_for_one()
        # These, and calls of prepared launches, as long as they exist.
        self._issued: Registry[object] = Registry()
        # While a capture waits for launches under way: the lists that they were taken from, and
        # those that were returned.
        self._held_back: list[list[Any]] = []
        self._returned: list[object] = []
        self._kinds: tuple[Kind, ...] | None = None
        # Names in the globals end in the number of their kinds.
        self._versions: dict[tuple[Kind, ...], int] = {}
        self._numbers = itertools.count(1)
        self._has_code = False
        self._prepared: Registry[_Prepared] = Registry()
        self._globals = self._names(launch_elsewhere)
        self._prepared_names: dict[str, object] | None = None
        of_launcher, of_kernel = self._slow_functions()
        self.function: FunctionType = of_launcher
        self.kernel_launch: FunctionType = of_kernel
        self.function.__dict__ |= {
            "stream": stream,
            "config": config,
            "prepare": self._prepare,
            "kernel_launch": self.kernel_launch,
        }
        plain.context._driver.launchers.add(self)
        stream._launchers.add(self)

    def kernel_name(self) -> tuple[int, str]:
        """Return the CUfunction as an integer, and the kernel's name.

        Raises:
            ClosedError: the module was closed.
        """
        return int(self._loaded()[0]), self._parameters.kernel

    def _names(self, launch_elsewhere: Callable[..., None]) -> dict[str, object]:
        """Return the globals of the code that do not depend on the kinds of arguments."""
        return {
            "slow_path": self._launch_slow_path,
            "fail": self._fail,
            "launch_elsewhere": launch_elsewhere,
            "own_stream": self._stream,
            "own": self._own,
            "own_config": self._config,
            "is_own_config": self._config.__eq__,
            "ARGUMENT_ERRORS": _ARGUMENT_ERRORS,
            "WRONG": TypeError,
            "INTERRUPTS": BaseException,
            "__builtins__": {},
        }

    def _names_of_prepared(self) -> dict[str, object]:
        """Make the globals of prepared launches, but for those that each has of its own."""
        self._prepared_names = names = {
            "__builtins__": {}, "fail": self._fail, "NO_CALL": IndexError,
            "INTERRUPTS": BaseException, "calls": _NO_CALLS, "pop": _NO_CALLS.pop, "push": bool,
            "issued": self._issued, **self._follow_names(),
        }  # fmt: skip
        return names

    def _slow_functions(self) -> tuple[FunctionType, FunctionType]:
        """Return functions for arguments of any kind, before those for the kinds in use."""
        of_launcher, of_kernel = [
            FunctionType(code, self._globals, closure=(CellType(self._globals),)) for code in SLOW
        ]
        return of_launcher, of_kernel

    def _follow_names(self) -> dict[str, object]:
        """Return the functions that make memory of other streams ready, and of each parameter."""
        follow = partial(self._follow, writes=True)
        follow_const = partial(self._follow, writes=True, is_const=True)
        return {
            "follow": follow,
            "follow_const": follow_const,
            "follow_reading": partial(self._follow, writes=False),
            **{
                name: follow_const if is_const else follow
                for name, is_const in self._parameters.follow_names
            },
        }

    def reset(self) -> None:
        """Check everything at the next launch, and read the driver's functions again.

        A call under way continues with the former code, and holds the objects it uses.
        """
        # A slot that a call under way returns is dropped; it would hold stream and module.
        for calls in (*self._use_slow_code(bool), *self._held_back, self._returned):
            self._drop(calls)

    def hold_back(self) -> Callable[[], bool]:
        """Let later launches take the slow path, which waits for a capture of the stream.

        Call it while a capture has all passes of the stream, so that no launch becomes quick again.
        Return whether the launches under way are done, as a function.
        """
        # After a wait that failed, launches of that time may still be under way.
        self._held_back += self._use_slow_code(self._returned.append)
        return self._are_done

    def _are_done(self) -> bool:
        self._collect()
        # One that an interrupt loses is freed.
        if len(self._returned) < len(self._issued):
            return False
        self._held_back.clear()
        self._drop(self._returned)
        return True

    def _collect(self) -> None:
        # A thread may have read a former function just before, and return its slot there.
        for calls in self._held_back:
            with suppress(IndexError):
                while True:
                    self._returned.append(calls.pop())

    def _drop(self, calls: list[object]) -> None:
        """Forget those that no launch uses."""
        with suppress(IndexError):
            while True:
                self._issued.discard(calls.pop())

    def _use_slow_code(self, push: Callable[[object], object]) -> list[list[Any]]:
        """Let generated code find no slot and no call, and pass those that it returns to `push`.

        Return the former lists, to which a launch under way may return one all the same.
        """
        self._has_code = False
        former: list[list[Any]] = [self._slots]
        self._slots = room_for_one()
        # The names of the former code refer to the former list.
        for version in list(self._versions.values()):
            self._globals |= {f"pop_{version}": _NO_CALLS.pop, f"push_{version}": push}
        for function, code in zip((self.function, self.kernel_launch), SLOW, strict=True):
            function.__code__ = code
        for prepared in self._prepared.alive():
            scope = prepared.__globals__
            former.append(scope["calls"])
            scope.update(calls=_NO_CALLS, pop=_NO_CALLS.pop, push=push)
        return former

    def on_owner_closed(self, owner: object) -> None:
        """Drop references to a stream or module that was closed, if it is this launcher's."""
        if owner is self._stream or owner is self._module:
            self._own = None
            self.reset()
            # Not None: memory that must be waited for is ordered on None.
            self._globals["own"] = _MISSING
            for prepared in self._prepared.alive():
                prepared.__globals__["own"] = _MISSING
            self._forget(self.function)

    def _prepare(self, *args: object) -> _Prepared:
        kinds, names, parameters, holds = self._pack_prepared(args)
        common = self._prepared_names or self._names_of_prepared()
        scope = {**common, **names, "own": self._own}
        function = FunctionType(prepared_code(kinds), scope)
        launch = _PreparedPartial(function) if FREE_THREADED else function
        # Weakly, so that a dropped object is freed at once, with its arguments.
        scope["slow_path"] = partial(self._launch_prepared, ref(launch))
        # Not `|=`: free-threaded builds keep an assigned dict until the next collection.
        launch.__dict__.update(
            launcher=self.function, args_kept=args, block=parameters, holds=holds
        )
        self._prepared.add(launch)
        gate = self._stream._handle.gate
        passes, mine = gate.passes, gate.try_enter()
        if mine is not None:  # no capture has the stream
            try:
                self._enable_fast_path(scope, self._slot(parameters))
            finally:
                passes.append(mine)
        return launch

    def _pack_prepared(
        self, args: tuple[object, ...]
    ) -> tuple[tuple[Kind, ...], dict[str, object], ParameterBlock, Sequence[object]]:
        """Pack arguments.

        Returns:
            Their kinds, their names in the code, the packed block, and the objects whose addresses
            it has: an argument that is read again may name others.
        """
        packed = self._pack_again(args)
        if packed is not None:
            kinds, names, _, block = packed
            return kinds, names, block, ()  # the code packs our own memory alone
        parameters = self._parameters
        read, block = parameters.pack(args, self._stream)
        kinds = self._expect(read)
        return kinds, dict(zip(parameters.names, args, strict=True)), block, _held(read)

    def _pack_again(self, args: tuple[object, ...]) -> _Packed | None:
        """Pack arguments of the kinds of the last ones of the kernel; None if they differ."""
        parameters = self._parameters
        last = parameters.last
        if last is None or last[1] is None or len(args) != len(last[0]):
            return None
        block = ParameterBlock(parameters.layout)
        packed = last[1](self._stream._handle, block.buffer, *args)
        return None if packed is None else (last[0], *packed, block)

    def _expect(self, read: list[Argument]) -> tuple[Kind, ...]:
        """Let arguments of the kinds of these be packed by code; return the kinds.

        From the second time on, as generating the code costs milliseconds.
        """
        parameters = self._parameters
        kinds, last = tuple([argument.kind for argument in read]), parameters.last
        if last is None or last[0] != kinds:
            parameters.last = kinds, None
        elif last[1] is None:
            parameters.last = kinds, _packing(parameters, kinds)
        return kinds

    def _launch_prepared(self, prepared_launch: Callable[[], _Prepared | None]) -> None:
        """Launch the packed arguments after a fast check failed: order them, or raise."""
        launch = prepared_launch()
        assert launch is not None  # it is running
        read, _ = self._parameters.pack(launch.__dict__["args_kept"], self._stream)
        slot, holds = self._slot(launch.__dict__["block"]), launch.__dict__["holds"]
        self._launch(read, slot, lambda: self._enable_fast_path(launch.__globals__, slot), holds)

    def _enable_fast_path(self, scope: dict[str, Any], slot: LaunchSlot) -> None:
        """Let a prepared launch skip the slow path, if it may; no capture begins meanwhile."""
        if not self._is_quick():
            return
        calls = scope["calls"]
        if calls is _NO_CALLS:
            calls = room_for_one()
            scope.update(calls=calls, pop=calls.pop, push=calls.append, own=self._own)
        # One object for a launch at a time, which has the slot.
        call = partial(slot.call)
        call.slot = slot  # type: ignore[attr-defined]  # partials have a dictionary
        self._issued.add(call)
        calls.append(call)
        if not self._is_quick():  # another thread closed an object
            self.reset()

    def _generate(self, kinds: tuple[Kind, ...]) -> None:
        """Use code for arguments of these kinds from now on, on the present list of slots."""
        parameters, slots = self._parameters, self._slots
        # A thread that still runs the code for other kinds finds the names of that code.
        versions = self._versions
        if not versions:
            self._globals |= general_names(parameters.each, self._convert)
            self._globals |= self._follow_names()
        version = versions.get(kinds) or versions.setdefault(kinds, next(self._numbers))
        self._globals |= {
            f"pack_{version}": parameters.packer(kinds).pack_into,
            f"pop_{version}": slots.pop,
            f"push_{version}": slots.append,
            **number_names(parameters.each, kinds, version),
        }
        self._globals |= foreign_names(parameters.each, kinds, version, self._stream)
        functions = self.function, self.kernel_launch
        for function in functions:  # before the code that relies on it
            function.__defaults__ = (_MISSING,) * len(kinds)
        for function, code in zip(functions, launch_code(kinds, version), strict=True):
            # A copy: the interpreter caches in the code where it found the globals, which differ
            # between launchers.
            function.__code__ = code.replace()
        self._has_code = True

    def _launch_slow_path(self, *args: object) -> None:
        """Check, pack and launch arguments of any kind; from the second time on generate code."""
        while args and args[-1] is _MISSING:
            args = args[:-1]
        is_first = self._kinds is None
        packed = self._pack_again(args) if is_first else None
        if packed is not None:
            kinds, _, memory, parameters = packed
            slot = self._slot(parameters)
            self._launch((), slot, lambda: self._enable_code(kinds, slot))
            del memory  # held until here, whichever thread closes an array meanwhile
            return
        for argument in args:
            if is_copied(argument):
                launch_with(self._stream, args, self._launch_once)
                return
        read, parameters = self._parameters.pack(args, self._stream)
        kinds = self._expect(read) if is_first else tuple([argument.kind for argument in read])
        slot = self._slot(parameters)
        self._launch(read, slot, lambda: self._enable_code(kinds, slot))

    def _enable_code(self, kinds: tuple[Kind, ...], slot: LaunchSlot) -> None:
        """Let the next launch run generated code, if it may; no capture begins meanwhile."""
        if not self._is_quick():
            return
        former_kinds = self._kinds
        if former_kinds is None:
            # Generating costs milliseconds, which a kernel that is launched once never saves.
            self._kinds = kinds
        else:
            pairs = zip(kinds, former_kinds, strict=True)
            self._kinds = kinds = tuple([new if new == old else "raw" for new, old in pairs])
            if kinds != former_kinds or not self._has_code:
                self._generate(kinds)
        if self._has_code and not self._slots:
            self._issued.add(slot)
            self._slots.append(slot)
        if not self._is_quick():  # another thread closed an object
            self.reset()

    def _launch_once(self, args: tuple[object, ...]) -> None:
        """Check, pack and launch."""
        read, parameters = self._parameters.pack(args, self._stream)
        self._launch(read, self._slot(parameters))

    def _is_quick(self) -> bool:
        """Return whether the next launch needs no check of stream, module and event.

        False in a capture, which sets another handle of the stream, and once one was closed.
        """
        return (
            self._own is not None
            and self._stream._handle is self._own
            and self._config.attributes.completion_event is None
        )

    def _launch(
        self,
        read: Sequence[Argument],
        slot: LaunchSlot,
        then: Callable[[], None] | None = None,
        holds: Iterable[object] = (),
    ) -> None:
        """Order the stream after earlier work on the arguments, and launch.

        Args:
            read: the arguments.
            slot: the call, with its parameters.
            then: called after the launch, before another thread's capture may begin.
            holds: further objects that a graph of the launch holds.
        """
        handle: StreamHandle = self._stream._handle
        for argument in read:
            memory = argument.memory
            if memory is not None and memory.ordered_on is not handle:
                self._use(memory, handle, argument.writes)
        if handle.capture is not None:
            handle.capture.keeps += [slot.module, *_held(read), *holds]
        event = self._config.attributes.completion_event
        if event is not None and event.closed:
            raise event._closed_error()
        mine, passes = handle.gate.enter(), handle.gate.passes
        try:
            (code,) = slot.call()
            if not code and then is not None:
                then()
        finally:
            passes.append(mine)
        if code:
            raise self._failure(code)
        if event is not None:
            event._handle.capture = handle.capture

    def _follow(
        self, memory: AnyMemory | ClosedHandle, *, writes: bool, is_const: bool = False
    ) -> bool:
        """Make memory of another stream ready; False leaves the error to the slow path."""
        stream = self._own
        if stream is None or not isinstance(memory, Memory):
            return False
        if not memory.is_open_to(stream.context):
            return False
        if memory.is_read_only:
            if writes and not is_const:
                return False
            writes = False
        self._use(memory, stream, writes)
        return True

    def _convert(self, parameter: KernelParameter, value: object) -> tuple[bytes, Argument]:
        """Return the bytes of a value, its memory made ready; and the objects to hold."""
        argument = parameter.read(value, self._stream)
        if argument.memory is not None:
            self._use(argument.memory, self._stream._handle, argument.writes)
        return parameter.packed(argument), argument

    def _slot(self, parameters: ParameterBlock) -> LaunchSlot:
        """Return a slot, which one launch at a time uses.

        Raises:
            ClosedError: the stream or the module was closed.
        """
        handle, loaded = self._loaded()
        stream: StreamHandle = self._stream._handle
        # This call takes the configuration unchanged, where cuLaunchKernel converts nine numbers. A
        # partial costs less than loading the arguments for each call.
        launch = stream.api.cuLaunchKernelEx
        call = partial(launch, self._native, handle, parameters.address, 0)
        if self._config.attributes.device_updatable:
            call = partial(self._launch_updatable, handle, parameters)
        return LaunchSlot(call, parameters, stream, loaded)

    def _launch_updatable(self, handle: CUfunction, parameters: ParameterBlock) -> tuple[CUresult]:
        """Launch with a new structure: the driver rejects the handle that it has written to one."""
        stream: StreamHandle = self._stream._handle
        native = native_config(self._config)
        native.hStream = stream.raw
        return stream.api.cuLaunchKernelEx(native, handle, parameters.address, 0)

    def _failure(self, code: CUresult) -> Exception:
        doing = (
            f"launching kernel {self._parameters.kernel!r} with {self._config} on {self._stream!r}"
        )
        error = failure(self._stream.context._api, code, "cuLaunchKernelEx", doing)
        is_unsupported = code == CUresult.CUDA_ERROR_NOT_SUPPORTED
        if is_unsupported and self._config.attributes.device_updatable is not None:
            outside = LaunchConfigError(
                f"kernel {self._parameters.kernel!r}: device_updatable is for nodes of a graph\n"
                "  launch it in `with stream.capture()`, or give it to Graph.add_kernel"
            )
            outside.__cause__ = error
            return outside
        return error

    def _fail(self, code: CUresult) -> None:
        raise self._failure(code)


def _packing(parameters: KernelParameters, kinds: tuple[Kind, ...]) -> Packing | None:
    """Return a function that packs arguments of these kinds; None if it knows one of them not."""
    code = packing_code(kinds)
    if code is None:
        return None
    names = general_names(parameters.each)
    names["pack_into"] = parameters.packer(kinds).pack_into
    names |= {"ARGUMENT_ERRORS": _ARGUMENT_ERRORS, "__builtins__": {}}
    return FunctionType(code, names)


def _held(read: Sequence[Argument]) -> list[object]:
    """Return the objects that must live as long as a launch may read the packed arguments."""
    return [argument.holds for argument in read if argument.holds is not None]


def _use_ordered(memory: AnyMemory, stream: StreamHandle, writes: bool) -> None:
    order_access(memory, stream, writes=writes)


def _use_unordered(memory: AnyMemory, stream: StreamHandle, writes: bool) -> None:
    record_access(memory, stream)
