"""Run a case on the driver in use, and return the bytes of its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import cudadrv
import ptx

from .case import Bits, Buffer, Case

_ALIGNMENT: Final = 256


def run_case(
    context: cudadrv.Context,
    case: Case,
    inputs: Sequence[Bits] | None = None,
    jit: cudadrv.launch.JitOptions | None = None,
) -> list[Bits]:
    """Return the bytes of each compared buffer.

    All buffers lie side by side in one allocation. So an access past one of them reaches the same
    neighbour on each driver.

    Args:
        context: of the device.
        case: the kernel.
        inputs: other contents than those of the case.
        jit: options of the assembler.

    Raises:
        CudaError: the driver rejects the module, or the kernel fails.
    """
    contents = case.inputs if inputs is None else inputs
    starts, size = _places([len(each) for each in contents])
    memory = np.zeros(size, np.uint8)
    for start, content in zip(starts, contents, strict=True):
        memory[start : start + len(content)] = content
    with (
        context.new_stream() as stream,
        context.load_module(ptx.Image.from_ptx(case.ptx), jit=jit) as module,
    ):
        device = stream.to_device(memory)
        arguments: list[object] = [device.ptr + start for start in starts]
        for k, buffer in enumerate(case.buffers):
            if buffer.kind.startswith("map"):
                arguments[k] = _map(buffer, device[: case.buffers[0].nbytes])
        config = cudadrv.LaunchConfig(1, case.threads, shared_bytes=case.shared_bytes)
        module.kernel("K").launch(stream, config, *arguments)
        found = stream.to_host(device)
    return [found[starts[k] : starts[k] + case.buffers[k].nbytes] for k in case.results]


def _map(buffer: Buffer, tensor: cudadrv.DeviceArray[Any]) -> cudadrv.tensor_map.TensorMap:
    """Return a map over 32-bit integers, whose extents and box the kind of its buffer names."""
    extents, box = (tuple(map(int, part.split(","))) for part in buffer.kind.split()[1:])
    return cudadrv.tensor_map.TensorMap(tensor.view(np.uint32).reshape(extents), box)


def _places(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Return the place of each buffer, and the size of all of them."""
    starts, end = [], 0
    for size in sizes:
        starts.append(end)
        end += -(-size // _ALIGNMENT) * _ALIGNMENT
    return starts, end
