"""Strategies of Hypothesis for kernels: numbers, arrays, launches, streams and schedules.

`KernelCase` and `verify_kernel` take them as arguments. A test with `hypothesis.given` uses the
`strategy` of each, or `device_arrays`, `streams` and `schedules`.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ptx.read_only import ReadOnly

from .. import border
from ..emulator.timeline.schedule import Schedule
from ..errors import ArgumentTypeError, ArgumentValueError, RuntimeDependencyUnavailable
from ..launch.config import (
    NO_ATTRIBUTES,
    Extents as LaunchExtents,
    LaunchAttributes,
    LaunchConfig,
)

try:
    from hypothesis import strategies as hypothesis_strategies
except ModuleNotFoundError:
    raise RuntimeDependencyUnavailable(
        'strategies need Hypothesis: pip install "cudadrv[testing]"'
    ) from None
from ..memory.dtypes import checked_dtype

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

    from ptx.signature import KernelSignature

    from ..driver.types import Dim3
    from ..memory.array import DeviceArray
    from ..stream import Context, Stream

__all__ = [
    "ArrayInput",
    "DrawnArray",
    "LaunchConfigs",
    "NumberInput",
    "Size",
    "arrays",
    "device_arrays",
    "launch_configs",
    "numbers",
    "schedules",
    "sizes",
    "streams",
    "unwritten",
]

Host: TypeAlias = npt.NDArray[np.generic]
ValueKind: TypeAlias = Literal["exact", "finite", "special"]
Values: TypeAlias = "ValueKind | tuple[float, float] | SearchStrategy[object]"

_NUMBER: Final = itertools.count()
_MOST_THREADS: Final = 1024
_MOST_BYTES: Final = 1 << 28  # the host and the checks hold several copies of an array
_SEEDS: Final = hypothesis_strategies.integers(0, 1 << 16)
_EXACT: Final = 8
_KINDS: Final[tuple[str, ...]] = ("exact", "finite", "special")
_LINE_BLOCKS: Final = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
_PLANE_BLOCKS: Final = (
    (1, 1), (2, 2), (4, 2), (2, 4), (4, 4), (8, 8), (16, 16), (32, 8), (8, 32), (32, 32),
)  # fmt: skip
_SPACE_BLOCKS: Final = ((1, 1, 1), (2, 2, 2), (4, 2, 1), (1, 2, 4), (4, 4, 4), (8, 8, 8))
UNWRITTEN_BYTE: Final = 0xCD
"""The bytes of memory that nothing has written (docs/orders.md)."""


class Size:
    """An integer that several shapes, launches and arguments of one example share.

    Made by `sizes`. `+`, `-`, `*` and `//` with integers and other sizes give sizes.

    Attributes:
        strategy: draws it; within one example always the same number.
        bounds: the least and the largest number of `sizes`; None of a size that others give.
    """

    __slots__ = ("__weakref__", "_bounds", "_function", "_parts", "_strategy")

    strategy: ReadOnly[SearchStrategy[int]] = ReadOnly("_strategy")
    bounds: ReadOnly[tuple[int, int] | None] = ReadOnly("_bounds")

    def __init__(
        self,
        strategy: SearchStrategy[int],
        bounds: tuple[int, int] | None = None,
        parts: tuple[int | Size, ...] = (),
        function: Callable[..., int] = int,
    ) -> None:
        self._strategy = strategy
        self._bounds: tuple[int, int] | None = bounds
        self._parts = parts
        self._function = function

    @property
    def roots(self) -> tuple[Size, ...]:
        """The sizes of `sizes` that give this one, each once."""
        if not self._parts:
            return (self,)
        roots = (part.roots for part in self._parts if isinstance(part, Size))
        return tuple(dict.fromkeys(itertools.chain.from_iterable(roots)))

    def at(self, numbers: Mapping[Size, int]) -> int | Size:
        """Return the number that it is where its roots are these numbers; itself if one lacks."""
        if not self._parts:
            return numbers.get(self, self)
        parts = [part.at(numbers) if isinstance(part, Size) else part for part in self._parts]
        known = [part for part in parts if not isinstance(part, Size)]
        if len(known) == len(parts):
            return self._function(*known)
        return self._combine(self._function, *parts)

    def _combined(self, function: Callable[[int, int], int], other: int | Size) -> Size:
        other = other if isinstance(other, Size) else operator.index(other)
        return self._combine(function, self, other)

    @staticmethod
    def _combine(function: Callable[..., int], *parts: int | Size) -> Size:
        drawn = hypothesis_strategies.tuples(
            *(
                part.strategy if isinstance(part, Size) else hypothesis_strategies.just(part)
                for part in parts
            )
        )
        return Size(drawn.map(lambda numbers: function(*numbers)), None, parts, function)

    def __add__(self, other: int | Size) -> Size:
        return self._combined(operator.add, other)

    def __sub__(self, other: int | Size) -> Size:
        return self._combined(operator.sub, other)

    def __mul__(self, other: int | Size) -> Size:
        return self._combined(operator.mul, other)

    def __floordiv__(self, other: int | Size) -> Size:
        return self._combined(operator.floordiv, other)

    __radd__ = __add__
    __rmul__ = __mul__


Extent: TypeAlias = int | Size
Extents: TypeAlias = Extent | Sequence[Extent]


def sizes(least: int = 1, most: int = 300) -> Size:
    """Return a size between both numbers.

    Small numbers, and those next to powers of two, come often.
    """
    least, most = border.integer("sizes: least", least), border.integer("sizes: most", most)
    if not 0 <= least <= most:
        raise ArgumentValueError(f"sizes({least}, {most}): give 0 <= least <= most")
    key = f"cudadrv size {next(_NUMBER)}"
    return Size(
        hypothesis_strategies.shared(_drawn_sizes(least, most), key=key), bounds=(least, most)
    )


@hypothesis_strategies.composite
def _drawn_sizes(draw: DrawFn, least: int, most: int) -> int:
    # All ranges begin at `least`, so that shrinking finds the smallest number in each.
    tops = sorted({min(most, least + span) for span in (7, 70, most - least)})
    top = draw(hypothesis_strategies.sampled_from(tops))
    number = draw(hypothesis_strategies.integers(least, top))
    # Drawn for every number: shrinking a number must not shift the choices after it.
    if draw(hypothesis_strategies.booleans()) and number:
        power = 1 << (number.bit_length() - 1)
        near = [
            near_power
            for near_power in (power - 1, power, power + 1)
            if least <= near_power <= number
        ]
        return max(near, default=number)
    return number


def extents_of(name: str, shape: object) -> tuple[Extent, ...]:
    """Return the extents of a shape, which may be one number.

    Raises:
        ArgumentTypeError: an extent is neither an integer nor a `Size`.
    """
    extents = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    for extent in extents:
        if not isinstance(extent, (int, np.integer, Size)):
            raise ArgumentTypeError(
                f"{name} has {border.shown(extent)}: give integers, or sizes of `sizes`"
            )
    # The loop has checked each.
    return tuple(extent if isinstance(extent, Size) else int(extent) for extent in extents)


def extents_at(extents: Sequence[Extent], numbers: Mapping[Size, int]) -> tuple[Extent, ...]:
    """Return extents with numbers in place of sizes."""
    return tuple(each.at(numbers) if isinstance(each, Size) else each for each in extents)


def drawn_extents(draw: DrawFn, extents: Sequence[Extent]) -> tuple[int, ...]:
    """Draw the numbers of extents."""
    return tuple(
        draw(extent.strategy) if isinstance(extent, Size) else extent for extent in extents
    )


@dataclass(frozen=True, slots=True)
class DrawnArray:
    """The contents of an array argument of one example.

    Attributes:
        contents: what the kernel finds; of an unwritten array the bytes of fresh memory.
        is_written: False if nothing writes it before the kernel.
    """

    contents: Host
    is_written: bool = True


class NumberInput:
    """A number that a kernel takes by value; made by `numbers`.

    Attributes:
        dtype: of the number.
        values: the possible numbers, as given to `numbers`.
    """

    __slots__ = ("__weakref__", "_dtype", "_values")

    dtype: ReadOnly[np.dtype[Any]] = ReadOnly("_dtype")
    values: ReadOnly[Values] = ReadOnly("_values")

    def __init__(self, dtype: npt.DTypeLike, values: Values) -> None:
        self._dtype: np.dtype[Any] = checked_dtype(dtype)  # of any kind of number
        self._values = _checked_values("numbers", values)

    @property
    def strategy(self) -> SearchStrategy[np.generic]:
        """Draws a NumPy scalar."""
        scalar = self._dtype.type
        return _elements(self._dtype, self._values).map(scalar)


class ArrayInput:
    """An array of device memory; made by `arrays` and `unwritten`.

    Attributes:
        dtype: of its elements.
        shape: its extents, each an integer or a `Size`.
        values: the contents, as given to `arrays`.
        is_written: False if nothing writes it before the kernel.
    """

    __slots__ = ("__weakref__", "_dtype", "_is_written", "_shape", "_values")

    dtype: ReadOnly[np.dtype[Any]] = ReadOnly("_dtype")
    shape: ReadOnly[tuple[Extent, ...]] = ReadOnly("_shape")
    values: ReadOnly[Values] = ReadOnly("_values")
    is_written: ReadOnly[bool] = ReadOnly("_is_written")

    def __init__(
        self, dtype: npt.DTypeLike, shape: Extents, values: Values, *, is_written: bool
    ) -> None:
        self._dtype: np.dtype[Any] = checked_dtype(dtype)  # of any kind of number
        self._shape: tuple[Extent, ...] = extents_of("the shape of an array", shape)
        self._values = _checked_values("arrays", values)
        self._is_written = is_written

    def at(self, numbers: Mapping[Size, int]) -> ArrayInput:
        """Return the array whose sizes are these numbers."""
        shape = extents_at(self._shape, numbers)
        return ArrayInput(self._dtype, shape, self._values, is_written=self._is_written)

    @property
    def strategy(self) -> SearchStrategy[DrawnArray]:
        """Draws the array's contents."""
        return _drawn_arrays(self)


