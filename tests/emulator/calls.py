"""Short ways to call a driver and to look at what it answers."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Final, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from cudadrv.driver._api import (
    CUDA_ARRAY3D_DESCRIPTOR,
    CUarray,
    CUcontext,
    CUdevice,
    CUdeviceptr,
    CUfunction,
    CUgraph,
    CUgraphExec,
    CUmodule,
    CUpointer_attribute,
    CUresult,
    CUstream,
)
from cudadrv.driver.driver_api import DriverApi

_A = TypeVar("_A")
_B = TypeVar("_B")
LEGACY: Final = CUstream(0)
CAPTURE_GLOBAL, CAPTURE_THREAD_LOCAL, CAPTURE_RELAXED = 0, 1, 2


@overload
def ok(result: tuple[CUresult]) -> None: ...
@overload
def ok(result: tuple[CUresult, _A]) -> _A: ...
@overload
def ok(result: tuple[CUresult, _A, _B]) -> tuple[_A, _B]: ...
def ok(result: tuple[CUresult, *tuple[object, ...]]) -> object:
    """The values of a call, which must have succeeded."""
    assert result[0] == CUresult.CUDA_SUCCESS, result
    values = result[1:]
    return values[0] if len(values) == 1 else (values or None)


def code(result: tuple[CUresult, *tuple[object, ...]]) -> int:
    """The number of a result; a failed call has None for every value."""
    if result[0] != CUresult.CUDA_SUCCESS:
        assert all(value is None for value in result[1:]), result
    return int(result[0])


class OpenApi(DriverApi, Protocol):
    """The driver's functions, with those that others than cudadrv call on the same device."""

    def cuArray3DGetDescriptor(
        self, h_array: CUarray, /
    ) -> tuple[CUresult, CUDA_ARRAY3D_DESCRIPTOR]: ...
    def cuCtxGetCurrent(self) -> tuple[CUresult, CUcontext]: ...
    def cuCtxGetDevice(self) -> tuple[CUresult, CUdevice]: ...
    def cuDevicePrimaryCtxRelease(self, dev: CUdevice, /) -> tuple[CUresult]: ...
    def cuMemAlloc(self, bytesize: int, /) -> tuple[CUresult, CUdeviceptr]: ...
    def cuGraphInstantiate(
        self, h_graph: CUgraph, flags: int, /
    ) -> tuple[CUresult, CUgraphExec]: ...
    def cuLaunchKernel(
        self,
        f: CUfunction,
        grid_dim_x: int,
        grid_dim_y: int,
        grid_dim_z: int,
        block_dim_x: int,
        block_dim_y: int,
        block_dim_z: int,
        shared_mem_bytes: int,
        h_stream: CUstream,
        kernel_params: int,
        extra: int,
        /,
    ) -> tuple[CUresult]: ...
    def cuPointerSetAttribute(
        self, value: bool | int, attribute: CUpointer_attribute, ptr: int, /
    ) -> tuple[CUresult]: ...


class Parameters:
    """Kernel parameters by their ctypes values, and the address of the array of pointers."""

    def __init__(self, *values: ctypes.c_uint64 | ctypes.c_uint32 | ctypes.c_uint8) -> None:
        self.values = values
        self._array = (ctypes.c_void_p * max(1, len(values)))(
            *(ctypes.addressof(value) for value in values)
        )
        self.address = ctypes.addressof(self._array) if values else 0


NOTHING: Final = Parameters()


def launch(
    api: OpenApi,
    function: CUfunction,
    parameters: Parameters = NOTHING,
    *,
    grid: tuple[int, int, int] = (1, 1, 1),
    block: tuple[int, int, int] = (1, 1, 1),
    shared_bytes: int = 0,
    stream: CUstream = LEGACY,
) -> tuple[CUresult]:
    return api.cuLaunchKernel(function, *grid, *block, shared_bytes, stream, parameters.address, 0)


def upload(api: OpenApi, to: CUdeviceptr, data: NDArray[np.generic]) -> None:
    ok(api.cuMemcpyHtoDAsync(to, data.ctypes.data, data.nbytes, LEGACY))
    ok(api.cuStreamSynchronize(LEGACY))


def download(api: OpenApi, source: CUdeviceptr, count: int) -> NDArray[np.uint32]:
    data = np.zeros(count, np.uint32)
    ok(api.cuMemcpyDtoHAsync(data.ctypes.data, source, data.nbytes, LEGACY))
    ok(api.cuStreamSynchronize(LEGACY))
    return data


def load(api: OpenApi, *kernels: str, header: str | None = None) -> CUmodule:
    """A module of some PTX kernels."""
    return ok(api.cuModuleLoadData(text(*kernels, header=header)))


def text(*kernels: str, header: str | None = None) -> bytes:
    start = ".version 7.8\n.target sm_70\n.address_size 64\n" if header is None else header
    return (start + "\n".join(kernels)).encode()


def functions(api: OpenApi, module: CUmodule, *names: str) -> Sequence[CUfunction]:
    return [ok(api.cuModuleGetFunction(module, name.encode())) for name in names]


def attribute(api: DriverApi, which: CUpointer_attribute, address: int) -> object:
    """An attribute of the memory at an address."""
    (value,) = ok(api.cuPointerGetAttributes(1, (which,), address))
    return value
