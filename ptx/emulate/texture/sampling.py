"""One texture fetch: from coordinates to a kernel's results, for many threads at once.

PTX ISA, "tex" (`.level`, `.grad`); CUDA programming guide, "Texture Fetching", "Cubemap Textures".
All other behaviour was measured on an H100.

**Mipmaps.** A level counts in 256ths: the level of the instruction and the texture's bias are each
cut to that, then added and clamped. With gradients the level is the logarithm of the longest
distance across the texels of a pixel, estimated without squares. It is correct to 2/256 of a level,
and mostly exact.

**Cubemaps.** Where two coordinates are equally large, z goes before y, and y before x. Directions
that are infinite, NaN or longer than 2**126 have no meaning; a GPU finds other texels for them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ptx.emulate.memory.texture_object import AddressMode, TexelImage, TextureObject
from ptx.emulate.texture.texels import (
    FRACTION,
    Bools,
    Doubles,
    Floats,
    Integers,
    Slice,
    TexelAxis,
    Texels,
    Words,
    as_read,
    blended,
    can_filter,
    nearest,
    pair,
    slice_reach,
    slice_weights,
    split_weight,
    stored,
    with_border,
)

Gradient = tuple[Floats, ...]  # a derivative of each coordinate

_MOST = 2.0**10
_DIGITS = 9  # of a gradient that count, after the first
_LEAST = 2.0**-60
_LONGEST = 2.0**60


def _table() -> Integers:
    """256ths of the logarithm to base 2 of 1 + i/256, as they are built into the GPU."""
    steps = np.arange(256)
    logarithms: Integers = np.rint(256 * np.log2(1 + (steps + 0.469) / 256)).astype(np.int64)
    logarithms[0], logarithms[255] = 0, 255
    return logarithms


_LOGARITHM = _table()


def _in_steps(value: Any) -> Any:
    """A level in 256ths, cut towards zero; NaN is 0."""
    value = np.where(np.isnan(value), 0.0, np.clip(value, -_MOST, _MOST))
    return np.trunc(value * FRACTION).astype(np.int64)


def _level(texture: TextureObject, steps: Integers) -> tuple[Integers, Integers]:
    least = int(_in_steps(np.float64(texture.min_level)))
    most = int(_in_steps(np.float64(texture.max_level)))
    last = FRACTION * (len(texture.levels) - 1)
    steps = np.clip(np.minimum(np.maximum(steps, least), most), 0, last)
    if texture.mip_linear:
        return steps >> 8, steps & (FRACTION - 1)
    return (steps + FRACTION // 2) >> 8, np.zeros_like(steps)


def base_level(texture: TextureObject, count: int) -> tuple[Integers, Integers]:
    """The level that a fetch without one reads, and the next one's weight; no bias is added."""
    return _level(texture, np.zeros(count, dtype=np.int64))


def biased_level(texture: TextureObject, level: Floats) -> tuple[Integers, Integers]:
    """The first level to read for each thread, and the weight of the next one, of `FRACTION`."""
    return _level(texture, _in_steps(level) + int(_in_steps(np.float64(texture.mip_bias))))


def gradient_level(texture: TextureObject, dx: Gradient, dy: Gradient) -> tuple[Integers, Integers]:
    """Return the level from the change of coordinates between a pixel and its neighbours."""
    image = texture.levels[0]
    first = _in_texels(texture, image, dx)
    second = _in_texels(texture, image, dy)
    sums = [a + b for a, b in zip(first, second, strict=True)]
    across = [a - b for a, b in zip(first, second, strict=True)]
    longest = np.maximum(
        np.maximum(_length(first), _length(second)),
        11 / 16 * np.maximum(_length(sums), _length(across)),
    )
    mantissa, exponent = np.frexp(np.clip(longest, _LEAST, _LONGEST))
    step = ((2 * mantissa - 1) * 256).astype(np.int64)
    steps = (exponent.astype(np.int64) - 1) * FRACTION + _LOGARITHM.take(step)
    return _level(texture, steps + int(_in_steps(np.float64(texture.mip_bias))))


def _in_texels(texture: TextureObject, image: TexelImage, gradient: Gradient) -> list[Doubles]:
    extents = (image.width, image.height, image.depth)
    scaled = []
    for value, extent in zip(gradient, extents, strict=False):
        wide = value.astype(np.float64) * (extent if texture.normalized_coordinates else 1)
        wide = np.clip(np.where(np.isnan(wide), 0.0, wide), -_LONGEST, _LONGEST)
        mantissa, exponent = np.frexp(wide)
        cut = np.trunc(np.ldexp(mantissa, _DIGITS + 1))
        scaled.append(np.ldexp(cut, exponent - _DIGITS - 1))
    return scaled


