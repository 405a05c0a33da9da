"""Occupancy and roofline bounds of a launch, with their formulas, from its counts.

No number is a measured time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...emulator import CountedLaunch, Counts, EmulatedDevice, InstructionClass, Occupancy
from ...emulator.occupancy import OccupancyLimit, occupancy_limits

SECTOR: Final = 32  # bytes
_SCHEDULERS: Final = 4  # of a multiprocessor; each issues one warp instruction per clock cycle
_DATA_RATE: Final = 2  # transfers of the memory per clock cycle
_SINGLE: Final = (
    InstructionClass.FP32_ADD,
    InstructionClass.FP32_MUL,
    InstructionClass.FP32_FMA,
)
_DOUBLE: Final = (
    InstructionClass.FP64_ADD,
    InstructionClass.FP64_MUL,
    InstructionClass.FP64_FMA,
)


@dataclass(frozen=True, slots=True)
class TimeBound:
    """The least time that some work of a launch needs.

    Attributes:
        work: what is done.
        amount, peak: how much, and how much the device does per second at most.
        amount_formula, peak_formula: both with their numbers.
        unit: of the amount.
    """

    work: str
    amount: int
    peak: float
    amount_formula: str
    peak_formula: str
    unit: str

    @property
    def seconds(self) -> float:
        """The bound."""
        return self.amount / self.peak


@dataclass(frozen=True, slots=True)
class Roofline:
    """Operations by bytes, and the peaks of the device.

    Attributes:
        precision: "single" or "double".
        operations, nbytes: of the launch.
        peak: operations per second; `bandwidth`: bytes per second.
    """

    precision: str
    operations: int
    nbytes: int
    peak: float
    bandwidth: float

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.operations / self.nbytes

    @property
    def ridge(self) -> float:
        """The intensity from which on arithmetic bounds the speed."""
        return self.peak / self.bandwidth

    @property
    def attainable(self) -> float:
        """The most operations per second at the launch's intensity."""
        return min(self.peak, self.intensity * self.bandwidth)


