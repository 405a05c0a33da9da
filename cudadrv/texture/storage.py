"""What the driver holds for arrays, textures and surfaces: raw handles, destroyed once, at the end.

An array's memory is shared: `close` lets go of it, a graph that copies it keeps it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from ..driver.in_use import Bound

if TYPE_CHECKING:
    from ..driver._api import CUresult
    from ..driver.context import Context

_HandleT = TypeVar("_HandleT")


class Storage(Generic[_HandleT]):
    """A handle that is destroyed when the last reference goes.

    cuArrayDestroy and cuMipmappedArrayDestroy wait for the work of the context; the number of a
    texture or surface that is destroyed goes to no other while work is pending (measured with
    driver 580 on an H100). So kernels that are under way never lose what they use.
    """

    __slots__ = ("_destroy", "context", "handle")

    def __init__(
        self, context: Context, handle: _HandleT, destroy: Callable[[_HandleT], tuple[CUresult]]
    ) -> None:
        self.context = context
        self.handle = handle
        self._destroy = destroy

    def __del__(self) -> None:
        try:
            context = self.context
            if not context.closed:
                # An object of the textures is one of the current context.
                with Bound(context.api, context.handle):
                    self._destroy(self.handle)
        except Exception:
            # A finalizer must not raise: the context may be gone, or the interpreter be ending.
            return
