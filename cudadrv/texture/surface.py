"""`Surface`: a CUDA array as kernels write it."""

from __future__ import annotations

from typing import Any

from ..driver._api import CUDA_RESOURCE_DESC, CUresourcetype
from ..driver.driver_selection import failure
from ..errors import TextureError
from .cuda_array import CudaArray
from .texture import TexelView, ViewHandle


class Surface(TexelView):
    """A CUDA array that kernels read and write at whole coordinates.

    Pass it to a kernel as a cudaSurfaceObject_t; x counts bytes there. It keeps its array, and
    closes with it.

    Args:
        array: a CUDA array made with ``surface=True``, or a level of such a mipmapped array.

    Raises:
        TextureError: the array was made without `surface`.
        ClosedError: it was closed.

    Source: CUDA Driver API, cuSurfObjectCreate.
    """

    __slots__ = ()

    _is_written = True

    def __init__(self, array: CudaArray[Any]) -> None:
        if not isinstance(array, CudaArray):
            raise TextureError(f"a surface over a {type(array).__name__}: it is over a CudaArray")
        if not array.extents.surface:
            raise TextureError(f"a surface over {array!r}: make the array with surface=True")
        memory, context = array._handle, array.context._handle
        resource = CUDA_RESOURCE_DESC()
        resource.resType = CUresourcetype.CU_RESOURCE_TYPE_ARRAY
        resource.res.array.hArray = array.handle
        box = ViewHandle(context, memory)
        code = box.make(context.api.cuSurfObjectCreate, resource)
        if code:
            doing = f"creating a surface over {array!r}"
            raise failure(context.api, code, "cuSurfObjectCreate", doing)
        super().__init__(array, box)
