"""`Texture`: memory as kernels read it, with addressing, filtering and conversion.

Combinations that CUDA does not have, or would read differently, are rejected here; which of them
the driver accepts was measured with driver 580.

CUDA Driver API, CUDA_TEXTURE_DESC and CUDA_RESOURCE_DESC; CUDA Programming Guide, "Texture
Fetching".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, ClassVar, Final, TypeAlias

from ptx.read_only import ReadOnly

from .. import border
from ..driver._api import (
    CUDA_RESOURCE_DESC,
    CUDA_TEXTURE_DESC,
    CUaddress_mode,
    CUdeviceptr,
    CUfilter_mode,
    CUresourcetype,
    CUsurfObject,
    CUtexObject,
)
from ..driver.attributes import DeviceAttribute
from ..driver.context import BaseContext
from ..driver.context_handle import ChildHandle, ContextHandle
from ..driver.driver_selection import failure
from ..driver.handle import Closeable, ClosedHandle, check
from ..errors import TextureError
from ..launch.arguments import Argument, KernelObject, Word
from ..memory.array import AnyDeviceArray, DeviceArray
from ..memory.buffer import DeviceData
from ..memory.layout import dense_strides
from ..memory.order import AnyMemory
from .array_layout import Texel
from .cuda_array import CudaArray
from .mipmapped_array import MipmappedArray


class AddressMode(IntEnum):
    """The texel of a coordinate outside of the texture; numbered as CUaddress_mode."""

    WRAP = 0
    """The texture again; needs normalised coordinates."""
    CLAMP = 1
    """The texel at the edge."""
    MIRROR = 2
    """The texture again, every other time reversed; needs normalised coordinates."""
    BORDER = 3
    """The border colour."""


class FilterMode(IntEnum):
    """The texels that a value is made of; numbered as CUfilter_mode."""

    POINT = 0
    """The nearest one."""
    LINEAR = 1
    """The nearest two of each dimension, by weights of 8 fractional bits."""


class ReadMode(Enum):
    """The value that a kernel gets for a texel."""

    ELEMENT = "its value, in its own type; float16 as float"
    NORMALIZED = "8- and 16-bit integers as floats of 0 to 1, signed ones of -1 to 1"


class ViewHandle(ChildHandle[CUtexObject | CUsurfObject]):
    """Owning handle of a texture or surface object; it holds the memory below.

    The driver gives the number of a destroyed object to no other while work is pending (measured
    with driver 580 on an H100).

    Attributes:
        memory: the handle of the array.
    """

    __slots__ = ("memory",)

    def __init__(self, context: ContextHandle, memory: AnyMemory) -> None:
        super().__init__(context)
        self.memory: AnyMemory = memory

    @property
    def number(self) -> int:
        """The object's number, which kernels take."""
        return int(self.raw)

    def _destroy(self) -> None:
        api, raw = self.api, self.raw
        if isinstance(raw, CUtexObject):
            call, (code,) = "cuTexObjectDestroy", self.context.call(api.cuTexObjectDestroy, raw)
        else:
            call, (code,) = "cuSurfObjectDestroy", self.context.call(api.cuSurfObjectDestroy, raw)
        check(self, code, call, f"destroying object {self.number} of device {self.context.ordinal}")


Resource: TypeAlias = CudaArray[Any] | MipmappedArray[Any] | AnyDeviceArray