@hypothesis_strategies.composite
def _drawn_arrays(draw: DrawFn, array_input: ArrayInput) -> DrawnArray:
    shape = drawn_extents(draw, array_input.shape)
    if min(shape, default=0) < 0:
        raise ArgumentValueError(f"the shape of an array is {shape}: give sizes of 0 or more")
    count = math.prod(shape)
    nbytes = count * array_input.dtype.itemsize
    if nbytes > _MOST_BYTES:
        raise ArgumentValueError(
            f"an array of shape {shape} has {nbytes} bytes: draw at most {_MOST_BYTES}"
        )
    if not array_input.is_written:
        raw = np.full(nbytes, UNWRITTEN_BYTE, np.uint8)
        return DrawnArray(raw.view(array_input.dtype).reshape(shape), is_written=False)
    return DrawnArray(
        _draw_contents(draw, array_input.dtype, count, array_input.values).reshape(shape)
    )


def numbers(dtype: npt.DTypeLike, values: Values = "exact") -> NumberInput:
    """Return a number for a parameter by value; `values` as for `arrays`."""
    return NumberInput(dtype, values)


def arrays(dtype: npt.DTypeLike, shape: Extents, values: Values = "exact") -> ArrayInput:
    """Return an array for a pointer parameter.

    Args:
        dtype: of the elements.
        shape: integers, and sizes of `sizes`.
        values: "exact": integers from -8 to 8 (0 to 8 of unsigned types), whose sums are exact;
            "finite": all finite values; "special": also NaN, infinities, subnormals and extremes;
            a pair: values from the first to the second; or a strategy that draws an element.
    """
    return ArrayInput(dtype, shape, values, is_written=True)


