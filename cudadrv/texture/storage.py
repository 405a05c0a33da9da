"""What the driver holds for arrays, textures and surfaces, as boxes.

cuArrayDestroy and cuMipmappedArrayDestroy wait for the work of the context; the number of a texture
or surface that is destroyed goes to no other while work is pending (measured with driver 580 on an
H100). So kernels that are under way never lose what they use.
"""

from __future__ import annotations

from ..driver._api import CUarray, CUmipmappedArray, CUsurfObject, CUtexObject
from ..driver.context_box import ContextBox, Part
from ..driver.handle import check
from ..memory.order import AnyMemory, Memory


class ArrayMemory(Memory[CUarray]):
    """Owns a CUDA array."""

    __slots__ = ()

    def _destroy(self) -> None:
        (code,) = self.context.call(self.api.cuArrayDestroy, self.raw)
        check(self, code, "cuArrayDestroy", f"destroying an array of device {self.context.ordinal}")


class MipmapMemory(Memory[CUmipmappedArray]):
    """Owns a mipmapped array; its levels have this box, too."""

    __slots__ = ()

    def _destroy(self) -> None:
        (code,) = self.context.call(self.api.cuMipmappedArrayDestroy, self.raw)
        doing = f"destroying a mipmapped array of device {self.context.ordinal}"
        check(self, code, "cuMipmappedArrayDestroy", doing)


class ViewBox(Part[CUtexObject | CUsurfObject]):
    """Owns a texture or surface object, and holds the memory it is over.

    Attributes:
        memory: what it is over.
    """

    __slots__ = ("memory",)

    def __init__(self, context: ContextBox, memory: AnyMemory) -> None:
        super().__init__(context)
        self.memory: AnyMemory = memory

    @property
    def number(self) -> int:
        """The object, as kernels have it."""
        return int(self.raw)

    def _destroy(self) -> None:
        api, raw = self.api, self.raw
        if isinstance(raw, CUtexObject):
            call, (code,) = "cuTexObjectDestroy", self.context.call(api.cuTexObjectDestroy, raw)
        else:
            call, (code,) = "cuSurfObjectDestroy", self.context.call(api.cuSurfObjectDestroy, raw)
        check(self, code, call, f"destroying object {self.number} of device {self.context.ordinal}")
