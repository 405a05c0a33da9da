"""Which device a worker has: one of those that the batch system has made visible, unchanged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cudadrv import emulator, list_devices
from cudadrv.cluster import GpuExecutor
from cudadrv.cluster.dask_worker import first_free, held_name
from cudadrv.cluster.local_pool import LocalPool, WorkerSpec
from tests.process.cluster import jobs

VISIBLE = "CUDA_VISIBLE_DEVICES"
_DEVICES = 4


def uuids() -> list[str]:
    """Those of the emulator's devices, which are the same in every process."""
    with emulator.session(devices=_DEVICES):
        return [str(each.uuid).removeprefix("GPU-") for each in list_devices()]


def bare(uuid: str) -> str:
    return uuid.removeprefix("GPU-")


def cases() -> list[tuple[str, list[int]]]:
    """What a batch system sets, and the devices that are meant."""
    found = uuids()
    return [
        ("2,0", [2, 0]),
        (f"GPU-{found[1]},GPU-{found[3]}", [1, 3]),
        (f"MIG-{found[2]}", [2]),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("case", range(3), ids=["numbers", "uuids", "mig"])
def test_processes_take_visible_devices_by_their_indices_and_change_nothing(case: int) -> None:
    text, devices = cases()[case]
    # As for GPUs: the process has the driver's devices, and takes the one of its index.
    environment = {"CUDADRV_DRIVER": f"emulator:{_DEVICES}", VISIBLE: text}
    specs = [WorkerSpec(index, None, environment) for index in range(len(devices))]
    with GpuExecutor(LocalPool(specs)) as executor:
        workers = executor.workers
        assert [bare(each.uuid) for each in workers] == [uuids()[n] for n in devices]
        assert [each.device.ordinal for each in workers] == list(range(len(devices)))
        assert [each.visible for each in workers] == [text] * len(devices)
        assert [each.result() for each in executor.on_each(jobs.visible)] == [
            (text, len(devices))
        ] * len(devices)
        assert [each.result()[1:] for each in executor.on_each(jobs.where)] == [
            (index, index) for index in range(len(devices))
        ]


@contextmanager
def workers_with(*texts: str) -> Iterator[Any]:
    """A client of Dask processes that see different devices, as those of dask-cuda and Slurm."""
    dask = pytest.importorskip("dask", reason="needs distributed")
    distributed = pytest.importorskip("distributed", reason="needs distributed")
    workers = {
        number: {
            "cls": distributed.Nanny,
            "options": {
                "nthreads": 1,
                "env": {VISIBLE: text, "CUDADRV_DRIVER": f"emulator:{_DEVICES}"},
            },
        }
        for number, text in enumerate(texts)
    }
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard_address": ":0"}}
    with (
        dask.config.set({"distributed.logging.distributed": "critical"}),
        distributed.SpecCluster(workers, scheduler, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of libraries that are not ours
def test_a_dask_worker_has_the_first_device_that_is_visible_to_it() -> None:
    texts = {text: devices[0] for text, devices in cases()}
    with workers_with(*texts) as client, GpuExecutor.dask(client) as executor:
        found = {each.visible: bare(each.uuid) for each in executor.workers}
        assert found == {text: uuids()[device] for text, device in texts.items()}
        assert all(each.result()[1:] == (0, 0) for each in executor.on_each(jobs.where))


@pytest.mark.parametrize(
    ("seen", "chosen"),
    [
        (["abc", "abc", "abc", "abc"], "abca"),  # a plain cluster: all see all
        (["abc", "bca", "cab"], "abc"),  # dask-cuda: each another one first
        (["a", "b", "c", "b"], "abcb"),  # Slurm: each sees one
        (["ab", "ab", "b"], "abb"),
    ],
)
def test_workers_share_the_devices_evenly_whatever_each_sees(seen: list[str], chosen: str) -> None:
    taken: set[str] = set()

    def take(name: str) -> bool:
        is_new = name not in taken
        taken.add(name)
        return is_new

    found = [first_free(list(names), take) for names in seen]
    assert "".join(names[n or 0] for names, n in zip(seen, found, strict=True)) == chosen


@pytest.mark.skipif(sys.platform != "linux", reason="needs names of sockets without files")
def test_a_device_that_another_process_has_is_free_when_that_ends() -> None:
    name = f"test-{os.getpid()}"
    code = (
        "import sys; from cudadrv.cluster.dask_worker import held_name; "
        f"held = held_name({name!r}); print(held is not None, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        assert held_name(name) is None
        other.send_signal(signal.SIGKILL)
    held = held_name(name)
    assert held is not None
    assert held_name(name) is None
    held.close()