def unwritten(dtype: npt.DTypeLike, shape: Extents) -> ArrayInput:
    """Return an array that only the kernel writes.

    The check "init" reports a kernel that uses an element before it writes it.
    """
    return ArrayInput(dtype, shape, "exact", is_written=False)


def _checked_values(name: str, values: Values) -> Values:
    if isinstance(values, str) and values not in _KINDS:
        raise ArgumentValueError(
            f"{name}: values={border.shown(values)} is unknown: use {', '.join(_KINDS)}, "
            "(low, high) or a strategy"
        )
    if isinstance(values, tuple) and not values[0] <= values[1]:
        raise ArgumentValueError(
            f"{name}: values={border.shown(values)}: give (low, high) with low <= high"
        )
    return values


def special_values(dtype: np.dtype[np.generic]) -> list[complex]:
    """Return extremes of a type, the simplest first; of floats also NaN, infinities, subnormals."""
    if dtype.kind == "b":
        return [True, False]
    if dtype.kind in "iu":
        limits = np.iinfo(dtype.name)
        signed = [-1] if dtype.kind == "i" else []
        return [1, 0, *signed, limits.max, limits.min, limits.max - 1, limits.min + 1]
    if dtype.kind == "c":
        return [1, 1j, complex(0, math.inf), complex(math.nan, 0)]
    of_floats = np.finfo(dtype.name)
    smallest, smallest_normal = float(of_floats.smallest_subnormal), float(of_floats.tiny)
    largest = float(of_floats.max)
    return [1.0, -1.0, 0.0, -0.0, smallest, -smallest, smallest_normal, largest, -largest,
            math.inf, -math.inf, math.nan]  # fmt: skip


