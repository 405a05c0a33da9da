"""Taking 1 KiB of device memory and giving it back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

import cudadrv

from .. import bare
from ..setting import Setting
from ..timing import Case, Row, measure

GROUP: Final = "allocation"
CASE: Final = "1 KiB, taken and given back"
_NBYTES: Final = 1024
_TRANSFERRED: Final = 64


def run(setting: Setting) -> list[Row]:
    """Every case of the group."""
    stream = setting.stream
    names = bare.memory_names(stream)
    cases = [
        Case(bare.NAME, f"free(alloc({_NBYTES}, s)[1], s)", names),
        Case("cudadrv Stream.alloc", f"alloc({_NBYTES}).close()", {"alloc": stream.alloc}),
        Case("cudadrv Stream.alloc, dropped", f"alloc({_NBYTES})", {"alloc": stream.alloc}),
        Case("cudadrv Stream.empty", "empty(256, 'f4').close()", {"empty": stream.empty}),
    ]
    failed: list[Row] = []
    for who, make in (("cudadrv DeviceArena", _arena), ("cudadrv CudaAllocator", _allocator)):
        try:
            cases.append(make(who, stream))
        except Exception as error:
            failed.append(Row.failed(GROUP, CASE, who, error))
    cases.append(
        Case(
            "cudadrv Stream.empty, dropped",
            "empty(256, f4)",
            {"empty": stream.empty, "f4": np.float32},
        )
    )
    peers, broken = setting.peer_cases(GROUP, CASE, "allocation")
    rounds = setting.rounds(80)
    options: dict[str, Any] = {"repeats": 200, "rounds": rounds, "settle": setting.settle}
    rows = measure(GROUP, CASE, cases + peers, **options)
    return rows + failed + broken + _transfers(setting, options)


def _transfers(setting: Setting, options: dict[str, Any]) -> list[Row]:
    """64 bytes to a new device array and to a new host array, beside the calls that they need."""
    stream, host = setting.stream, np.zeros(_TRANSFERRED, np.uint8)
    device = stream.to_device(host)
    names = {
        **bare.memory_names(stream),
        "p": bare.pointer(device.ptr),
        "h": host.ctypes.data,
        "host": host,
        "device": device,
        "stream": stream,
    }
    n = _TRANSFERRED
    up = [
        Case(bare.NAME, f"q = alloc({n}, s)[1]; htod(q, h, {n}, s); free(q, s)", names),
        Case("cudadrv Stream.to_device", "stream.to_device(host)", names),
    ]
    down = [
        Case(bare.NAME, f"dtoh(h, p, {n}, s); sync(s)", names),
        Case("cudadrv Stream.to_host", "stream.to_host(device)", names),
    ]
    rows = measure(GROUP, f"{n} bytes to a new device array", up, **options)
    return rows + measure(GROUP, f"{n} bytes to a new host array", down, **options)


def _arena(who: str, stream: cudadrv.Stream) -> Case:
    from cudadrv.memory.reuse.arena import DeviceArena

    arena = DeviceArena("f8")
    names: dict[str, Callable[..., object] | cudadrv.Stream] = {
        "alloc": arena.alloc,
        "release": arena.release,
        "stream": stream,
    }
    return Case(who, f"release(*alloc(stream, {_NBYTES // 8}))", names)


def _allocator(who: str, stream: cudadrv.Stream) -> Case:
    from cudadrv.memory.reuse.allocator import CudaAllocator

    allocator = CudaAllocator(stream)
    names = {"take": allocator.allocate, "give": allocator.deallocate}
    return Case(who, f"give(take({_NBYTES}), {_NBYTES})", names)
