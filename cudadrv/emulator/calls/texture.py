"""Texture and surface objects.

CUDA Driver API: "Texture Object Management", "Surface Object Management". An object belongs to the
context that is current when it is made. Driver 580 says nothing when another object is destroyed
than a live one of the current context; the emulator refuses it.
"""

from __future__ import annotations

from functools import partial

from ptx.emulate.texture.texture import Image

from ...driver._api import (
    CUDA_RESOURCE_DESC,
    CUDA_RESOURCE_VIEW_DESC,
    CUDA_TEXTURE_DESC,
    CUarray,
    CUresourcetype,
    CUresult,
    CUsurfObject,
    CUtexObject,
)
from ..arrays import ArrayFlags
from ..call_rules import CallRules
from ..contexts import Context
from ..refusal import OK, SUCCESS, Refusal, invalid_value
from ..textures import linear_image, pitched_image, read_texture
from .call import call


class TextureCalls(CallRules):
    """Texture and surface objects."""

    @call(1)
    def cuTexObjectCreate(
        self,
        res_desc: CUDA_RESOURCE_DESC | None,
        tex_desc: CUDA_TEXTURE_DESC | None,
        res_view_desc: CUDA_RESOURCE_VIEW_DESC | None,
        /,
    ) -> tuple[CUresult, CUtexObject]:
        """A texture of the current context; views of another format are not supported."""
        context = self._current()
        kind, levels = self._resource(res_desc, context)
        texture = read_texture(tex_desc, levels, kind)
        if res_view_desc is not None:
            raise Refusal(
                CUresult.CUDA_ERROR_NOT_SUPPORTED, "the emulator takes no views of resources"
            )
        self._refuse_unsafe()
        handle = next(self._handles)
        context.device.model.textures[handle] = texture
        self._texture_owners[handle] = context
        return SUCCESS, CUtexObject(handle)

    @call()
    def cuTexObjectDestroy(self, tex_object: CUtexObject, /) -> tuple[CUresult]:
        """Destroy a texture of the current context; its memory stays."""
        self._destroy_object(int(tex_object), "texture")
        return OK

    @call(1)
    def cuSurfObjectCreate(
        self, res_desc: CUDA_RESOURCE_DESC | None, /
    ) -> tuple[CUresult, CUsurfObject]:
        """A surface of the current context, over an array that was made for it.

        The manual requires CUDA_ARRAY3D_SURFACE_LDST; driver 580 takes any array on an H100.
        """
        context = self._current()
        if res_desc is None or res_desc.resType != CUresourcetype.CU_RESOURCE_TYPE_ARRAY:
            raise invalid_value("a surface is over a CUDA array")
        _, (image,) = self._resource(res_desc, context)
        if ArrayFlags.SURFACE_LDST not in self._array(res_desc.res.array.hArray).layout.flags:
            raise invalid_value("the array was made without CUDA_ARRAY3D_SURFACE_LDST")
        self._refuse_unsafe()
        handle = next(self._handles)
        context.device.model.surfaces[handle] = image
        self._texture_owners[handle] = context
        return SUCCESS, CUsurfObject(handle)

    @call()
    def cuSurfObjectDestroy(self, surf_object: CUsurfObject, /) -> tuple[CUresult]:
        """Destroy a surface of the current context; its memory stays."""
        self._destroy_object(int(surf_object), "surface")
        return OK

    def _destroy_object(self, handle: int, kind: str) -> None:
        context = self._current()
        owner = self._texture_owners.get(handle)
        if owner is not None:
            self._usable(owner)
        if owner is not context:
            raise invalid_value(
                f"{handle:#x} is no live {kind}"
                if owner is None
                else f"the {kind} {handle:#x} belongs to another context than the current one"
            )
        model = context.device.model
        objects = model.textures if kind == "texture" else model.surfaces
        if handle not in objects:
            raise invalid_value(f"{handle:#x} is no live {kind}")
        self._refuse_unsafe()
        if self._texture_owners.pop(handle, None) is None:
            raise invalid_value(f"{handle:#x} is no live {kind}")
        timeline = self._timeline
        if timeline is None:
            del objects[handle]
        else:  # what was launched with it still reads it
            timeline.submit_after_all(context, partial(objects.__delitem__, handle))

    def _resource(
        self, resource: CUDA_RESOURCE_DESC | None, context: Context
    ) -> tuple[CUresourcetype, tuple[Image, ...]]:
        """The kind of a resource, and its images.

        Raises:
            Refusal: CUDA_ERROR_INVALID_VALUE, if a texture cannot read it.
        """
        if resource is None:
            raise invalid_value("the resource's descriptor is null")
        if resource.flags:
            raise invalid_value(f"a resource takes flags 0, not {resource.flags:#x}")
        try:
            kind = resource.resType
        except ValueError as error:
            raise invalid_value(f"the kind of the resource: {error}") from None
        if kind == CUresourcetype.CU_RESOURCE_TYPE_ARRAY:
            return kind, (self._image(resource.res.array.hArray, context),)
        if kind == CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
            found = self._mipmapped_arrays.get(int(resource.res.mipmap.hMipmappedArray))
            if found is None:
                raise invalid_value("the resource is no live mipmapped array")
            self._refuse_other(found.context, context)
            return kind, tuple(level.image for level in found.levels)
        if kind == CUresourcetype.CU_RESOURCE_TYPE_LINEAR:
            return kind, (linear_image(resource, context.device),)
        return kind, (pitched_image(resource, context.device),)

    def _image(self, handle: CUarray, context: Context) -> Image:
        found = self._arrays.get(int(handle))
        if found is None:
            raise invalid_value(f"the resource {int(handle):#x} is no live array")
        self._refuse_other(found.context, context)
        return found.image

    @staticmethod
    def _refuse_other(owner: Context, context: Context) -> None:
        if owner is not context:
            raise Refusal(
                CUresult.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
                "the array belongs to another context than the current one",
            )