def _length(vector: list[Doubles]) -> Doubles:
    """About the length: the largest part, 11/32 of the second and 1/4 of the third."""
    parts = np.sort(np.abs(np.stack(vector)), axis=0)[::-1]
    total: Doubles = parts[0].copy()
    for part, share in zip(parts[1:], (11 / 32, 1 / 4), strict=False):
        total += part * share
    return total


FACES = 6
_STEPS = 2.0**21  # of a normalised coordinate, see `face_place`


def _choose(face: Integers, *values: Any) -> Any:  # arrays of any one type
    return np.choose(face, values)


def project(x: Any, y: Any, z: Any) -> tuple[Integers, Any, Any, Any]:  # float arrays of one type
    """Face, coordinates towards right and down on it, and the distance to it."""
    far_x, far_y, far_z = np.abs(x), np.abs(y), np.abs(z)
    along_z = (far_z >= far_x) & (far_z >= far_y)
    along_y = ~along_z & (far_y >= far_x)
    major = np.where(along_z, 2, np.where(along_y, 1, 0))
    negative = _choose(major, x, y, z) < 0
    face: Integers = (2 * major + negative).astype(np.int64)
    right = _choose(face, -z, z, x, x, x, -x)
    down = _choose(face, -y, -y, z, -z, -y, -y)
    return face, right, down, _choose(major, far_x, far_y, far_z)


def face_place(x: Floats, y: Floats, z: Floats) -> tuple[Integers, Floats, Floats]:
    """The face of each direction, and normalised coordinates on it; 0/0 is the middle."""
    with np.errstate(all="ignore"):
        face, right, down, distance = project(x, y, z)
        across, along = _on_face(right / distance), _on_face(down / distance)
    return face, across, along


def _on_face(ratio: Floats) -> Floats:
    """From -1 to 1 to a normalised coordinate, cut to the binary places that one has."""
    ratio = np.where(np.isnan(ratio), np.float32(0), ratio)
    steps = np.floor(ratio.astype(np.float64) * (_STEPS / 2)) + _STEPS / 2
    return (steps / _STEPS).astype(np.float32)


def neighbour(
    face: Integers, column: Integers, row: Integers, extent: int
) -> tuple[Integers, Integers, Integers]:
    """Face, column and row of a texel that may lie beyond one edge of its face by one."""
    right = (2 * column + 1 - extent) / extent
    down = (2 * row + 1 - extent) / extent
    one = np.ones_like(right)
    x = _choose(face, one, -one, right, right, right, -right)
    y = _choose(face, -down, -down, one, -one, -down, -down)
    z = _choose(face, -right, right, down, -down, one, -one)
    other, right, down, distance = project(x, y, z)

    def number(value: Any) -> Integers:
        units = np.floor((value / distance + 1) / 2 * extent).astype(np.int64)
        clipped: Integers = np.clip(units, 0, extent - 1)
        return clipped

    outside = is_outside(column, extent) | is_outside(row, extent)
    return (
        np.where(outside, other, face),
        np.where(outside, number(right), column),
        np.where(outside, number(down), row),
    )


def is_outside(number: Integers, extent: int) -> Bools:
    """Return whether a column or row is not on the face."""
    return (number < 0) | (number >= extent)


@dataclass(frozen=True)
class Fetch:
    """The texels that the threads of an instruction fetch.

    Attributes:
        coordinates: one to three (n,) float32; of a cubemap, on the face.
        layer: (n,) uint32 as the kernel gives it; face: of a cubemap.
        offsets: (n,) int64 texels to add to each coordinate, or none at all.
        first, share: the level to read, and the weight of the next one, of `FRACTION`.
    """

    coordinates: tuple[Floats, ...]
    layer: Integers | None
    face: Integers | None
    offsets: tuple[Integers, ...]
    first: Integers
    share: Integers

    def take(self, positions: Integers) -> Fetch:
        """For some of the threads."""
        return replace(
            self,
            coordinates=tuple(values.take(positions) for values in self.coordinates),
            layer=None if self.layer is None else self.layer.take(positions),
            face=None if self.face is None else self.face.take(positions),
            offsets=tuple(values.take(positions) for values in self.offsets),
            first=self.first.take(positions),
            share=self.share.take(positions),
        )