def _elements(dtype: np.dtype[np.generic], values: Values) -> SearchStrategy[object]:
    """Return the strategy of one element."""
    if isinstance(values, tuple):
        low, high = values
        if dtype.kind in "fcV":
            return hypothesis_strategies.floats(low, high)
        return hypothesis_strategies.integers(math.ceil(low), math.floor(high))
    if not isinstance(values, str):
        return values
    if dtype.kind == "b":
        return hypothesis_strategies.booleans()
    if values == "exact":
        lowest = 0 if dtype.kind == "u" else -_EXACT
        return hypothesis_strategies.integers(lowest, _EXACT)
    special = special_values(dtype)
    if values == "finite":
        special = [value for value in special if np.isfinite(value)]
    return hypothesis_strategies.sampled_from(special)


def _draw_contents(draw: DrawFn, dtype: np.dtype[np.generic], count: int, values: Values) -> Host:
    """Draw a pattern for all elements, and one element apart.

    Seed 0 is zeros, 1 counts, others are random: so shrinking ends at the simplest pattern. The
    number of choices is fixed: otherwise shrinking prefers fewer choices to a smaller array.
    """
    if not isinstance(values, (str, tuple)):
        drawn = draw(hypothesis_strategies.lists(values, min_size=count, max_size=count))
        return np.array(drawn, dtype=dtype).reshape(count)
    seed = draw(_SEEDS)
    contents = pattern(dtype, count, values, seed)
    index = draw(hypothesis_strategies.integers(0, count)) - 1  # -1 is no element
    value = draw(_elements(dtype, values))
    if index >= 0:
        contents[index] = np.array(value, dtype)
    return contents


def pattern(dtype: np.dtype[np.generic], count: int, values: Values, seed: int) -> Host:
    """Return elements by a seed: 0 is zeros, 1 counts, others are random."""
    bits = _mixed(seed, count)
    if isinstance(values, tuple):
        low, high = values
        share = {0: np.zeros(count), 1: np.arange(count) % 8 / 8}.get(
            seed, (bits >> np.uint64(11)) * 2.0**-53
        )
        spread = np.asarray(low + (high - low) * share)
        if dtype.kind in "iu":
            spread = np.clip(np.rint(spread), math.ceil(low), math.floor(high))
        return spread.astype(dtype)
    if seed == 0:
        return np.zeros(count, dtype)
    if seed == 1:
        return (np.arange(count) % _EXACT + 1).astype(dtype)
    if dtype.kind in "bcV" or values == "exact":
        signed = dtype.kind not in "ub"
        small = bits % np.uint64(2 * _EXACT + 1 if signed else _EXACT + 1)
        return (small.astype(np.int64) - (_EXACT if signed else 0)).astype(dtype)
    raw = bits.view(np.uint8).reshape(count, 8)[:, : dtype.itemsize]
    pattern: Host = np.ascontiguousarray(raw).view(dtype).reshape(count)
    if values == "finite" and dtype.kind == "f":
        return np.where(np.isfinite(pattern), pattern, np.zeros(1, dtype))
    if values == "special":
        special = np.array(special_values(dtype), dtype)
        chosen = special[(bits >> np.uint64(40)) % np.uint64(len(special))]
        return np.where(bits >> np.uint64(62) == 0, chosen, pattern)
    return pattern


def _mixed(seed: int, count: int) -> npt.NDArray[np.uint64]:
    """Return pseudo-random 64-bit numbers, by SplitMix64: the same with every NumPy."""
    with np.errstate(over="ignore"):
        state = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed << 32)) * np.uint64(
            0x9E3779B97F4A7C15
        )
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return state ^ (state >> np.uint64(31))


