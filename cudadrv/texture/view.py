"""What textures and surfaces have in common: a number that kernels take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeAlias

from ..driver._api import CUsurfObject, CUtexObject
from ..driver.in_use import Handle
from ..errors import ClosedError
from ..memory.array import AnyDeviceArray
from ..memory.buffer import _Addressed
from .array import CudaArray
from .mipmap import MipmappedArray
from .storage import Storage

if TYPE_CHECKING:
    from ..driver.context import Context

Resource: TypeAlias = CudaArray[Any] | MipmappedArray[Any] | AnyDeviceArray


class View(Handle):
    """A texture or surface object over some memory, which it keeps.

    Attributes:
        context: the context.
        resource: what it is over; None once it is closed.
        kernel_handle: what a launch packs: the object's number. `close` takes it away.
        closed: whether it was closed.
    """

    __slots__ = (
        "__weakref__", "_storage", "_watch", "closed", "context", "kernel_handle", "resource",
    )  # fmt: skip

    kernel_handle: int

    def __init__(
        self, resource: Resource, storage: Storage[CUtexObject] | Storage[CUsurfObject]
    ) -> None:
        self.context: Context = resource.context
        self.resource: Resource | None = resource
        self.kernel_handle = int(storage.handle)
        self.closed = False
        self._storage: Storage[CUtexObject] | Storage[CUsurfObject] | None = storage
        self._watch: _Watch | None = None
        if isinstance(resource, (CudaArray, MipmappedArray)):
            resource.adopt(self)
        else:
            self._watch = _Watch(self, resource)
        self.context.adopt(self)

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> object:
            what = type(self).__name__
            if name == "kernel_handle":
                raise ClosedError(
                    f"the {what.lower()} on device {self.context.ordinal} was closed, or what it "
                    "was over"
                )
            raise AttributeError(f"a {what} has no attribute {name!r}")

    def __repr__(self) -> str:
        over = "closed" if self.closed else f"over {self.resource!r}"
        return f"<{type(self).__name__} {over}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def handle(self) -> int:
        """The object's number, as kernels have it in a 64-bit integer.

        Raises:
            ClosedError: it was closed, or what it was over.
        """
        return self.kernel_handle

    def close(self) -> None:
        """Destroy the object; kernels that were launched before still have it. Idempotent."""
        self.discard()
        self._storage = None  # its only reference: destroyed here
        self._watch = None
        self.resource = None

    def discard(self) -> None:
        """Take the number away: the object is destroyed, or its context is."""
        if not self.closed:
            self.closed = True
            del self.kernel_handle


class _Watch(_Addressed):
    """Stands among the arrays of a buffer, so that a view over it closes with its memory.

    A buffer takes its arrays' addresses away when it is closed.
    """

    __slots__ = ("_view",)

    def __init__(self, view: View, array: AnyDeviceArray) -> None:
        self.ptr = array.ptr
        self._view: View | None = view
        array.buffer.adopt(self)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        view, self._view = self._view, None
        if view is not None:
            view.close()
