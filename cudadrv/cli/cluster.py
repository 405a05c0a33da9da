"""``python -m cudadrv cluster``: the workers of an executor, and the self-test on each."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Final

from ..cluster.executor import GpuExecutor
from ..cluster.worker_report import WorkerReport
from ..errors import CudadrvError, RuntimeDependencyUnavailable
from ..pool.tile import current_tile
from .command_line import Commands, add_command, positive, program_name
from .output import print_error, print_table, print_text
from .selftest import Report, selftest_of

_COLUMNS: Final = ("worker", "process", "device", "name", "score", "MiB free", "MiB", "self-test")


@dataclass(frozen=True, slots=True)
class Checked:
    """A worker, and what its self-test found; None where none was made.

    Attributes:
        worker: the worker.
        test: the report.
        error: why there is none, though one was asked for.
    """

    worker: WorkerReport
    test: Report | None
    error: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.error and (self.test is None or self.test.ok)

    def row(self) -> tuple[str, ...]:
        """The cells of its line."""
        worker, device = self.worker, self.worker.device
        if self.test is None:
            outcome = self.error.partition("\n")[0] or "-"
        else:
            failed = [step.name for step in self.test.steps if not step.ok]
            seconds = sum(step.ms for step in self.test.steps) / 1e3
            outcome = f"FAILED: {', '.join(failed)}" if failed else f"ok in {seconds:.1f} s"
        return (
            worker.name, str(worker.pid), str(device.ordinal), device.name,
            f"{device.score():.0f}", str(device.free_mem_bytes >> 20),
            str(device.total_mem_bytes >> 20), outcome,
        )  # fmt: skip


def add_to(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "cluster",
        "Test the workers of this host or of a Dask cluster: devices, scores, self-tests.",
        example="--devices 2 --no-selftest",
        statuses={
            "0": "every worker passed",
            "1": "a worker failed, or there is none",
            "2": "the command line is wrong",
        },
    )
    addresses = parser.add_mutually_exclusive_group()
    addresses.add_argument(
        "--devices",
        type=positive,
        metavar="N",
        help="processes of this host, on the first N devices (default: all)",
    )
    addresses.add_argument(
        "--scheduler", metavar="ADDRESS", help="a Dask scheduler, such as tcp://host:8786"
    )
    parser.add_argument("--no-selftest", action="store_true", help="list the workers only")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    try:
        with _executor(options.devices, options.scheduler) as executor:
            workers = look(executor, test=not options.no_selftest)
    except (CudadrvError, OSError) as error:
        print_error(f"{program_name()} cluster: {error}")
        return 1
    if options.json:
        print_text(json.dumps([_as_json(worker) for worker in workers], indent=2))
    else:
        _print(workers)
    return 0 if workers and all(worker.is_ok for worker in workers) else 1


@contextmanager
def _executor(devices: int | None, scheduler: str | None) -> Iterator[GpuExecutor]:
    if scheduler is None:
        with GpuExecutor.local(devices) as executor:
            yield executor
        return
    try:
        distributed = import_module("distributed")
    except ModuleNotFoundError as error:
        raise RuntimeDependencyUnavailable(
            '--scheduler needs distributed: pip install "cudadrv[cluster]"'
        ) from error
    with distributed.Client(scheduler) as client, GpuExecutor.dask(client) as executor:
        yield executor


def look(executor: GpuExecutor, *, test: bool) -> list[Checked]:
    """Every worker, with its self-test if that is wanted."""
    workers = executor.workers
    if not test:
        return [Checked(worker, None) for worker in workers]
    checked: list[Checked] = []
    for worker, future in zip(workers, executor.on_each(tested), strict=True):
        try:
            checked.append(Checked(worker, future.result()))
        except Exception as error:  # whatever a worker raises is its result
            checked.append(Checked(worker, None, f"{type(error).__name__}: {error}"))
    return checked


def tested() -> Report:
    """On a worker: the self-test of its device."""
    return selftest_of(current_tile().ordinal)


def _as_json(checked: Checked) -> dict[str, object]:
    test = None if checked.test is None else {"ok": checked.test.ok, **asdict(checked.test)}
    return {
        **asdict(checked.worker),
        "score": checked.worker.device.score(),
        "ok": checked.is_ok,
        "selftest": test,
        "error": checked.error,
    }


def _print(workers: Sequence[Checked]) -> None:
    print_table("workers", _COLUMNS, [checked.row() for checked in workers])
    for checked in workers:
        for step in checked.test.steps if checked.test is not None else ():
            if not step.ok:
                print_text(f"failed on {checked.worker.name}: {step.name}: {step.detail}")
    print_text(f"{sum(checked.is_ok for checked in workers)} of {len(workers)} workers passed")
