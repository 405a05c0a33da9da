"""What textures and surfaces have in common: a number that kernels take."""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

from ..driver.context import ContextCore
from ..driver.handle import Closed, Closing
from ..errors import ClosedError
from ..memory.array import AnyDeviceArray, DeviceArray
from ..memory.buffer import DeviceMemory
from ..memory.order import AnyMemory
from .array import CudaArray
from .mipmap import MipmappedArray
from .storage import ViewBox

Resource: TypeAlias = CudaArray[Any] | MipmappedArray[Any] | AnyDeviceArray


class View(Closing):
    """A texture or surface object over some memory, which it keeps.

    Attributes:
        context: the context.
        closed: whether it was closed, or what it is over.
    """

    __slots__ = ("_resource", "buffer", "context")

    _box: ViewBox
    # How kernels use the memory.
    _is_written: ClassVar[bool]

    def __init__(self, resource: Resource, box: ViewBox) -> None:
        self.context: ContextCore = resource.context
        self._resource: Resource | None = resource
        # What has the memory's box, for the quick test of a launch.
        self.buffer: CudaArray[Any] | MipmappedArray[Any] | DeviceMemory = (
            resource._root if isinstance(resource, DeviceArray) else resource
        )
        if box.memory.public:
            self._own(box)
        else:
            self._own_unrooted(box)
        self.buffer._adopt(self)
        self.context._adopt(self)

    def __repr__(self) -> str:
        over = "closed" if self.closed else f"over {self.resource!r}"
        return f"<{type(self).__name__} {over}>"

    @property
    def _closed_text(self) -> str:
        what = f"the {type(self).__name__.lower()} on device {self.context.ordinal}"
        return f"{what} was closed, or what it was over"

    @property
    def closed(self) -> bool:
        """Whether it was closed, or what it is over."""
        return super().closed or self.buffer.closed

    @property
    def resource(self) -> Resource | None:
        """What it is over; None once it is closed."""
        return None if self.closed else self._resource

    @property
    def handle(self) -> int:
        """The object's number, as kernels have it in a 64-bit integer.

        Raises:
            ClosedError: it was closed, or what it was over.
        """
        return self._opened.number

    @property
    def _opened(self) -> ViewBox:
        if self.closed:
            raise ClosedError(self._closed_text)
        return self._box

    @property
    def _memory(self) -> AnyMemory:
        memory = self.buffer._box
        if isinstance(memory, Closed):
            raise ClosedError(self._closed_text)
        return memory

    def close(self) -> None:
        """Give the object up; kernels that were launched before still have it. Idempotent."""
        super().close()
        self._resource = None