@dataclass(frozen=True, slots=True)
class LaunchConfigs:
    """Launch configurations; made by `launch_configs`, which has the fields.

    `base` has everything but the grid, the block and the shared memory of a configuration.
    """

    threads: tuple[Extent, ...]
    blocks: tuple[Extent, ...]
    block: tuple[tuple[Extent, ...], ...]
    shared_bytes: int | Callable[[int], int]
    loops: bool
    base: LaunchConfig

    @classmethod
    def only(cls, config: LaunchConfig) -> LaunchConfigs:
        """Return the strategy of one configuration."""
        return cls((), config.grid, (config.block,), config.shared_bytes, False, config)

    @property
    def extents(self) -> tuple[Extent, ...]:
        """All extents, which are drawn before anything else."""
        return (*self.threads, *self.blocks, *itertools.chain.from_iterable(self.block))

    def at(self, numbers: Mapping[Size, int]) -> LaunchConfigs:
        """Return the configurations where sizes are these numbers."""
        return replace(
            self,
            threads=extents_at(self.threads, numbers),
            blocks=extents_at(self.blocks, numbers),
            block=tuple(extents_at(block, numbers) for block in self.block),
        )

    def strategy(self, signature: KernelSignature | None = None) -> SearchStrategy[LaunchConfig]:
        """Draws a configuration that fits the limits of a kernel (`Kernel.signature`)."""
        return _drawn_configs(self, signature)

    def alternatives(
        self, signature: KernelSignature | None = None
    ) -> SearchStrategy[tuple[LaunchConfig, ...]]:
        """Draws all configurations for the same sizes, those with few threads of a block first."""
        return _drawn_alternatives(self, signature)


@hypothesis_strategies.composite
def _drawn_alternatives(
    draw: DrawFn, configs: LaunchConfigs, signature: KernelSignature | None
) -> tuple[LaunchConfig, ...]:
    threads = drawn_extents(draw, configs.threads)
    blocks = drawn_extents(draw, configs.blocks)
    shapes = tuple(drawn_extents(draw, extents) for extents in configs.block)
    return configs_of(replace(configs, threads=threads, blocks=blocks, block=shapes), signature)


def configs_of(
    configs: LaunchConfigs, signature: KernelSignature | None, further: Sequence[int] = ()
) -> tuple[LaunchConfig, ...]:
    """Return all configurations, those with few threads of a block first.

    All extents must be numbers, as of `LaunchConfigs.at`. `further` has more sizes of blocks of one
    dimension, where the case gives none.
    """
    limit = None if signature is None else signature.max_threads
    most = limit if isinstance(limit, int) else _MOST_THREADS
    required = None if signature is None else signature.required_block
    threads, grid = _known(configs.threads), _known(configs.blocks)
    blocks: Sequence[tuple[int, ...]] = [_known(extents) for extents in configs.block]
    if not blocks and required:
        blocks = [tuple(required)]
    elif not blocks:
        usual = _blocks_for(len(threads or (1,)))
        if len(usual[0]) == 1:
            usual = sorted({*usual, *((size,) for size in further)})
        blocks = [shape for shape in usual if math.prod(shape) <= most]
    shared = configs.shared_bytes
    return tuple(
        replace(
            configs.base,
            grid=_dim3(grid or _grid_of(threads, block, configs.base.cluster)),
            block=_dim3(block),
            shared_bytes=shared if isinstance(shared, int) else shared(math.prod(block)),
        )
        for block in sorted(blocks, key=lambda shape: (math.prod(shape), shape))
    )


def _known(extents: Sequence[Extent]) -> tuple[int, ...]:
    return tuple(extent for extent in extents if not isinstance(extent, Size))


