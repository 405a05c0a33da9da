"""Scattering tiles that do nothing, that are copied, and with work: what each device costs.

Ordinary arrays go through pinned memory. So the rate at which the threads of the host move bytes
between both is the limit of tiles that are copied, and a row of its own.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

import cudadrv

from .. import scatter
from ..setting import Setting
from ..timing import Case, Row, measure

GROUP: Final = "scatter"
_MOST_DEVICES: Final = 8
_WORK_BYTES: Final = 64 << 20
_WORK_SECONDS: Final = 0.04
_PIECE_BYTES: Final = 4 << 20


def run(setting: Setting) -> list[Row]:
    """Every case of the group, for 1 device, 2, 4 and 8 as far as there are."""
    from cudadrv.pool.scatter import scatter_batched, scatter_map
    from cudadrv.runtime.probe import GpuRuntime

    infos = [device.info() for device in cudadrv.list_devices()[:_MOST_DEVICES]]
    rows: list[Row] = []
    count = 1
    while count <= len(infos):
        names = {
            "scatter_batched": scatter_batched,
            "scatter_map": scatter_map,
            "runtime": GpuRuntime(devices=infos[:count]),
            "items": np.zeros(64),
            "nothing": lambda ordinal, tile: None,
        }
        cases = [
            Case(f"cudadrv {function}", f"{function}(runtime, items, nothing)", names)
            for function in ("scatter_batched", "scatter_map")
        ]
        case = f"empty tiles on {count} device{'s' * (count != 1)}"
        rounds = setting.rounds(60)
        rows += measure(GROUP, case, cases, repeats=20, rounds=rounds, settle=setting.settle)
        count *= 2
    if setting.null:  # nothing is copied and nothing runs there
        return rows
    rows += _copied(setting, infos)
    return rows if len(infos) < 2 else rows + _with_work(setting, infos)


def _copied(setting: Setting, infos: Sequence[cudadrv.driver.GpuDeviceInfo]) -> list[Row]:
    """64 MiB to each device and back, beside the host's own rate in the same run."""
    rows: list[Row] = []
    count = 1
    while count <= len(infos):
        items = np.full(count * _WORK_BYTES // 8, 1.0)
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        with ThreadPoolExecutor(threads) as pool:
            names: dict[str, object] = {
                "move": mover(items, pool, threads),
                "copied": scatter.copied,
                "items": items,
                "runtime": cudadrv.GpuRuntime(devices=infos[:count]),
            }
            cases = [
                Case("the memmove of all threads", "move()", names),
                Case("cudadrv scatter_batched", "copied(runtime, items)", names),
            ]
            case = f"64 MiB each way on {count} device{'s' * (count != 1)}"
            rows += measure(
                GROUP,
                case,
                cases,
                repeats=1,
                rounds=setting.rounds(20),
                settle=setting.settle,
                nbytes=2 * items.nbytes,
            )
        count *= 2
    return rows


def mover(items: NDArray[np.float64], pool: ThreadPoolExecutor, threads: int) -> Callable[[], None]:
    """Return a function that moves the bytes to pinned memory in threads, and then back."""
    buffers = [cudadrv.pinned_empty(_PIECE_BYTES, np.uint8) for _ in range(threads)]

    def serve(buffer: NDArray[np.uint8], pieces: deque[NDArray[np.uint8]], is_back: bool) -> None:
        while pieces:
            with suppress(IndexError):  # another thread has the last one
                piece = pieces.popleft()
                one, other = (piece, buffer) if is_back else (buffer, piece)
                ctypes.memmove(one.ctypes.data, other.ctypes.data, piece.nbytes)

    def move() -> None:
        data = items.view(np.uint8)
        for is_back in (False, True):
            pieces = deque(data[k : k + _PIECE_BYTES] for k in range(0, data.size, _PIECE_BYTES))
            for each in [pool.submit(serve, buffer, pieces, is_back) for buffer in buffers]:
                each.result()

    return move


def _with_work(setting: Setting, infos: Sequence[cudadrv.driver.GpuDeviceInfo]) -> list[Row]:
    """64 MiB each way, and a kernel of 40 ms on one device; the rounds of all counts in turns."""
    items = np.random.default_rng(1).random(_WORK_BYTES // 8)
    names: dict[str, object] = {"run": scatter.run, "items": items, "steps": _steps()}
    cases, count = [], 1
    while count <= len(infos):
        names[f"on{count}"] = cudadrv.GpuRuntime(devices=infos[:count])
        cases.append(Case(f"{count}", f"run(on{count}, items, steps)", names))
        count *= 2
    one, *others = measure(
        GROUP, "", cases, repeats=1, rounds=setting.rounds(12), settle=setting.settle
    )
    rows = []
    for each in others:
        case = f"64 MiB each way and 40 ms of work on {each.who} devices"
        count = int(each.who)
        best, median = one.best / count, one.median / count
        rows.append(replace(one, case=case, who="its part of one device", best=best, median=median))
        ratio = each.best / best if best else 0.0
        rows.append(replace(each, case=case, who="cudadrv scatter_batched", ratio=ratio))
    return rows


def _steps() -> int:
    """How many steps of the kernel take 40 ms."""
    stream = cudadrv.cuda_context_for(0).new_stream()
    there = stream.zeros(_WORK_BYTES // 8, np.float64)
    kernel = scatter.kernel_on(stream.context)
    steps, seconds = 1000, 0.0
    for _ in range(3):  # the first is of a device at rest
        stream.synchronize()
        start = time.perf_counter()
        kernel.launch(
            stream, cudadrv.LaunchConfig.for_elements(there.size), there, there.size, steps
        )
        stream.synchronize()
        seconds = time.perf_counter() - start
        steps = max(1, round(steps * _WORK_SECONDS / seconds))
    return steps
