"""`Texture`: memory as kernels read it, with filtering and a rule for what lies outside."""

from __future__ import annotations

from collections.abc import Sequence

from .. import border
from ..driver._api import CUDA_TEXTURE_DESC, CUaddress_mode, CUfilter_mode
from ..driver.in_use import failure
from ..errors import TextureError
from ..memory.array import DeviceArray
from .modes import AddressMode, FilterMode, ReadMode
from .reading import Reading
from .resource import describe, texel_of
from .storage import ViewBox
from .texel import Texel
from .view import Resource, View


class Texture(View):
    """A CUDA array, a mipmapped one or a device array as kernels read it through a texture.

    It is given to a kernel where a cudaTextureObject_t stands. It keeps what it is over, and closes
    with it. Over a one-dimensional `DeviceArray` it is for tex1Dfetch, over a two-dimensional one
    for tex2D.

    What CUDA reads otherwise than asked is refused: repeating without normalised coordinates, which
    it clamps; integers filtered without becoming floats; floats normalised.

    Args:
        resource: what is read.
        address_mode: what lies outside; one for all dimensions, or one each, x first.
        filter_mode: the nearest texel, or a mixture of the nearest ones.
        read_mode: the texels' own values, or integers of 8 and 16 bits as floats.
        normalized_coordinates: coordinates from 0 to 1 instead of 0 to the extent.
        srgb: 8-bit colours are converted to linear ones, but for a fourth channel.
        border_color: what is outside with `AddressMode.BORDER`, a number a channel.
        mip_filter_mode: the nearest level, or a mixture of the nearest two.
        mip_bias: added to the level asked for.
        mip_levels: the least and greatest level that is read; all of them if left out.
        max_anisotropy: samples along a stretched footprint, 0 to 16.
        seamless_cubemap: filtering goes on across the edges of a cubemap.
        channels: of a device array, whose last axis they are if there are several.
        width: texels of each row of a device array that count, where its rows are padded.

    Raises:
        TextureError: CUDA has no such texture, or would read it otherwise.
        DTypeError: a device array has no dtype of texels.
        ClosedError: the resource was closed.

    Source: CUDA Driver API, cuTexObjectCreate; CUDA Programming Guide, "Texture Memory".
    """

    __slots__ = ("reading",)

    _is_written = False

    def __init__(
        self,
        resource: Resource,
        *,
        address_mode: AddressMode | Sequence[AddressMode] = AddressMode.CLAMP,
        filter_mode: FilterMode = FilterMode.POINT,
        read_mode: ReadMode = ReadMode.ELEMENT,
        normalized_coordinates: bool = False,
        srgb: bool = False,
        border_color: Sequence[float] | None = None,
        mip_filter_mode: FilterMode = FilterMode.POINT,
        mip_bias: float = 0.0,
        mip_levels: tuple[float, float] | None = None,
        max_anisotropy: int = 0,
        seamless_cubemap: bool = False,
        channels: int | None = None,
        width: int | None = None,
    ) -> None:
        texel = texel_of(resource, channels)
        if isinstance(address_mode, AddressMode):
            address_mode = (address_mode,)
        self.reading: Reading = Reading(
            address_modes=border.several("Texture: address_mode", address_mode, AddressMode),
            filter_mode=border.instance("Texture: filter_mode", filter_mode, FilterMode),
            read_mode=border.instance("Texture: read_mode", read_mode, ReadMode),
            normalized_coordinates=bool(normalized_coordinates),
            srgb=bool(srgb),
            border_color=None if border_color is None else _reals("border_color", border_color),
            mip_filter_mode=border.instance(
                "Texture: mip_filter_mode", mip_filter_mode, FilterMode
            ),
            mip_bias=border.real("Texture: mip_bias", mip_bias),
            mip_levels=None if mip_levels is None else _levels(mip_levels),
            max_anisotropy=border.integer("Texture: max_anisotropy", max_anisotropy),
            seamless_cubemap=bool(seamless_cubemap),
        )
        if width is not None:
            width = border.integer("Texture: width", width)
        super().__init__(resource, _created(self.reading, resource, texel, width))


def _reals(name: str, values: Sequence[float]) -> tuple[float, ...]:
    where = f"Texture: {name}"
    return tuple(border.real(where, value) for value in border.several(where, values, object))


def _levels(mip_levels: Sequence[float]) -> tuple[float, float]:
    levels = _reals("mip_levels", mip_levels)
    if len(levels) != 2:
        raise TextureError(f"mip_levels is {levels}: the least and the greatest level")
    return levels[0], levels[1]


def _created(reading: Reading, resource: Resource, texel: Texel, width: int | None) -> ViewBox:
    """The texture object, which holds its memory."""
    descriptor = describe(resource, texel, width)
    reading.check(resource, texel)
    context = resource.context._box
    memory = resource._memory if isinstance(resource, DeviceArray) else resource._box
    box = ViewBox(context, memory)
    native = _native(reading, resource, texel)
    code = box.make(context.api.cuTexObjectCreate, descriptor, native, None)
    if code:
        doing = f"making a texture over {resource!r}"
        raise failure(context.api, code, "cuTexObjectCreate", doing)
    return box


def _native(reading: Reading, resource: Resource, texel: Texel) -> CUDA_TEXTURE_DESC:
    """The driver's words for how a texture is read."""
    result = CUDA_TEXTURE_DESC()
    result.addressMode = [CUaddress_mode(int(mode)) for mode in reading.modes_of(resource, texel)]
    result.filterMode = CUfilter_mode(int(reading.filter_mode))
    result.flags = reading.flags(texel.is_float)
    result.maxAnisotropy = reading.max_anisotropy
    result.mipmapFilterMode = CUfilter_mode(int(reading.mip_filter_mode))
    result.mipmapLevelBias = reading.mip_bias
    result.minMipmapLevelClamp, result.maxMipmapLevelClamp = reading.level_range(resource)
    result.borderColor = [*(*(reading.border_color or ()), 0.0, 0.0, 0.0, 0.0)[:4]]
    return result
