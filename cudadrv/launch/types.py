"""What launching looks like to callers: functions, which `launcher` makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..driver.stream import BaseStream
from .config import LaunchConfig
from .kernel_core import KernelCore
from .parameter_block import ParameterBlock


class KernelLaunch(Protocol):
    """``kernel.launch(stream, config, *args)``."""

    def __call__(self, stream: BaseStream, config: LaunchConfig, *args: object) -> None:
        """Queue the kernel on a stream.

        Memory is waited for, our own and other libraries'. Our own is given back after the
        kernel, whatever is dropped or closed before; other libraries must keep theirs.

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
    has seen, and again when a new kind comes.

    Attributes:
        kernel: the kernel.
        stream: the stream.
        config: the configuration.
        kernel_launch: the same as what `Kernel.launch` may be while it is used with this stream
            and configuration.
    """

    kernel: KernelCore
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

    # An attribute of the function, which is no method.
    @property
    def prepare(self) -> Callable[..., PreparedLaunch]:
        """``prepare(*args)``: the launch with these arguments packed once.

        Calling the result only calls the driver. The arguments are kept alive by the result.

        Raises:
            ArgumentError: as a call would.
        """


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
        """Launch.

        Raises:
            ClosedError: the stream, the module or an array among the arguments was closed.
        """
