"""Each integer that a public constructor takes: any integer of NumPy, and no boolean."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Final

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.driver._api import CUdevice_attribute
from cudadrv.runtime import PirlsLoopAdmission, RemlOuterAdmission
from cudadrv.runtime.policy import PirlsCurvature
from tests.documents.reference import named, names_of_cudadrv

KINDS: Final = tuple(np.dtype(code).type for code in "bhilqBHILQ")
BOOLEANS: Final = (True, np.True_)

# No machine need have a NUMA node, and these three need other hardware or values.
OTHERWISE: Final = (
    "MulticastObject.team_size", "PhysicalMemory.numa_node",
    "PinnedPool.numa_node", "Texture.channels", "Texture.width", "VirtualMemoryResource.numa_node",
)  # fmt: skip

Row = tuple[int, Callable[[Any], object]]


def values() -> Iterator[tuple[str, Row]]:
    """Constructors that touch no device: an accepted value, and a call with it."""
    policy, limits = cudadrv.runtime.GpuDispatchPolicy, emulator.Limits
    for field in fields(policy):
        if field.name != "mixed_precision":
            yield f"GpuDispatchPolicy.{field.name}", (5, _field(policy, field.name))
    for name, value in {
        "max_steps": 100, "chunk_threads": 64, "share_from": 9, "stack_bytes": 1024, "threads": 2,
        "hardware_seed": 3,
    }.items():  # fmt: skip
        yield f"Limits.{name}", (value, _field(limits, name))
    for name in ("sm_count", "clock_khz", "memory_clock_khz", "memory_bus_bits", "l2_bytes",
                 "copy_engines"):  # fmt: skip
        yield f"EmulatedDevice.{name}", (2, _field(emulator.EmulatedDevice, name))
    yield "EmulatedDevice.total_memory", (1 << 20, _field(emulator.EmulatedDevice, "total_memory"))
    for name, value in {"address": 64, "nbytes": 64}.items():
        given = {"address": 64, "nbytes": 64}
        yield f"AccessWindow.{name}", (value, _field(cudadrv.launch.AccessWindow, name, **given))
    has = {each.name: True for each in fields(cudadrv.driver.GpuCapability) if each.type == "bool"}
    for name in ("compute_major", "compute_minor", "min_warp_size"):
        known = {
            each.name: 32 for each in fields(cudadrv.driver.GpuCapability) if each.type == "int"
        }
        yield (
            f"GpuCapability.{name}",
            (32, _field(cudadrv.driver.GpuCapability, name, **known, **has)),
        )
    for name, value in {"max_registers": 32, "optimization": 2}.items():
        yield f"JitOptions.{name}", (value, _field(cudadrv.launch.JitOptions, name))
    for name, value in {"priority": 0, "shared_carveout": 50}.items():
        yield f"LaunchAttributes.{name}", (value, _field(cudadrv.launch.LaunchAttributes, name))
    yield "LaunchConfig.grid", (2, lambda n: cudadrv.LaunchConfig(n, 32).grid)
    yield "LaunchConfig.block", (2, lambda n: cudadrv.LaunchConfig((1, n), (2, n)).block)
    yield "LaunchConfig.cluster", (2, lambda n: cudadrv.LaunchConfig(4, 32, cluster=n).cluster)
    yield "LaunchConfig.shared_bytes", (8, lambda n: cudadrv.LaunchConfig(1, 1, n).shared_bytes)
    sizes = {each.name: 32 for each in fields(cudadrv.driver.GpuDeviceInfo) if each.type == "int"}
    info = {
        **dict.fromkeys(("ecc_enabled", "integrated", "mig_mode"), False),
        "name": "a device",
        "capability": cudadrv.driver.GpuCapability.from_compute_capability(9, 0),
        **sizes,
    }
    for name in sizes:
        yield f"GpuDeviceInfo.{name}", (32, _field(cudadrv.driver.GpuDeviceInfo, name, **info))
    for name in ("items", "redone", "retried"):
        yield f"TilePolicy.{name}", (2, _field(cudadrv.cluster.TilePolicy, name))
    attribute = CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_PITCH
    yield (
        "EmulatedDevice.attributes",
        (2, lambda n: emulator.EmulatedDevice(attributes={attribute: n}).attributes),
    )
    yield (
        "EmulatedDevice.compute_capability",
        (9, lambda n: emulator.EmulatedDevice(compute_capability=(n, 0)).compute_capability),
    )
    yield "Emulator.devices", (2, lambda n: emulator.Emulator(n).cuDeviceGetCount()[1])
    yield (
        "Emulator.driver_version",
        (13, lambda n: emulator.Emulator(driver_version=(n, 0)).cuDriverGetVersion()),
    )
    yield "Emulator.seed", (7, lambda n: emulator.Emulator(order="random", seed=n).order)
    yield "ImageCache.max_bytes", (0, lambda n: ptx.ImageCache(max_bytes=n))
    yield "ImageCache.memory_bytes", (0, lambda n: ptx.ImageCache(max_bytes=0, memory_bytes=n))
    yield "Target.number", (90, lambda n: str(ptx.Target(ptx.ImageKind.CUBIN, n)))
    yield "CompileOptions.maxrregcount", (32, _field(ptx.CompileOptions, "maxrregcount"))
    yield "CompileOptions.defines", (3, lambda n: ptx.CompileOptions(defines={"N": n}).flags())
    yield "CompileOptions.split_compile", (2, _field(ptx.CompileOptions, "split_compile"))
    yield "LinkOptions.maxrregcount", (32, _field(ptx.LinkOptions, "maxrregcount"))
    yield "PirlsLoopAdmission.n", (100, lambda n: _pirls(n, 3).n)
    yield "PirlsLoopAdmission.p", (100, lambda n: _pirls(3, n).p)
    for index, name in enumerate(("n", "p", "num_rho")):
        yield f"RemlOuterAdmission.{name}", (100, _reml(index, name))


def _field(cls: Callable[..., object], name: str, /, **others: object) -> Callable[[Any], object]:
    return lambda n: getattr(cls(**{**others, name: n}), name)


def _pirls(n: Any, p: Any) -> PirlsLoopAdmission:
    return PirlsLoopAdmission(n, p, None, PirlsCurvature.FISHER, True)


def _reml(index: int, name: str) -> Callable[[Any], object]:
    def make(number: Any) -> object:
        counts: list[Any] = [3, 3, 3]
        counts[index] = number
        n, p, rho = counts
        return getattr(RemlOuterAdmission(n, p, rho, None, PirlsCurvature.FISHER, True), name)

    return make


def objects(stream: cudadrv.Stream) -> Mapping[str, Row]:
    """Constructors of objects of a device."""
    context, array = stream.context, stream.zeros(64, np.float32)
    multicast: dict[str, Row] = {  # on GPUs, tests of multicast objects alone make them
        "MulticastObject.nbytes": (64, lambda n: cudadrv.memory.MulticastObject(n, (0,)).closed),
        "MulticastObject.devices": (0, lambda n: cudadrv.memory.MulticastObject(64, (n,)).closed),
    }
    image = cudadrv.texture.CudaArray(context, (4, 4), np.float32)
    return {
        "ArenaMemory.max_cached_bytes": (64, cudadrv.memory.ArenaMemory),
        "DeviceArena.max_cached_bytes": (64, lambda n: cudadrv.DeviceArena(max_cached_bytes=n)),
        "DeviceArena.alloc": (8, lambda n: cudadrv.DeviceArena().alloc(stream, n)[0]),
        "CudaAllocator.cap_bytes": (
            64, lambda n: cudadrv.memory.CudaAllocator(stream, cap_bytes=n).statistics().cap_bytes,
        ),
        "CudaArray.shape": (
            4, lambda n: cudadrv.texture.CudaArray(context, (n, n), np.float32).shape,
        ),
        "CudaArray.channels": (
            2, lambda n: cudadrv.texture.CudaArray(context, (4, 4), "f4", channels=n).channels,
        ),
        "CudaClient.device": (0, lambda n: cudadrv.CudaClient(n).device.ordinal),
        "DeviceArray.shape": (2, lambda n: cudadrv.DeviceArray(array.buffer, n, "f4").shape),
        "DeviceArray.offset": (
            8, lambda n: cudadrv.DeviceArray(array.buffer, 2, "f4", n).ptr - array.ptr,
        ),
        "DeviceArray.strides": (
            8, lambda n: cudadrv.DeviceArray(array.buffer, 2, "f4", 0, (n,)).strides,
        ),
        "GpuRuntime.memory_budget_bytes": (
            64, lambda n: cudadrv.GpuRuntime(
                devices=[context.device.info()], memory_budget_bytes=n
            ).memory_budget_bytes,
        ),
        "MemoryPool.device": (0, lambda n: cudadrv.MemoryPool(n).device.ordinal),
        "MemoryPool.max_bytes": (1 << 25, lambda n: cudadrv.MemoryPool(0, max_bytes=n).closed),
        "MemoryPool.release_threshold": (
            64, lambda n: cudadrv.MemoryPool(0, release_threshold=n).closed,
        ),
        "MipmappedArray.shape": (
            4, lambda n: cudadrv.texture.MipmappedArray(context, (n, n), "f4").shape,
        ),
        "MipmappedArray.levels": (
            2, lambda n: cudadrv.texture.MipmappedArray(context, (4, 4), "f4", levels=n).levels,
        ),
        "MipmappedArray.channels": (
            2, lambda n: cudadrv.texture.MipmappedArray(context, (4, 4), "f4", channels=n).channels,
        ),
        "PinnedPool.max_cached_bytes": (
            64, lambda n: cudadrv.memory.PinnedPool(max_cached_bytes=n),
        ),
        "ProcessCheckpoint.pid": (
            os.getpid(), lambda n: cudadrv.checkpoint.ProcessCheckpoint(n).pid,
        ),
        "TensorMap.box": (4, lambda n: cudadrv.tensor_map.TensorMap(array, (n,)).box),
        "TensorMap.element_strides": (
            1, lambda n: cudadrv.tensor_map.TensorMap(array, (4,), element_strides=(n,)).box,
        ),
        "Texture.max_anisotropy": (
            2, lambda n: cudadrv.texture.Texture(image, max_anisotropy=n).closed,
        ),
        "GrowingBuffer.capacity": (64, lambda n: cudadrv.memory.GrowingBuffer(stream, n).nbytes),
        "PhysicalMemory.nbytes": (64, lambda n: cudadrv.memory.PhysicalMemory(n).closed),
        "GrowingBuffer.nbytes": (64, lambda n: cudadrv.memory.GrowingBuffer(stream, 64, n).nbytes),
        **(multicast if context.device.is_emulated else {}),
        "VirtualMemoryResource.open_to": (
            0, lambda n: sorted(cudadrv.memory.VirtualMemoryResource(open_to=(n,)).open_devices),
        ),
        "Context.create": (0, lambda n: cudadrv.Context.create(n).device.ordinal),
        "new_stream.priority": (0, lambda n: context.new_stream(priority=n).priority),
        "new_stream_pool": (2, lambda n: len(context.new_stream_pool(n))),
        "alloc": (64, lambda n: stream.alloc(n).nbytes),
        "empty": (4, lambda n: stream.empty((n, n), "f4").shape),
        "reshape": (8, lambda n: array.reshape((n, n)).shape),
        "PhysicalMemory.device": (0, lambda n: cudadrv.memory.PhysicalMemory(64, n).closed),
    }  # fmt: skip


def wrong_cells(rows: Mapping[str, Row]) -> Iterator[str]:
    for name, (value, make) in rows.items():
        try:
            expected = make(value)
        except Exception as error:
            yield f"{name}({value}) raises {error!r}"
            continue
        plain = repr(expected)
        for kind in KINDS:
            if value > np.iinfo(kind).max:
                continue
            try:
                found = make(kind(value))
            except Exception as error:
                yield f"{name}({kind.__name__}({value})) raises {error!r}"
                continue
            if repr(found) != plain and type(expected).__repr__ is not object.__repr__:
                yield f"{name}({kind.__name__}({value})): {found!r}, not {plain}"
        if name == "CompileOptions.defines":
            continue  # True is 1 there, as C++ spells it
        for boolean in BOOLEANS:
            try:
                make(boolean)
            except (cudadrv.CudadrvError, ptx.PtxError):
                continue
            except Exception as error:
                yield f"{name}({boolean!r}) raises {error!r}"
            else:
                yield f"{name}({boolean!r}) is accepted"


@pytest.mark.slow
def test_constructors_accept_integers_of_numpy_and_reject_booleans(stream: cudadrv.Stream) -> None:
    rows = {**dict(values()), **objects(stream)}
    wrong = list(wrong_cells(rows))
    assert not wrong, "\n".join(wrong)


def test_each_integer_parameter_of_a_listed_class_has_a_row(stream: cudadrv.Stream) -> None:
    rows = {**dict(values()), **objects(stream)}
    classes = {name.partition(".")[0] for name in rows}
    public = {f"{each.__name__}.{name}" for each in (emulator, ptx) for name in dir(each)}
    found = {
        f"{name}.{parameter.name}"
        for full in public | names_of_cudadrv()
        if (name := full.rpartition(".")[2]) in classes and inspect.isclass(cls := named(full))
        for parameter in inspect.signature(cls).parameters.values()
        if re.search(r"\bint\b", str(parameter.annotation))
    }
    assert len(found) > 70
    assert found - rows.keys() == {name for name in OTHERWISE if name.partition(".")[0] in classes}
