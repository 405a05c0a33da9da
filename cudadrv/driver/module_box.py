"""The driver's modules as boxes: of users' code, and of the few kernels of this library."""

from __future__ import annotations

from ._api import CUmodule
from .context_box import ChildHandle
from .handle import check


class ModuleHandle(ChildHandle[CUmodule]):
    """Owns a loaded module. Unloading it waits for the device (measured with driver 580)."""

    __slots__ = ()

    def _destroy(self) -> None:
        (code,) = self.context.call(self.api.cuModuleUnload, self.raw)
        check(self, code, "cuModuleUnload", f"unloading a module of device {self.context.ordinal}")