@dataclass(frozen=True, slots=True)
class LaunchBounds:
    """The bounds of equal launches.

    Attributes:
        kernel, grid, block: of the launches; `times`: how many there are.
        static_shared, dynamic_shared: shared memory of a block, in bytes.
        is_failed: whether a fault ended it.
        total: the counts of one of them.
        occupancy: of a multiprocessor.
        limits: what the occupancy follows from.
        bounds: those of work that it did.
        roofline: None without arithmetic or without global memory.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    times: int
    static_shared: int
    dynamic_shared: int
    is_failed: bool
    total: Counts
    occupancy: Occupancy
    limits: tuple[OccupancyLimit, ...]
    bounds: tuple[TimeBound, ...]
    roofline: Roofline | None

    @property
    def slowest(self) -> TimeBound | None:
        """The largest bound."""
        return max(self.bounds, key=lambda bound: bound.seconds, default=None)


def launch_bounds(
    launches: Sequence[CountedLaunch],
    failed: int,
    device: EmulatedDevice,
    static_shared: Mapping[str, int],
) -> tuple[LaunchBounds, ...]:
    """Return the bounds of launches; equal ones are joined.

    Args:
        launches: in their order; the last `failed` ones were ended by a fault.
        device: that they ran on.
        static_shared: the static shared memory of a block, by kernel.
    """
    groups: list[list[CountedLaunch]] = []
    for launch in launches:
        same = (equal for equal in groups if _is_same(equal[0], launch))
        group = next(same, None)
        if group is None:
            groups.append([launch])
        else:
            group.append(launch)
    ended = {id(launch) for launch in launches[len(launches) - failed :]}
    return tuple(
        _bounds_of(
            group[0],
            len(group),
            device,
            static_shared.get(group[0].symbol, 0),
            is_failed=id(group[0]) in ended,
        )
        for group in groups
    )


def _is_same(launch: CountedLaunch, other: CountedLaunch) -> bool:
    return all(
        getattr(launch, name) == getattr(other, name)
        for name in ("symbol", "grid", "block", "shared_bytes", "total")
    )


def _bounds_of(
    launch: CountedLaunch, times: int, device: EmulatedDevice, static: int, *, is_failed: bool
) -> LaunchBounds:
    x, y, z = launch.grid
    used = min(device.sm_count, x * y * z)
    return LaunchBounds(
        launch.kernel,
        launch.grid,
        launch.block,
        times,
        static,
        launch.shared_bytes,
        is_failed,
        launch.total,
        launch.occupancy,
        occupancy_limits(launch, device, static + launch.shared_bytes),
        tuple(bound for bound in _time_bounds(launch.total, device, used) if bound.amount),
        _roofline(launch.total, device, used),
    )


def _bandwidth(device: EmulatedDevice) -> tuple[float, str]:
    rate = _DATA_RATE * device.memory_clock_khz * 1000 * device.memory_bus_bits / 8
    return rate, (
        f"{_DATA_RATE} transfers × {device.memory_clock_khz / 1e6:g} GHz × "
        f"{device.memory_bus_bits:,} bits / 8"
    )


def _arithmetic(counts: Counts, kinds: Sequence[InstructionClass]) -> tuple[int, str]:
    add, multiply, fused = (counts.of(kind).threads for kind in kinds)
    return add + multiply + 2 * fused, f"{add:,} add + {multiply:,} mul + 2 × {fused:,} fma"


def _peak(device: EmulatedDevice, used: int, lanes: float) -> tuple[float, str]:
    return 2 * lanes * used * device.clock_khz * 1000, (
        f"2 per fma × {lanes:g} lanes × {_counted(used, 'multiprocessor')} × "
        f"{device.clock_khz / 1e6:g} GHz"
    )


def _arithmetic_bounds(counts: Counts, device: EmulatedDevice, used: int) -> Iterator[TimeBound]:
    architecture = device.architecture
    for name, kinds, lanes in (
        ("single precision", _SINGLE, float(architecture.single_lanes)),
        ("double precision", _DOUBLE, architecture.single_lanes / architecture.double_ratio),
    ):
        amount, formula = _arithmetic(counts, kinds)
        peak, peak_formula = _peak(device, used, lanes)
        yield TimeBound(name, amount, peak, formula, peak_formula, "operations")


def _time_bounds(counts: Counts, device: EmulatedDevice, used: int) -> tuple[TimeBound, ...]:
    """Return the bounds on a device of whose multiprocessors `used` have a block."""
    sectors = _sectors(counts)
    bandwidth, bandwidth_formula = _bandwidth(device)
    bounds = [
        TimeBound(
            "global memory",
            SECTOR * sectors,
            bandwidth,
            f"{SECTOR} bytes × {_counted(sectors, 'sector')}",
            bandwidth_formula,
            "bytes",
        ),
        *_arithmetic_bounds(counts, device, used),
    ]
    shared = (
        counts.shared_loads.wavefronts
        + counts.shared_stores.wavefronts
        + counts.shared_atomics.turns
    )
    clock = device.clock_khz * 1000
    shown = f"{_counted(used, 'multiprocessor')} × {device.clock_khz / 1e6:g} GHz"
    bounds += [
        TimeBound(
            "shared memory",
            shared,
            used * clock,
            _counted(shared, "wavefront"),
            f"1 × {shown}",
            "wavefronts",
        ),
        TimeBound(
            "instruction issue",
            counts.executed.warps,
            _SCHEDULERS * used * clock,
            f"{_counted(counts.executed.warps, 'PTX instruction')} of warps",
            f"{_SCHEDULERS} schedulers × {shown}",
            "instructions",
        ),
    ]
    return tuple(bounds)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _sectors(counts: Counts) -> int:
    return (counts.global_loads + counts.global_stores + counts.global_copies).sectors


def _roofline(counts: Counts, device: EmulatedDevice, used: int) -> Roofline | None:
    nbytes = SECTOR * _sectors(counts)
    architecture = device.architecture
    single, double = (_arithmetic(counts, kinds)[0] for kinds in (_SINGLE, _DOUBLE))
    if not nbytes or not (single or double):
        return None
    is_double = double > 0  # it is the slower one
    lanes = architecture.single_lanes / (architecture.double_ratio if is_double else 1)
    return Roofline(
        "double" if is_double else "single",
        double if is_double else single,
        nbytes,
        _peak(device, used, lanes)[0],
        _bandwidth(device)[0],
    )