@hypothesis_strategies.composite
def _drawn_configs(
    draw: DrawFn, configs: LaunchConfigs, signature: KernelSignature | None
) -> LaunchConfig:
    # The order of the alternatives is the same for all sizes: a smaller size keeps the block.
    config = draw(hypothesis_strategies.sampled_from(draw(configs.alternatives(signature))))
    if not configs.loops:
        return config
    sides = zip(config.grid, config.cluster or (1, 1, 1), strict=True)
    grid = [
        draw(hypothesis_strategies.integers(1, extent // cluster)) * cluster
        for extent, cluster in sides
    ]
    return replace(config, grid=_dim3(grid))


def launch_configs(
    threads: Extents | None = None,
    *,
    blocks: Extents | None = None,
    block: Extents | Sequence[Extents] | None = None,
    shared_bytes: int | Callable[[int], int] = 0,
    loops: bool = False,
    cooperative: bool = False,
    cluster: LaunchExtents | None = None,
    programmatic: bool = False,
    attributes: LaunchAttributes = NO_ATTRIBUTES,
) -> LaunchConfigs:
    """Return launch configurations.

    Args:
        threads: the least number of threads along x, or (x, y) or (x, y, z); the grid follows.
        blocks: the grid, instead of `threads`.
        block: the threads of a block: an integer, a tuple, or a list of alternatives. Without it
            several sizes are tried.
        shared_bytes: dynamic shared memory; or a function of the threads of a block.
        loops: whether fewer blocks than `threads` needs will do, as for grid-stride loops.
        cooperative, cluster, programmatic, attributes: as of `LaunchConfig`. The grid that follows
            from `threads` is a multiple of `cluster`.

    Raises:
        ArgumentValueError: neither or both of `threads` and `blocks` are given.
        LaunchConfigError: `cluster` or `attributes` are not those of a launch.
    """
    if (threads is None) == (blocks is None):
        raise ArgumentValueError("launch_configs: give threads, or blocks")
    choices: Sequence[object] = block if isinstance(block, list) else [block]
    return LaunchConfigs(
        threads=() if threads is None else extents_of("threads", threads),
        blocks=() if blocks is None else extents_of("blocks", blocks),
        block=() if block is None else tuple(extents_of("block", extents) for extents in choices),
        shared_bytes=shared_bytes,
        loops=loops,
        base=LaunchConfig(
            1,
            1,
            cluster=cluster,
            cooperative=cooperative,
            programmatic=programmatic,
            attributes=attributes,
        ),
    )


def _blocks_for(dimensions: int) -> Sequence[tuple[int, ...]]:
    return ([(size,) for size in _LINE_BLOCKS], _PLANE_BLOCKS, _SPACE_BLOCKS)[dimensions - 1]


def _dim3(extents: Sequence[int]) -> Dim3:
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z


def _grid_of(
    threads: Sequence[int], block: Sequence[int], cluster: Sequence[int] | None
) -> tuple[int, ...]:
    """Return the smallest grid of whole clusters that has at least these threads."""
    grid = []
    for threads_along, block_along, cluster_along in itertools.zip_longest(
        threads, block, cluster or (), fillvalue=1
    ):
        along = block_along * cluster_along
        grid.append(max(1, -(-threads_along // along)) * cluster_along)
    return tuple(grid)


def schedules() -> SearchStrategy[Schedule]:
    """Return a strategy of the emulator's schedules: "immediate", "late", "random" with a seed."""
    seeds = hypothesis_strategies.integers(0, 255)
    return hypothesis_strategies.one_of(
        hypothesis_strategies.sampled_from([Schedule("immediate"), Schedule("late")]),
        seeds.map(lambda seed: Schedule("random", seed)),
    )


def streams(context: Context) -> SearchStrategy[Stream]:
    """Return a strategy of a context's streams: the default one, or a new one."""
    new = hypothesis_strategies.booleans()
    return new.map(lambda is_new: context.new_stream() if is_new else context.default_stream)


def device_arrays(
    stream: Stream,
    dtype: npt.DTypeLike,
    shape: Extents,
    values: Values = "exact",
    *,
    strided: bool = False,
) -> SearchStrategy[DeviceArray[np.generic]]:
    """Return a strategy of arrays in device memory; arguments as for `arrays`.

    With `strided` the array may be every second or third element of a larger one.
    """

    drawn = ArrayInput(dtype, shape, values, is_written=True).strategy
    steps = hypothesis_strategies.integers(1, 3 if strided else 1)

    def on_device(array_and_step: tuple[DrawnArray, int]) -> DeviceArray[np.generic]:
        contents, step = array_and_step[0].contents, array_and_step[1]
        if step == 1 or not contents.ndim:
            return stream.to_device(contents)
        return stream.to_device(np.repeat(contents, step, axis=-1))[..., ::step]

    return hypothesis_strategies.tuples(drawn, steps).map(on_device)