class LevelReader:
    """Reads the texels of one level for one fetch."""

    def __init__(self, texture: TextureObject, image: TexelImage, fetch: Fetch) -> None:
        self.texture = texture
        self.image = image
        self.fetch = fetch
        self.crosses_edges: bool = image.cube and texture.seamless_cube and texture.linear
        # A texel beyond the edge is not moved inside: BORDER marks it.
        modes = (AddressMode.BORDER,) * 3 if self.crosses_edges else texture.address_modes
        extents = (image.width, image.height, image.depth)
        self.axes: list[TexelAxis] = [
            TexelAxis(extent, mode, texture.normalized_coordinates or image.cube)
            for extent, mode, _ in zip(extents, modes, fetch.coordinates, strict=False)
        ]

    @cached_property
    def layer(self) -> Integers | None:
        """(n,) the layer to read, within the image."""
        fetch, image = self.fetch, self.image
        if fetch.face is None:
            if fetch.layer is None:
                return None
            return np.minimum(fetch.layer, max(image.layers, 1) - 1)
        if fetch.layer is None:
            return fetch.face
        last = image.layers // FACES - 1
        return np.minimum(fetch.layer, last) * FACES + fetch.face

    def offset(self, axis: int) -> Integers | int:
        """(n,) texels to add to a coordinate."""
        return self.fetch.offsets[axis] if self.fetch.offsets else 0

    def texels(self, numbers: list[Integers]) -> Texels:
        """(n, channels) texels by their numbers along each axis, which may be outside."""
        if self.crosses_edges:
            return self._across_edges(*numbers)
        inside: Bools | None = None
        texels_along = []
        for axis, number in zip(self.axes, numbers, strict=True):
            texel, is_inside = axis.inside(number)
            texels_along.append(texel)
            if is_inside is not None:
                inside = is_inside if inside is None else inside & is_inside
        y = texels_along[1] if len(texels_along) > 1 else None
        z = texels_along[2] if len(texels_along) > 2 else self.layer
        return with_border(
            self.texture, self.image, stored(self.image, texels_along[0], y, z), inside
        )

    def _across_edges(self, column: Integers, row: Integers) -> Texels:
        assert self.layer is not None
        layer, extent = self.layer, self.image.width
        face = layer % FACES
        other, x, y = neighbour(face, column, row, extent)
        return stored(self.image, x, y, layer - face + other)

    def nearest(self) -> Texels:
        """(n, channels) the texel that holds the coordinates."""
        return self.texels(
            [
                nearest(axis, coordinate, self.offset(k))
                for k, (axis, coordinate) in enumerate(
                    zip(self.axes, self.fetch.coordinates, strict=True)
                )
            ]
        )

    def linear(self, share: Integers) -> list[Slice]:
        """The texels around the coordinates, weighted by a share of `FRACTION`."""
        pairs = [
            pair(axis, coordinate, self.offset(k))
            for k, (axis, coordinate) in enumerate(
                zip(self.axes, self.fetch.coordinates, strict=True)
            )
        ]
        if len(pairs) == 1:
            return [self._row(pairs[0], share)]
        if len(pairs) < 3:
            return [self._slice(pairs, [], share)]
        number, weight = pairs[2]
        near, far = split_weight(share, weight)
        return [self._slice(pairs[:2], [number + k], part) for k, part in ((0, near), (1, far))]

    def _row(self, pair_x: tuple[Integers, Integers], share: Integers) -> Slice:
        """Two texels of a row, which is one of an image that is one texel high.

        Without layers it is read at its upper edge: if there is a border, half of it counts.
        """
        x, across = pair_x
        texels = [self.texels([x + k]) for k in (0, 1)]
        along = None
        if self.layer is None and self.texture.address_modes[1] is AddressMode.BORDER:
            none_inside = np.zeros(len(x), dtype=np.bool_)
            above = with_border(self.texture, self.image, texels[0], none_inside)
            texels = [above, above, *texels]
            along = np.full_like(across, FRACTION // 2)
        weights = slice_weights(share, across, along)
        return Slice(texels, weights, slice_reach(share, across, along))

    def _slice(
        self, pairs: list[tuple[Integers, Integers]], depth: list[Integers], share: Integers
    ) -> Slice:
        (x, across), (y, along) = pairs
        texels = [self.texels([x + k, y + m, *depth]) for m in (0, 1) for k in (0, 1)]
        weights = slice_weights(share, across, along)
        reached = slice_reach(share, across, along)
        if self.crosses_edges:
            self._share_corners((x, y), weights, reached)
        return Slice(texels, weights, reached)

    def _share_corners(
        self, first: tuple[Integers, Integers], weights: list[Integers], reached: list[Bools]
    ) -> None:
        """At a corner of three faces there is no fourth texel: the others share its weight."""
        extent = self.image.width
        x, y = first
        for corner in range(4):
            missing = is_outside(x + (corner & 1), extent)
            missing &= is_outside(y + (corner >> 1), extent)
            lost = np.where(missing, weights[corner], 0)
            shared = (lost + 1) // 3
            changes = {0: -lost, 1: shared, 2: shared, 3: lost - 2 * shared}
            for step, part in changes.items():
                weights[corner ^ step] = weights[corner ^ step] + part
                if step:
                    reached[corner ^ step] = reached[corner ^ step] | (reached[corner] & missing)
            reached[corner] = reached[corner] & ~missing


def sample(texture: TextureObject, fetch: Fetch) -> Words:
    """(n, channels) uint32: the sample of each thread."""
    first = int(fetch.first[0])
    if len(texture.levels) == 1 or (fetch.first == first).all():
        return _sample_level(texture, fetch, first)
    words = np.empty((len(fetch.first), texture.levels[0].channels), dtype=np.uint32)
    for level in np.unique(fetch.first):
        at_level = (fetch.first == level).nonzero()[0]
        words[at_level] = _sample_level(texture, fetch.take(at_level), int(level))
    return words


def _sample_level(texture: TextureObject, fetch: Fetch, level: int) -> Words:
    images = texture.levels[level : level + 2]
    if not fetch.share.any():
        images = images[:1]
    filters = can_filter(texture, images[0].dtype)
    readers = [LevelReader(texture, image, fetch) for image in images]
    if not filters or (not texture.linear and len(images) == 1):
        return as_read(texture, readers[0].nearest())
    shares = [FRACTION - fetch.share, fetch.share]
    parts: list[Slice] = []
    for reader, share in zip(readers, shares, strict=False):
        if texture.linear:
            parts += reader.linear(share)
        else:
            parts.append(Slice([reader.nearest()], [share], [share > 0]))
    return blended(texture, parts)


def read_level(
    texture: TextureObject,
    numbers: tuple[Integers, ...],
    layer: Integers | None,
    level: Integers,
) -> Words:
    """(n, channels) uint32: texels of each thread's level by their numbers.

    As measured on an H200, numbers are clamped to the level, whatever the address modes are. A
    level that does not exist gives zeros. Filter, bias and clamp of levels do not matter.
    """
    words = np.zeros((len(level), texture.levels[0].channels), dtype=np.uint32)
    for number, image in enumerate(texture.levels):
        at_level = (level == number).nonzero()[0]
        extents = (image.width, image.height or 1, image.depth or 1)
        x, *others = (
            np.clip(axis.take(at_level), 0, extent - 1)
            for axis, extent in zip(numbers, extents, strict=False)
        )
        y = others[0] if others else None
        z = others[1] if len(others) > 1 else None
        if layer is not None:
            z = np.minimum(layer.take(at_level), max(image.layers, 1) - 1)
        words[at_level] = as_read(texture, stored(image, x, y, z))
    return words


def read(texture: TextureObject, numbers: tuple[Integers, ...], layer: Integers | None) -> Words:
    """(n, channels) uint32: texels by their numbers; zeros where there is none.

    Address modes and filter do not matter.
    """
    image = texture.levels[0]
    extents = (image.width, image.height or 1, image.depth or 1)
    inside = np.ones(numbers[0].shape, dtype=np.bool_)
    for number, extent in zip(numbers, extents, strict=False):
        inside &= (number >= 0) & (number < extent)
    if layer is not None:
        inside &= layer < image.layers
        layer = np.where(inside, layer, 0)
    texels_along = [np.where(inside, number, 0) for number in numbers]
    y = texels_along[1] if len(texels_along) > 1 else None
    z = texels_along[2] if len(texels_along) > 2 else layer
    return np.where(
        inside[:, None], as_read(texture, stored(image, texels_along[0], y, z)), 0
    ).astype(np.uint32)


_COMPONENTS = "rgba"
# The four texels in the order of the result: lower left, lower right, upper right, upper left.
_CORNERS = ((0, 1), (1, 1), (1, 0), (0, 0))


def gather(texture: TextureObject, fetch: Fetch, component: str) -> Words:
    """(n, 4) uint32: one channel of the four texels that linear filtering would combine."""
    image = texture.levels[0]
    reader = LevelReader(texture, image, fetch)
    channel = _COMPONENTS.index(component)
    count = len(fetch.first)
    if channel >= image.channels:
        return np.zeros((count, 4), dtype=np.uint32)
    starts = []
    for k, (axis, coordinate) in enumerate(zip(reader.axes, fetch.coordinates, strict=True)):
        free = TexelAxis(axis.extent, AddressMode.BORDER, axis.normalized)
        starts.append(pair(free, coordinate, reader.offset(k))[0])
    columns = [
        as_read(texture, reader.texels([starts[0] + x, starts[1] + y]))[:, channel]
        for x, y in _CORNERS
    ]
    return np.stack(columns, axis=1)


def level_of(
    texture: TextureObject,
    count: int,
    level: Floats | None,
    gradients: tuple[Gradient, Gradient] | None,
) -> tuple[Integers, Integers]:
    """The level that each of so many threads reads, and the weight of the next one."""
    if level is not None:
        return biased_level(texture, level)
    if gradients is not None:
        return gradient_level(texture, *gradients)
    return base_level(texture, count)
