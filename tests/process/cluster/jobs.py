"""What the tests have workers do. Workers import it by its name."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

import cudadrv
from cudadrv import LaunchConfig, PtxModuleCache, current_tile
from cudadrv.driver.driver_selection import current
from cudadrv.errors import KernelNotFoundError, OutOfMemoryError
from tests.patience import wait_until

if TYPE_CHECKING:
    from cudadrv.emulator import Emulator

Floats = npt.NDArray[np.float64]
SOURCE = """
extern "C" __global__ void logistic(double* x, int n, int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double v = x[i];
    for (int step = 0; step < steps; ++step) v = 3.7 * v * (1.0 - v);
    x[i] = v;
}
extern "C" __global__ void beyond(double* x) { x[1ll << 40] = 1; }
"""
MODULES = PtxModuleCache()


def logistic(ordinal: int, part: Floats) -> None:
    """Ten steps of the logistic map."""
    tile = current_tile()
    kernel = MODULES.get_or_compile(tile.context, "logistic", SOURCE).kernel("logistic")
    with tile.stream.to_device(part) as there:
        kernel.launch(tile.stream, LaunchConfig.for_elements(part.size), there, part.size, 10)
        tile.stream.to_host(there, part)


def compiled() -> str:
    context = current_tile().context
    return MODULES.get_or_compile(context, "logistic", SOURCE).kernel("logistic").name


def pool_keeps() -> int:
    """How much the device's pool keeps when a stream is waited for."""
    return cudadrv.memory.pool_info(current_tile().context.device).release_threshold


def doubled(ordinal: int, part: npt.NDArray[Any]) -> None:
    part *= 2


def negated(ordinal: int, part: list[int]) -> None:
    part[:] = [-each for each in part]


def copied(ordinal: int, part: Floats) -> Floats:
    return part + 1


def first_and_length(ordinal: int, part: Sequence[int]) -> tuple[int, int]:
    return part[0], len(part)


def pid() -> int:
    return os.getpid()


def worker_thread(ordinal: int, part: object) -> str:
    return threading.current_thread().name


def task_key(ordinal: int, part: object) -> str:
    """The Dask task that a tile is made in."""
    return str(import_module("distributed").get_worker().get_current_task())


def later(seconds: float, function: Callable[..., Any], *args: object) -> Any:
    """Wait, so that the next call is there, and call a function."""
    time.sleep(seconds)
    return function(*args)


def wait_for(begun: str, may_end: str) -> None:
    """Make one file, and wait for another one."""
    Path(begun).touch()
    wait_until(Path(may_end).exists)


def meet(folder: str, count: int) -> int:
    """The process, once `count` processes are here at once."""
    (Path(folder) / str(os.getpid())).touch()
    wait_until(lambda: len(list(Path(folder).iterdir())) == count)
    return os.getpid()


def slow_pid(ordinal: int, part: object) -> int:
    time.sleep(0.5)
    return os.getpid()


def where(*_: object) -> tuple[int, int, int]:
    """Process, ordinal of the tile's device, and of the current context's."""
    return os.getpid(), current_tile().ordinal, current_tile().context.device.ordinal


def note(folder: str, what: int) -> int:
    """Note a call in a file of its own; how many there are of it now."""
    path = Path(folder) / f"{what}-{os.getpid()}-{time.monotonic_ns()}"
    path.touch()
    return len(list(Path(folder).glob(f"{what}-*")))


def noted(folder: str, seconds: float, ordinal: int, part: npt.NDArray[np.int64]) -> None:
    """Note a tile, wait, and change it."""
    note(folder, int(part[0]))
    time.sleep(seconds)
    part += 1000


def dying(folder: str, bad: int, times: int, ordinal: int, part: npt.NDArray[np.int64]) -> None:
    """A tile whose worker is killed so many times after it has changed half of it."""
    if part[0] == bad and note(folder, bad) <= times:
        part[: len(part) // 2] = -1
        os.kill(os.getpid(), signal.SIGKILL)
    part += 1000


def hanging(folder: str, bad: int, times: int, ordinal: int, part: npt.NDArray[np.int64]) -> None:
    """The same, hanging."""
    if part[0] == bad and note(folder, bad) <= times:
        time.sleep(600)
    part += 1000


def breaking(folder: str, bad: int, times: int, ordinal: int, part: npt.NDArray[np.int64]) -> None:
    """The same, with a kernel that breaks the context."""
    if part[0] == bad and note(folder, bad) <= times:
        tile = current_tile()
        kernel = MODULES.get_or_compile(tile.context, "logistic", SOURCE).kernel("beyond")
        with tile.stream.to_device(np.zeros(8)) as there:
            kernel.launch(tile.stream, LaunchConfig(1, 1), there)
            tile.stream.synchronize()
    part += 1000


def starving(folder: str, bad: int, times: int, ordinal: int, part: npt.NDArray[np.int64]) -> None:
    """A tile that finds the device's memory full so many times, after it has changed half."""
    stream = current_tile().stream
    if part[0] == bad and note(folder, bad) <= times:
        part[: len(part) // 2] = -1
        driver = cast("Emulator", current().api)
        with driver.limit_memory(1 << 10), stream.to_device(np.zeros(1 << 20)):
            pass
    with stream.to_device(part) as there:
        part[...] = stream.to_host(there) + 1000


def cut_off(dask_worker: Any) -> None:
    """Cut a Dask worker's way to its scheduler; what it does it goes on with."""
    dask_worker.loop.add_callback(dask_worker.batched_stream.abort)


def parting(folder: str, bad: int, times: int, ordinal: int, part: npt.NDArray[np.int64]) -> None:
    """A tile whose Dask worker is cut off from its scheduler so many times, and goes on."""
    if part[0] == bad and note(folder, bad) <= times:
        cut_off(import_module("distributed").get_worker())
        time.sleep(1.0)
    part += 1000


def raising(folder: str, bad: int, times: int, ordinal: int, part: Sequence[int]) -> int:
    """A tile that raises so many times."""
    if part[0] == bad and note(folder, bad) <= times:
        raise KernelNotFoundError("there is none", name="k", available=("a", "b"))
    return sum(part)


def full(ordinal: int, part: Sequence[int]) -> int:
    """A tile that asks for more memory than the device has."""
    if part[0] == 0:
        current_tile().stream.empty(1 << 60, np.uint8)
    return len(part)


def pausing(folder: str, bad: int, ordinal: int, part: npt.NDArray[np.int64]) -> str:
    """A tile whose Dask worker has too much memory from then on; the worker that had it."""
    worker = import_module("distributed").get_worker()
    note(folder, int(part[0]))
    if part[0] == bad:
        worker.memory_manager.memory_limit = 1 << 20
    time.sleep(0.02 if worker.status.name == "running" and part[0] != bad else 0.6)
    return str(worker.address)


def out_of_memory_with_a_cause() -> None:
    error = OutOfMemoryError("allocating 5 bytes", call="cuMemAllocAsync", text="no memory")
    raise error from ValueError("the cause")


class OddError(Exception):
    """An error that pickle cannot make again."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


def odd() -> None:
    raise OddError(1, 2)


def leave() -> None:
    raise SystemExit(3)


def visible() -> tuple[str | None, int]:
    return os.environ.get("CUDA_VISIBLE_DEVICES"), len(cudadrv.list_devices())
