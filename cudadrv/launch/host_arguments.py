"""Arguments of a launch that say how the kernel uses an array: `In`, `Out` and `InOut`.

Host arrays are copied to the device and back. That is for short programs and tests: each launch
allocates, copies and waits. A device array in `In` is only read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ptx.read_only import ReadOnly

from .. import border
from ..driver.stream import BaseStream
from ..errors import CopyError, StreamCaptureUnsupportedError
from ..memory.array import AnyDeviceArray, DeviceArray, empty
from ..memory.copy import download_any
from ..memory.dtypes import AnyArray
from ..memory.host_copy import as_array, require_plain, upload

if TYPE_CHECKING:
    import numpy.typing as npt


class HostArgument:
    """A host array in place of a device array; subclasses define the copies.

    Attributes:
        array: the host array; of an `In` it may be a device array, which is not copied.
    """

    __slots__ = ("_array",)

    array: ReadOnly[AnyArray | AnyDeviceArray] = ReadOnly("_array")

    _goes, _comes = False, False

    def __init__(self, array: AnyArray | AnyDeviceArray) -> None:
        self._array: AnyArray | AnyDeviceArray = array

    def __repr__(self) -> str:
        where = "device" if isinstance(self._array, DeviceArray) else "host"
        return f"{type(self).__name__}({where} array {self._array.shape} {self._array.dtype})"


class In(HostArgument):
    """An array that the kernel only reads: ``In(array)``.

    A host array, or NumPy's conversion of the value, is copied to the device when the launch is
    queued, and may be changed as soon as that returns. Changes by the kernel are discarded.

    A device array is used in place, and the launch counts as a read of it, so that launches on
    several streams may read it at once. The kernel must not write it: its parameter is a pointer to
    const, where the type is known.
    """

    __slots__ = ()

    _goes = True

    def __init__(self, array: npt.ArrayLike | AnyDeviceArray) -> None:
        super().__init__(array if isinstance(array, DeviceArray) else as_array(array))


class Out(HostArgument):
    """A host array that the kernel fills: ``Out(array)``. The launch waits until it has arrived.

    Elements that the kernel does not write are undefined afterwards: see `InOut`.
    """

    __slots__ = ()

    array: ReadOnly[AnyArray] = ReadOnly("_array")

    _comes = True

    def __init__(self, array: AnyArray) -> None:
        name = type(self).__name__
        require_plain(border.instance_of(f"{name}: array", array, np.ndarray))
        if not array.flags.writeable:
            raise CopyError(f"{name}: the host array is read-only")
        super().__init__(array)


class InOut(Out):
    """A host array that the kernel reads and writes: ``InOut(array)``. The launch waits for it."""

    __slots__ = ()

    _goes = True


def launch_with(
    stream: BaseStream, args: tuple[object, ...], launch: Callable[[tuple[object, ...]], object]
) -> None:
    """Launch with device memory in place of host arrays, and copy the results back.

    Raises:
        StreamCaptureUnsupportedError: the stream is capturing.
    """
    if stream.capturing:
        raise StreamCaptureUnsupportedError(
            "launching with In, Out or InOut in a capture: a graph cannot wait for the host",
            text="give device arrays, and copy with Stream.copy",
            explained=True,
        )
    placed: dict[HostArgument, tuple[AnyArray, AnyDeviceArray]] = {}
    for argument in args:
        if isinstance(argument, HostArgument) and argument not in placed:
            host = argument.array
            if not isinstance(host, DeviceArray):
                device = empty(stream, host.shape, host.dtype)
                placed[argument] = host, device
                if argument._goes:
                    upload(stream, device, host)
    launch(tuple(_placed(value, placed) for value in args))
    for argument, (host, device) in placed.items():
        if argument._comes:
            download_any(stream, host, device, wait=True)


def _placed(value: object, placed: dict[HostArgument, tuple[AnyArray, AnyDeviceArray]]) -> object:
    pair = placed.get(value) if isinstance(value, HostArgument) else None
    return value if pair is None else pair[1]


def is_copied(value: object) -> bool:
    """Return whether an argument is a host array that the launch copies."""
    return isinstance(value, HostArgument) and not isinstance(value.array, DeviceArray)
