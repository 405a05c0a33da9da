"""Buffers and images of OpenGL, which the emulator does not have.

CUDA Driver API: "Graphics Interoperability" and "OpenGL Interoperability".
"""

from __future__ import annotations

from ...driver._api import (
    CUarray,
    CUdevice,
    CUdeviceptr,
    CUGLDeviceList,
    CUgraphicsResource,
    CUresult,
    CUstream,
)
from ..call_error import CallError, not_supported
from .call import DriverCalls, call


class OpenGLCalls(DriverCalls):
    """The functions that share memory with OpenGL; each fails."""

    @call
    def cuGLGetDevices(
        self, device_count: int, device_list: CUGLDeviceList, /
    ) -> tuple[CUresult, int, list[CUdevice]]:
        """Return the devices of the current OpenGL context."""
        raise _absent()

    @call
    def cuGraphicsGLRegisterBuffer(
        self, buffer: int, flags: int, /
    ) -> tuple[CUresult, CUgraphicsResource]:
        """Register a buffer."""
        raise _absent()

    @call
    def cuGraphicsGLRegisterImage(
        self, image: int, target: int, flags: int, /
    ) -> tuple[CUresult, CUgraphicsResource]:
        """Register a texture or a renderbuffer."""
        raise _absent()

    @call
    def cuGraphicsUnregisterResource(self, resource: CUgraphicsResource, /) -> tuple[CUresult]:
        """End a registration."""
        raise _absent()

    @call
    def cuGraphicsMapResources(
        self, count: int, resources: CUgraphicsResource, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Map resources, after the earlier work of OpenGL."""
        raise _absent()

    @call
    def cuGraphicsUnmapResources(
        self, count: int, resources: CUgraphicsResource, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Unmap resources, before later work of OpenGL."""
        raise _absent()

    @call
    def cuGraphicsResourceGetMappedPointer(
        self, resource: CUgraphicsResource, /
    ) -> tuple[CUresult, CUdeviceptr, int]:
        """Return address and size of a mapped buffer."""
        raise _absent()

    @call
    def cuGraphicsSubResourceGetMappedArray(
        self, resource: CUgraphicsResource, array_index: int, mip_level: int, /
    ) -> tuple[CUresult, CUarray]:
        """Return the array of a mapped image."""
        raise _absent()


def _absent() -> CallError:
    return not_supported("the emulator has no OpenGL: use a GPU, with an OpenGL context of it")