class TexelView(Closeable, KernelObject):
    """A texture or surface object over an array, which it keeps.

    Attributes:
        context: the context.
        buffer: the array, or the memory of a device array.
        closed: True once it or its array was closed.
    """

    __slots__ = ("_buffer", "_context", "_resource")

    buffer: ReadOnly[CudaArray[Any] | MipmappedArray[Any] | DeviceData] = ReadOnly("_buffer")
    context: ReadOnly[BaseContext] = ReadOnly("_context")

    _handle: ViewHandle
    # True if kernels may write the array.
    _is_written: ClassVar[bool]

    def __init__(self, resource: Resource, box: ViewHandle) -> None:
        self._context: BaseContext = resource.context
        self._resource: Resource | None = resource
        # Its `_handle` owns the memory: a launch compares it first.
        self._buffer: CudaArray[Any] | MipmappedArray[Any] | DeviceData = (
            resource._root if isinstance(resource, DeviceArray) else resource
        )
        if box.memory.public is not None:
            self._own(box)
        else:
            self._own_unrooted(box, box.context)
        self._buffer._adopt(self)
        self._context._adopt(self)

    def __repr__(self) -> str:
        over = "closed" if self.closed else f"over {self.resource!r}"
        return f"<{type(self).__name__} {over}>"

    @property
    def _closed_text(self) -> str:
        subject = f"the {type(self).__name__.lower()} on device {self._context.ordinal}"
        return f"{subject} was closed, or its memory was closed"

    @property
    def closed(self) -> bool:
        """True once it or its array was closed."""
        return super().closed or self._buffer.closed

    @property
    def resource(self) -> Resource | None:
        """The array; None once this is closed."""
        return None if self.closed else self._resource

    @property
    def handle(self) -> int:
        """The object's number, which kernels take as a 64-bit integer.

        Raises:
            ClosedError: it or its array was closed.
        """
        return self._opened.number

    def _as_argument(self, nbytes: int) -> Argument | None:
        if nbytes != 8:
            return None
        opened, memory, writes = self._opened, self._memory, self._is_written
        kind: Word = "surface" if writes else "view"
        return Argument(opened.number, kind, memory, writes=writes, holds=opened)

    @property
    def _opened(self) -> ViewHandle:
        if self.closed:
            raise self._closed_error()
        return self._handle

    @property
    def _memory(self) -> AnyMemory:
        memory = self._buffer._handle
        if isinstance(memory, ClosedHandle):
            raise memory.error_of(self._closed_text)
        return memory

    def close(self) -> None:
        """Release the object; kernels launched before keep it. Idempotent."""
        super().close()
        self._resource = None


