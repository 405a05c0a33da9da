"""The devices that can be emulated: any, by `EmulatedDevice`, and the profiles of real ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from types import MappingProxyType
from typing import TypedDict

from .. import border
from ..driver._api import CUdevice_attribute
from ..errors import ArgumentValueError
from .architecture import ARCHITECTURES, Architecture

_MIB = 1 << 20
_GIB = 1 << 30
MAX_TOTAL_MEMORY = 1 << 40  # an emulated device's part of the address space
MAX_DEVICES = 64
_GRANULE = 4096
# The driver answers for them with a C int.
_BOUNDED = ("clock_khz", "memory_clock_khz", "memory_bus_bits", "l2_bytes", "copy_engines")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedDevice:
    """A device to emulate. The default is a small device of Hopper's architecture.

    The limits of blocks, threads, registers and shared memory follow from the compute capability;
    `attributes` replaces any of them, or any other attribute, one by one.

    Attributes:
        total_memory: bytes, a multiple of 4,096, at most 1 TiB; costs only what is written.
        clock_khz, memory_clock_khz, memory_bus_bits, l2_bytes: as the attributes give them.
        peer_access: whether it reaches, and is reached by, the memory of the other devices.
        attributes: values that replace those of the profile.

    Raises:
        ValueError: the compute capability is unknown, or a number is out of range.
    """

    name: str = "cudadrv emulated device"
    compute_capability: tuple[int, int] = (9, 0)
    sm_count: int = 16
    total_memory: int = 16 * _GIB
    clock_khz: int = 1_500_000
    memory_clock_khz: int = 1_500_000
    memory_bus_bits: int = 1024
    l2_bytes: int = 32 * _MIB
    ecc: bool = False
    copy_engines: int = 3
    peer_access: bool = True
    attributes: Mapping[CUdevice_attribute, int] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )

    def __post_init__(self) -> None:
        border.text("EmulatedDevice: name", self.name)
        capability = border.several(
            "EmulatedDevice: compute_capability", self.compute_capability, int
        )
        object.__setattr__(self, "compute_capability", capability)
        for name in ("sm_count", "total_memory"):
            border.integer(f"EmulatedDevice: {name}", getattr(self, name))
        for name in _BOUNDED:
            border.whole(f"EmulatedDevice: {name}", getattr(self, name), most=2**31 - 1)
        border.instance("EmulatedDevice: attributes", self.attributes, Mapping)
        for attribute, value in self.attributes.items():
            border.integer("EmulatedDevice: an attribute", attribute)
            border.whole(f"EmulatedDevice: {attribute!r}", value, -(2**31), 2**31 - 1)
        if self.compute_capability not in ARCHITECTURES:
            known = ", ".join(f"{major}.{minor}" for major, minor in ARCHITECTURES)
            raise ArgumentValueError(
                f"no architecture has compute capability {self.compute_capability}: use one of "
                f"{known}"
            )
        if not 1 <= self.sm_count < 1 << 31:
            raise ArgumentValueError(f"sm_count is {self.sm_count}: a device has at least one")
        if not 0 < self.total_memory <= MAX_TOTAL_MEMORY or self.total_memory % _GRANULE:
            raise ArgumentValueError(
                f"total_memory is {self.total_memory}: use a multiple of {_GRANULE} bytes of at "
                f"most {MAX_TOTAL_MEMORY}"
            )
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))

    def __reduce__(self) -> tuple[object, ...]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        # Python pickles no view of a dictionary.
        return partial(EmulatedDevice, **{**values, "attributes": dict(self.attributes)}), ()

    @property
    def architecture(self) -> Architecture:
        """The limits that the compute capability brings."""
        return ARCHITECTURES[self.compute_capability]


class DeviceProperties(TypedDict, total=False):
    """The properties of an `EmulatedDevice`, for the functions that make devices of them."""

    name: str
    compute_capability: tuple[int, int]
    sm_count: int
    total_memory: int
    clock_khz: int
    memory_clock_khz: int
    memory_bus_bits: int
    l2_bytes: int
    ecc: bool
    copy_engines: int
    peer_access: bool
    attributes: Mapping[CUdevice_attribute, int]


# V100, T4, A100 and L4: what deviceQuery prints on them. H100 and H200: read with
# cuDeviceGetAttribute, driver 580. B200: memory is known to a hundredth of a GiB.
V100 = EmulatedDevice(
    name="Tesla V100-SXM2-16GB",
    compute_capability=(7, 0),
    sm_count=80,
    total_memory=16_945_512_448,
    clock_khz=1_530_000,
    memory_clock_khz=877_000,
    memory_bus_bits=4096,
    l2_bytes=6_291_456,
    ecc=True,
    copy_engines=6,
)
T4 = EmulatedDevice(
    name="Tesla T4",
    compute_capability=(7, 5),
    sm_count=40,
    total_memory=15_843_721_216,
    clock_khz=1_590_000,
    memory_clock_khz=5_001_000,
    memory_bus_bits=256,
    l2_bytes=4_194_304,
    ecc=True,
    peer_access=False,
)
A100 = EmulatedDevice(
    name="NVIDIA A100-SXM4-40GB",
    compute_capability=(8, 0),
    sm_count=108,
    total_memory=42_505_273_344,
    clock_khz=1_410_000,
    memory_clock_khz=1_215_000,
    memory_bus_bits=5120,
    l2_bytes=41_943_040,
    ecc=True,
)
L4 = EmulatedDevice(
    name="NVIDIA L4",
    compute_capability=(8, 9),
    sm_count=58,
    total_memory=23_612_293_120,
    clock_khz=2_040_000,
    memory_clock_khz=6_251_000,
    memory_bus_bits=192,
    l2_bytes=50_331_648,
    ecc=True,
    copy_engines=2,
    peer_access=False,
)
H100 = EmulatedDevice(
    name="NVIDIA H100 80GB HBM3",
    compute_capability=(9, 0),
    sm_count=132,
    total_memory=85_017_493_504,
    clock_khz=1_980_000,
    memory_clock_khz=2_619_000,
    memory_bus_bits=5120,
    l2_bytes=52_428_800,
    ecc=True,
)
H200 = EmulatedDevice(
    name="NVIDIA H200",
    compute_capability=(9, 0),
    sm_count=132,
    total_memory=150_109_880_320,
    clock_khz=1_980_000,
    memory_clock_khz=3_201_000,
    memory_bus_bits=6016,
    l2_bytes=62_914_560,
    ecc=True,
)
B200 = EmulatedDevice(
    name="NVIDIA B200",
    compute_capability=(10, 0),
    sm_count=148,
    total_memory=191_503_138_816,
    clock_khz=1_965_000,
    memory_clock_khz=3_996_000,
    memory_bus_bits=7680,
    l2_bytes=132_644_864,
    ecc=True,
)
PROFILES: Mapping[str, EmulatedDevice] = MappingProxyType(
    {"V100": V100, "T4": T4, "A100": A100, "L4": L4, "H100": H100, "H200": H200, "B200": B200}
)


def given_devices(
    devices: int | Sequence[EmulatedDevice], make: Callable[[], EmulatedDevice]
) -> Sequence[EmulatedDevice]:
    """The devices, or so many alike.

    Raises:
        ArgumentTypeError: they are neither.
        ArgumentValueError: there cannot be so many.
    """
    if hasattr(devices, "__index__"):
        return (make(),) * border.whole("an emulator's devices", devices, most=MAX_DEVICES)
    return border.several("an emulator's devices", devices, EmulatedDevice)
