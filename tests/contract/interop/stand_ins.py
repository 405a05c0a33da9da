"""Stand-ins for other libraries: their accessors, and nothing else, over our memory.

Each is a package as `sys.modules` has it, with a way to make an array over one of ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from cudadrv.memory.array import AnyDeviceArray


@dataclass
class StandIn:
    """A library.

    Attributes:
        modules: what is loaded of it.
        make: an array over memory of ours.
        move: let an array be over other memory; None where arrays stay where they are.
        current: the number of its current stream; None where it tells of none.
    """

    modules: dict[str, Any]
    make: Callable[[AnyDeviceArray], Any]
    move: Callable[[Any, AnyDeviceArray], None] | None
    current: dict[int, int] | None = field(default_factory=lambda: {0: 0, 1: 0})


def _module(name: str, **members: Any) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(members)
    return module


def torch() -> StandIn:
    """PyTorch: methods of the tensor, and the current stream as a number."""
    streams = {0: 0, 1: 0}

    class Tensor:
        def __init__(self, array: AnyDeviceArray) -> None:
            self.array, self.dtype, self.lazy = array, module.float32, False

        def data_ptr(self) -> int:
            return self.array.ptr

        def get_device(self) -> int:
            return self.array.context.ordinal

        def numel(self) -> int:
            return self.array.size

        def is_neg(self) -> bool:
            return self.lazy

        def is_conj(self) -> bool:
            return False

        def is_contiguous(self) -> bool:
            return self.array.is_contiguous

    dtypes = {name: Dtype(f"torch.{name}") for name in ("float32", "float64")}
    module = _module(
        "torch",
        Tensor=Tensor,
        nn=SimpleNamespace(Parameter=type("Parameter", (Tensor,), {})),
        version=SimpleNamespace(hip=None),
        _C=SimpleNamespace(_cuda_getCurrentRawStream=streams.__getitem__),
        **dtypes,
    )
    return StandIn({"torch": module}, Tensor, _set_array, streams)


class Dtype:
    """A dtype of PyTorch, whose text is its name."""

    is_complex = False

    def __init__(self, name: str) -> None:
        self.name_of_torch = name

    def __str__(self) -> str:
        return self.name_of_torch


def cupy() -> StandIn:
    """CuPy: `x.data.ptr`, `x.data.device_id`, and the current stream as an object."""
    streams = {0: 0, 1: 0}

    class NdArray:
        def __init__(self, array: AnyDeviceArray) -> None:
            self.data = SimpleNamespace(ptr=array.ptr, device_id=array.context.ordinal)
            self.dtype = array.dtype
            self.flags = SimpleNamespace(c_contiguous=array.is_contiguous)

    runtime = SimpleNamespace(is_hip=False)

    def current(ordinal: int) -> object:
        return SimpleNamespace(ptr=streams[ordinal])

    cuda = SimpleNamespace(runtime=runtime, get_current_stream=current)
    module = _module("cupy", ndarray=NdArray, cuda=cuda)
    return StandIn({"cupy": module}, NdArray, _set_data, streams)


def numba() -> StandIn:
    """Numba: `x.gpu_data` with the pointer and its context, and the array's own stream."""

    class OwnedPointer:
        """What has an allocation, and asks it for what it is asked for."""

        def __init__(self, view: SimpleNamespace) -> None:
            self._view = view

        def __getattr__(self, name: str) -> object:
            asked.append(name)
            return getattr(self._view, name)

    asked: list[str] = []

    class DeviceNDArray:
        def __init__(self, array: AnyDeviceArray) -> None:
            device = SimpleNamespace(id=array.context.ordinal)
            context = SimpleNamespace(device=device)
            view = SimpleNamespace(device_pointer=array.ptr, context=context)
            self.gpu_data, self.asked = OwnedPointer(view), asked
            self.stream, self.dtype, self.array = 0, array.dtype, array

        def is_c_contiguous(self) -> bool:
            return self.array.is_contiguous

    def move(moved: Any, array: AnyDeviceArray) -> None:
        moved.gpu_data = DeviceNDArray(array).gpu_data

    name = "numba.cuda.cudadrv.devicearray"
    return StandIn({name: _module(name, DeviceNDArray=DeviceNDArray)}, DeviceNDArray, move)


def jax() -> StandIn:
    """JAX: `unsafe_buffer_pointer`, `is_ready` and a sharding with one device."""
    devices = [
        SimpleDevice(platform="gpu", local_hardware_id=0),
        SimpleDevice(platform="gpu", local_hardware_id=1),
    ]

    class ArrayImpl:
        def __init__(self, array: AnyDeviceArray) -> None:
            device = devices[array.context.ordinal]
            self.array, self.deleted, self.ready = array, False, True
            self.dtype, self.shape = array.dtype, array.shape
            axes = tuple(sorted(range(array.ndim), key=lambda axis: -array.strides[axis]))
            self.format = SimpleNamespace(layout=SimpleNamespace(major_to_minor=axes))
            self.sharding = SimpleNamespace(_device=device, device_set={device})

        def unsafe_buffer_pointer(self) -> int:
            if self.deleted:
                raise RuntimeError("called on deleted or donated buffer")
            return self.array.ptr

        def is_ready(self) -> bool:
            return self.ready

        def is_deleted(self) -> bool:
            return self.deleted

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

        def __dlpack__(self, *, stream: int | None = None) -> object:
            return self.array.__dlpack__(stream=stream)

    module = _module("jaxlib._jax", ArrayImpl=ArrayImpl)
    return StandIn({"jaxlib._jax": module}, ArrayImpl, None, None)


class SimpleDevice(SimpleNamespace):
    """A device of JAX, which has a hash."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # a namespace has none


def core() -> StandIn:
    """cuda.core: a buffer's handle and device."""

    class Buffer:
        def __init__(self, array: AnyDeviceArray) -> None:
            self.handle: int | None = array.ptr
            self.device_id, self.size = array.context.ordinal, array.nbytes

    def move(moved: Any, array: AnyDeviceArray) -> None:
        moved.handle, moved.size = array.ptr, array.nbytes

    module = _module("cuda.core", Buffer=Buffer)
    return StandIn({"cuda.core": module}, Buffer, move, None)


def warp() -> StandIn:
    """Warp: `x.ptr`, `x.device.ordinal`, and each device's current stream."""
    streams = {0: 0, 1: 0}

    class Array:
        def __init__(self, array: AnyDeviceArray) -> None:
            self.ptr: int | None = array.ptr
            self.device = SimpleNamespace(ordinal=array.context.ordinal)
            self.dtype = type(array.dtype.name, (), {})
            self.is_contiguous = array.is_contiguous
            self.shape, self.strides = array.shape, array.strides

    def move(moved: Any, array: AnyDeviceArray) -> None:
        moved.ptr = array.ptr

    def get_cuda_device(ordinal: int) -> object:
        return SimpleNamespace(stream=SimpleNamespace(cuda_stream=streams[ordinal] or None))

    types = SimpleNamespace(type_size_in_bytes=lambda kind: np.dtype(kind.__name__).itemsize)
    module = _module("warp", array=Array, get_cuda_device=get_cuda_device, types=types)
    return StandIn({"warp": module}, Array, move, streams)


def _set_array(moved: Any, array: AnyDeviceArray) -> None:
    moved.array = array


def _set_data(moved: Any, array: AnyDeviceArray) -> None:
    moved.data.ptr = array.ptr
