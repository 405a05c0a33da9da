"""Host arrays as arguments of a launch, which copies them to the device and back.

For short programs and tests: each launch allocates, copies and waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ptx.read_only import ReadOnly

from .. import border
from ..driver.stream import BaseStream
from ..errors import CopyError, StreamCaptureUnsupportedError
from ..memory.array import AnyDeviceArray, empty
from ..memory.copy import download_any
from ..memory.dtypes import AnyArray
from ..memory.host_copy import as_array, require_plain, upload

if TYPE_CHECKING:
    import numpy.typing as npt


class HostArgument:
    """A host array in place of a device array; subclasses define the copies.

    Attributes:
        array: the host array.
    """

    __slots__ = ("_array",)

    array: ReadOnly[AnyArray] = ReadOnly("_array")

    _goes, _comes = False, False

    def __init__(self, array: AnyArray) -> None:
        self._array: AnyArray = array

    def __repr__(self) -> str:
        return f"{type(self).__name__}(host array {self._array.shape} {self._array.dtype})"

    def _placed(self, stream: BaseStream) -> AnyDeviceArray:
        """Return device memory of its shape, with its values if the kernel reads them."""
        device = empty(stream, self._array.shape, self._array.dtype)
        if self._goes:
            upload(stream, device, self._array)
        return device


class In(HostArgument):
    """A host array that the kernel reads: ``In(array)``. Changes by the kernel are discarded.

    The array, or NumPy's conversion of it, is copied to the device when the launch is queued, and
    may be changed as soon as that returns.
    """

    __slots__ = ()

    _goes = True

    def __init__(self, array: npt.ArrayLike) -> None:
        super().__init__(as_array(array))


class Out(HostArgument):
    """A host array that the kernel fills: ``Out(array)``. The launch waits until it has arrived.

    Elements that the kernel does not write are undefined afterwards: see `InOut`.
    """

    __slots__ = ()

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
    placed: dict[HostArgument, AnyDeviceArray] = {}
    for argument in args:
        if isinstance(argument, HostArgument) and argument not in placed:
            placed[argument] = argument._placed(stream)
    launch(tuple(placed[value] if isinstance(value, HostArgument) else value for value in args))
    for argument, device in placed.items():
        if argument._comes:
            download_any(stream, argument.array, device, wait=True)