# CU_TRSF_*
_AS_INTEGER: Final = 0x01
_NORMALIZED: Final = 0x02
_SRGB: Final = 0x10
_SEAMLESS: Final = 0x40
_MOST_ANISOTROPY: Final = 16
_REPEATING: Final = (AddressMode.WRAP, AddressMode.MIRROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The arguments of a `Texture`, under the same names."""

    address_modes: tuple[AddressMode, ...]
    filter_mode: FilterMode
    read_mode: ReadMode
    normalized_coordinates: bool
    srgb: bool
    border_color: tuple[float, ...] | None
    mip_filter_mode: FilterMode
    mip_bias: float
    mip_levels: tuple[float, float] | None
    max_anisotropy: int
    seamless_cubemap: bool

    def check(self, resource: Resource, texel: Texel) -> None:
        """Raise `TextureError` if the resource cannot be read in this way."""
        for problem in (
            *self._values(texel),
            *self._places(resource, dimensions_of(resource, texel)),
            *self._border(texel),
            *self._levels(resource),
        ):
            raise TextureError(f"a texture over {resource!r}: {problem}")

    def _values(self, texel: Texel) -> Iterator[str]:
        small = texel.dtype.itemsize <= 2
        if self.read_mode is ReadMode.NORMALIZED and texel.is_float:
            yield f"{texel.dtype} cannot be normalized: leave out ReadMode.NORMALIZED"
        elif self.read_mode is ReadMode.NORMALIZED and not small:
            yield f"{texel.dtype} has no normalised form, which is of 8 and 16 bits"
        as_integer = not texel.is_float and self.read_mode is ReadMode.ELEMENT
        if as_integer and FilterMode.LINEAR in (self.filter_mode, self.mip_filter_mode):
            remedy = "use ReadMode.NORMALIZED" if small else "use float32, or FilterMode.POINT"
            yield f"integers are not filtered: {remedy}"
        if self.srgb and (texel.dtype.str[1:] != "u1" or as_integer):
            yield "colours in sRGB are uint8, read with ReadMode.NORMALIZED"

    def _places(self, resource: Resource, dimensions: int) -> Iterator[str]:
        if len(self.address_modes) not in (1, dimensions):
            yield f"it has {dimensions} dimensions to address, not {len(self.address_modes)}"
        repeats = any(mode in _REPEATING for mode in self.address_modes)
        if repeats and not self.normalized_coordinates:
            yield "wrapping and mirroring need normalized_coordinates=True: CUDA would clamp"
        if isinstance(resource, DeviceArray) and dimensions == 1:
            plain = self.filter_mode is FilterMode.POINT and not self.normalized_coordinates
            if not plain or set(self.address_modes) != {AddressMode.CLAMP}:
                yield (
                    "a one-dimensional device array is read by tex1Dfetch alone: by integer, "
                    "without filtering, 0 outside\n  copy it to a CudaArray for more"
                )
        cubemap = not isinstance(resource, DeviceArray) and resource.extents.cubemap
        if self.seamless_cubemap and not cubemap:
            yield "only a cubemap is seamless"
        if not 0 <= self.max_anisotropy <= _MOST_ANISOTROPY:
            yield f"max_anisotropy is 0 to {_MOST_ANISOTROPY}, not {self.max_anisotropy}"

    def _border(self, texel: Texel) -> Iterator[str]:
        color = self.border_color
        if color is None:
            return
        if AddressMode.BORDER not in self.address_modes:
            yield "a border_color is read with AddressMode.BORDER alone"
        if not 1 <= len(color) <= 4:
            yield f"a border_color has 1 to 4 numbers, not {len(color)}"
        if any(color) and not texel.is_float and self.read_mode is ReadMode.ELEMENT:
            yield "CUDA has border colours of floats, and 0 where integers are read as they are"

    def _levels(self, resource: Resource) -> Iterator[str]:
        linear = self.mip_filter_mode is FilterMode.LINEAR
        if not isinstance(resource, MipmappedArray):
            if linear or self.mip_bias or self.mip_levels is not None:
                yield "only a MipmappedArray has levels"
            return
        if not self.normalized_coordinates:
            yield "levels differ in size: use normalized_coordinates=True"
        least, greatest = self.level_range(resource)
        if not 0 <= least <= greatest <= resource.levels - 1 or not math.isfinite(self.mip_bias):
            yield f"levels {least:g} to {greatest:g} of {resource.levels}, counted from 0"

    def modes_of(
        self, resource: Resource, texel: Texel
    ) -> tuple[AddressMode, AddressMode, AddressMode]:
        """Return the address modes along x, y and z.

        Dimensions that the texture does not have get CLAMP: an H100 mixes the border of y
        into one dimension that is filtered.
        """
        dimensions = dimensions_of(resource, texel)
        modes = self.address_modes
        if len(modes) == 1:
            modes *= dimensions
        x, y, z = (*modes[:dimensions], *(AddressMode.CLAMP,) * (3 - dimensions))
        return x, y, z

    def level_range(self, resource: Resource) -> tuple[float, float]:
        """Return the least and the greatest level that is read."""
        if self.mip_levels is not None:
            return self.mip_levels
        return 0.0, resource.levels - 1.0 if isinstance(resource, MipmappedArray) else 0.0

    def flags(self, is_float: bool) -> int:
        """Return the driver's flags."""
        as_integer = self.read_mode is ReadMode.ELEMENT and not is_float
        return (
            _AS_INTEGER * as_integer
            | _NORMALIZED * self.normalized_coordinates
            | _SRGB * self.srgb
            | _SEAMLESS * self.seamless_cubemap
        )


def dimensions_of(resource: Resource, texel: Texel) -> int:
    """Return the number of dimensions, without layers and faces."""
    if isinstance(resource, DeviceArray):
        return resource.ndim - len(texel.axes)
    return len(resource.shape) - resource.extents.has_layers


def describe(resource: Resource, texel: Texel, width: int | None) -> CUDA_RESOURCE_DESC:
    """Return the resource's descriptor.

    Raises:
        TextureError: a device array is not laid out as textures need it.
        ClosedError: the resource was closed.
    """
    result = CUDA_RESOURCE_DESC()
    if isinstance(resource, CudaArray):
        result.resType = CUresourcetype.CU_RESOURCE_TYPE_ARRAY
        result.res.array.hArray = resource.handle
    elif isinstance(resource, MipmappedArray):
        result.resType = CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
        result.res.mipmap.hMipmappedArray = resource.handle
    else:
        _check_start(resource)
        _check_rows(resource)
        if len(texel_shape(resource, texel)) == 1:
            _describe_row(result, resource, texel, width)
        else:
            _describe_rows(result, resource, texel, width)
    return result


def texel_shape(array: AnyDeviceArray, texel: Texel) -> tuple[int, ...]:
    """Return the extents of a device array in texels.

    Raises:
        TextureError: there are not one or two extents, or the channels differ.
    """
    axes = texel.axes
    shape = array.shape[: array.ndim - len(axes)]
    if array.shape[len(shape) :] != axes or not 1 <= len(shape) <= 2 or 0 in shape:
        channels = f" with {texel.channels} channels as its last axis" if axes else ""
        raise TextureError(
            f"a texture over {array!r}: a device array has one or two extents of texels{channels}\n"
            "  for three extents, layers or cubemaps copy it to a CudaArray"
        )
    return shape


def _check_start(array: AnyDeviceArray) -> None:
    alignment = array.context.device.attribute(DeviceAttribute.TEXTURE_ALIGNMENT)
    if array.ptr % alignment:
        raise TextureError(
            f"a texture over {array!r}, which begins at {array.ptr:#x}: it must begin at a "
            f"multiple of {alignment} bytes\n  copy the view to an array of its own"
        )


def _check_rows(array: AnyDeviceArray) -> None:
    dense = dense_strides(array.shape, array.dtype.itemsize)
    is_pitched = array.ndim > 1 and array.strides[1:] == dense[1:] and array.strides[0] > dense[0]
    if not (array.is_contiguous or is_pitched):
        raise TextureError(
            f"a texture over {array!r}: the texels of a row are not contiguous\n"
            "  give its copy by Stream.contiguous"
        )


def _describe_row(
    result: CUDA_RESOURCE_DESC, array: AnyDeviceArray, texel: Texel, width: int | None
) -> None:
    if width is not None:
        raise TextureError(f"width={width} for {array!r}, which has no rows to be padded")
    texels = array.nbytes // texel.nbytes
    most = array.context.device.attribute(DeviceAttribute.MAXIMUM_TEXTURE1D_LINEAR_WIDTH)
    if texels > most:
        raise TextureError(
            f"a texture over {array!r}: the device reads at most {most} texels of plain memory"
        )
    result.resType = CUresourcetype.CU_RESOURCE_TYPE_LINEAR
    linear = result.res.linear
    linear.devPtr, linear.sizeInBytes = CUdeviceptr(array.ptr), array.nbytes
    linear.format, linear.numChannels = texel.format, texel.channels


def _describe_rows(
    result: CUDA_RESOURCE_DESC, array: AnyDeviceArray, texel: Texel, width: int | None
) -> None:
    height, texels = texel_shape(array, texel)
    pitch = array.strides[0]
    device = array.context.device
    alignment = device.attribute(DeviceAttribute.TEXTURE_PITCH_ALIGNMENT)
    if pitch % alignment:
        padded = math.lcm(alignment, texel.nbytes) // texel.nbytes
        padded *= -(-texels // padded)
        raise TextureError(
            f"a texture over {array!r}, whose rows are {pitch} bytes: they must be a multiple of "
            f"{alignment}\n  make the array with {padded} texels a row and give width={texels}, or "
            "copy it to a CudaArray"
        )
    if width is None:
        width = texels
    elif not 1 <= width <= texels:
        raise TextureError(f"width={width} for {array!r}: its rows are of {texels} texels")
    for extent, name in ((width, "WIDTH"), (height, "HEIGHT"), (pitch, "PITCH")):
        most = device.attribute(DeviceAttribute[f"MAXIMUM_TEXTURE2D_LINEAR_{name}"])
        if extent > most:
            raise TextureError(
                f"a texture over {array!r}: the device reads plain memory of at most {most} "
                f"({name.lower()}), not {extent}\n  copy it to a CudaArray"
            )
    result.resType = CUresourcetype.CU_RESOURCE_TYPE_PITCH2D
    rows = result.res.pitch2D
    rows.devPtr, rows.pitchInBytes = CUdeviceptr(array.ptr), pitch
    rows.format, rows.numChannels = texel.format, texel.channels
    rows.width, rows.height = width, height


def texel_of(resource: Resource, channels: int | None) -> Texel:
    """Return the texel of a resource; `channels` are those of a device array.

    Raises:
        TextureError: `channels` differs from the CUDA array's.
        DTypeError: a device array's dtype is no channel type.
    """
    if isinstance(resource, DeviceArray):
        return Texel.of(resource.dtype, 1 if channels is None else channels)
    if not isinstance(resource, (CudaArray, MipmappedArray)):
        raise TextureError(
            f"a texture over a {type(resource).__name__}: it is over a CudaArray, a MipmappedArray "
            "or a DeviceArray"
        )
    if channels is not None and border.int_in_range("channels", channels) != resource.channels:
        raise TextureError(f"channels={channels} for {resource!r}, which has its own")
    return resource.texel


class Texture(TexelView):
    """A CUDA array, a mipmapped one or a device array as kernels read it through a texture.

    Pass it to a kernel as a cudaTextureObject_t. It keeps its array, and closes with it. Over a
    one-dimensional `DeviceArray` it serves tex1Dfetch, over a two-dimensional one tex2D.

    Options that CUDA would silently read differently raise an error: repeating without normalised
    coordinates, which CUDA clamps; filtering of integers that do not become floats; normalised
    floats.

    Args:
        resource: the array to read.
        address_mode: the texels outside; one mode for all dimensions, or one each, x first.
        filter_mode: the nearest texel, or a mixture of the nearest ones.
        read_mode: the texels' own values, or integers of 8 and 16 bits as floats.
        normalized_coordinates: coordinates from 0 to 1 instead of 0 to the extent.
        srgb: 8-bit colours are converted to linear ones, but for a fourth channel.
        border_color: the texel outside with `AddressMode.BORDER`, a number for each channel.
        mip_filter_mode: the nearest level, or a mixture of the nearest two.
        mip_bias: added to the requested level.
        mip_levels: the least and greatest level that is read; all of them if left out.
        max_anisotropy: samples along a stretched footprint, 0 to 16.
        seamless_cubemap: filtering goes on across the edges of a cubemap.
        channels: of a device array, whose last axis they are if there are several.
        width: texels of each row of a device array that count, where its rows are padded.

    Attributes:
        reading: how kernels read it: modes, levels and border.

    Raises:
        TextureError: CUDA has no such texture, or would read it otherwise.
        DTypeError: a device array has no dtype of texels.
        ClosedError: the resource was closed.

    Source: CUDA Driver API, cuTexObjectCreate; CUDA Programming Guide, "Texture Memory".
    """

    __slots__ = ("_reading",)

    reading: ReadOnly[Reading] = ReadOnly("_reading")

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
        self._reading: Reading = Reading(
            address_modes=border.sequence_of("Texture: address_mode", address_mode, AddressMode),
            filter_mode=border.instance_of("Texture: filter_mode", filter_mode, FilterMode),
            read_mode=border.instance_of("Texture: read_mode", read_mode, ReadMode),
            normalized_coordinates=bool(normalized_coordinates),
            srgb=bool(srgb),
            border_color=None if border_color is None else _reals("border_color", border_color),
            mip_filter_mode=border.instance_of(
                "Texture: mip_filter_mode", mip_filter_mode, FilterMode
            ),
            mip_bias=border.real("Texture: mip_bias", mip_bias),
            mip_levels=None if mip_levels is None else _levels(mip_levels),
            max_anisotropy=border.integer("Texture: max_anisotropy", max_anisotropy),
            seamless_cubemap=bool(seamless_cubemap),
        )
        if width is not None:
            width = border.integer("Texture: width", width)
        super().__init__(resource, _created(self._reading, resource, texel, width))


def _reals(name: str, values: Sequence[float]) -> tuple[float, ...]:
    where = f"Texture: {name}"
    return tuple(border.real(where, value) for value in border.sequence_of(where, values, object))


def _levels(mip_levels: Sequence[float]) -> tuple[float, float]:
    levels = _reals("mip_levels", mip_levels)
    if len(levels) != 2:
        raise TextureError(f"mip_levels is {levels}: the least and the greatest level")
    return levels[0], levels[1]


def _created(reading: Reading, resource: Resource, texel: Texel, width: int | None) -> ViewHandle:
    """Make the texture object; its handle holds the memory."""
    descriptor = describe(resource, texel, width)
    reading.check(resource, texel)
    context = resource.context._handle
    memory = resource._memory if isinstance(resource, DeviceArray) else resource._handle
    box = ViewHandle(context, memory)
    native = _native(reading, resource, texel)
    code = box.make(context.api.cuTexObjectCreate, descriptor, native, None)
    if code:
        doing = f"creating a texture over {resource!r}"
        raise failure(context.api, code, "cuTexObjectCreate", doing)
    return box


def _native(reading: Reading, resource: Resource, texel: Texel) -> CUDA_TEXTURE_DESC:
    """Return the driver's descriptor of how a texture is read."""
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
