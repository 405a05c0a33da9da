"""Taking 1 KiB of device memory and giving it back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import cudadrv

from .. import bare
from ..setting import Setting
from ..timing import Case, Row, measure

GROUP: Final = "allocation"
CASE: Final = "1 KiB, taken and given back"
_NBYTES: Final = 1024


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
    peers, broken = setting.peer_cases(GROUP, CASE, "allocation")
    rounds = setting.rounds(80)
    rows = measure(GROUP, CASE, cases + peers, repeats=200, rounds=rounds, settle=setting.settle)
    return rows + failed + broken


def _arena(who: str, stream: cudadrv.Stream) -> Case:
    from cudadrv.memory.reuse.arena import DeviceArena

    arena = DeviceArena("f8")
    names: dict[str, Callable[..., object] | cudadrv.Stream] = {
        "alloc": arena.alloc, "release": arena.release, "stream": stream,
    }  # fmt: skip
    return Case(who, f"release(*alloc(stream, {_NBYTES // 8}))", names)


def _allocator(who: str, stream: cudadrv.Stream) -> Case:
    from cudadrv.memory.reuse.allocator import CudaAllocator

    allocator = CudaAllocator(stream)
    names = {"take": allocator.allocate, "give": allocator.deallocate}
    return Case(who, f"give(take({_NBYTES}), {_NBYTES})", names)
