"""Kernels that copy, where the driver would need many copies."""

from __future__ import annotations

import ctypes
import struct
from typing import Final, NamedTuple

from ..driver._api import CUfunction, CUlaunchConfig
from ..driver.context import BaseContext
from ..driver.context_handle import ContextHandle, ModuleHandle
from ..driver.driver_selection import failure
from ..driver.stream_handle import StreamHandle

# The emulator's check for unwritten reads recognises it (`ptx.emulate.check.unwritten_reads`).
COPY_KERNEL: Final = "cudadrv_copy_elements"
THREADS: Final = 256
"""The threads of a block."""


class CopyKernel(NamedTuple):
    """A kernel, and the module that has it."""

    module: ModuleHandle
    function: CUfunction

    def launch(self, stream: StreamHandle, blocks: int, parameters: bytes, size: int) -> None:
        """Queue the kernel.

        Args:
            stream: of the context of the kernel.
            blocks: the number of blocks.
            parameters: the parameters, one after the other.
            size: the bytes between the starts of two parameters.

        Raises:
            CudaError: the driver rejected the launch.
        """
        # After the parameters come their addresses.
        count = len(parameters) // size
        block = ctypes.create_string_buffer(parameters, len(parameters) + 8 * count)
        base = ctypes.addressof(block)
        addresses = range(base, base + len(parameters), size)
        struct.pack_into(f"={count}Q", block, len(parameters), *addresses)
        config = CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = blocks, 1, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = THREADS, 1, 1
        config.sharedMemBytes, config.hStream = 0, stream.raw
        if stream.capture is not None:
            stream.capture.keeps.append(self.module)
        function, pointers = stream.api.cuLaunchKernelEx, base + len(parameters)
        (code,) = stream.submit(function, config, self.function, pointers, 0)
        if code:
            doing = f"copying by a kernel of {blocks} blocks"
            raise failure(stream.api, code, "cuLaunchKernelEx", doing)


class _Loaded:
    """The kernels of a context, by their PTX."""

    def __init__(self) -> None:
        self.by_ptx: dict[bytes, CopyKernel] = {}


def copy_kernel(context: BaseContext, handle: ContextHandle, ptx: bytes) -> CopyKernel:
    """Return the kernel `COPY_KERNEL` of a PTX, loaded once for a context.

    Raises:
        CudaError: the driver rejected the PTX.
    """
    loaded = context._keep(_Loaded, _Loaded).by_ptx
    kernel = loaded.get(ptx)
    if kernel is None:
        kernel = loaded.setdefault(ptx, _load(handle, ptx))
    return kernel


def _load(context: ContextHandle, ptx: bytes) -> CopyKernel:
    module, api, doing = ModuleHandle(context), context.api, "loading a kernel that copies"
    code = module.make(api.cuModuleLoadData, ptx)
    if code:
        raise failure(api, code, "cuModuleLoadData", doing)
    code, function = context.call(api.cuModuleGetFunction, module.raw, COPY_KERNEL.encode())
    if code:
        raise failure(api, code, "cuModuleGetFunction", doing)
    return CopyKernel(module, function)
