"""`DaskCluster`: the workers of a Dask cluster, and which of them begin tasks."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from ..errors import CudadrvError, NoWorkerError
from .dask_worker import end, report
from .worker_report import WorkerReport

_PAUSE_SECONDS: Final = 0.2
_ANSWER_SECONDS: Final = 10.0
_RUNNING: Final = "running"
_ANY: Final = ""  # in place of an address
_REMEDY: Final = (
    "  Dask pauses a worker whose process has more than a share of its memory_limit: give workers\n"
    "  a larger one, or memory_limit=0 where they are threads of a process that does other work"
)


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The workers at one moment, and the tasks of those that begin none.

    A paused worker begins no task: its process has more memory than the share of its memory_limit
    that Dask allows ("Worker Memory Management" in the manual of dask.distributed).

    Attributes:
        states: the scheduler's word for the state of each worker, by address.
        memory: bytes that the process of each worker has, and may have; 0 for any.
        running: whether any worker begins tasks.
        placed: the keys of tasks that some worker has.
        held: the keys of tasks that other workers than those have, and have not begun.
        begun: the keys of tasks that such workers are executing.
    """

    states: dict[str, str]
    memory: dict[str, tuple[int, int]]
    running: bool
    placed: frozenset[str]
    held: frozenset[str]
    begun: frozenset[str]


class DaskCluster:
    """The workers that a cluster has had, by number, and how long they have begun no task.

    Args:
        client: a `distributed.Client`, which has no types.
        grace_seconds: how long calls wait that no worker begins.

    Attributes:
        is_late: whether calls for any worker have waited that long.
    """

    def __init__(self, client: Any, grace_seconds: float) -> None:
        self.is_late: bool = False
        self._client = client
        self._grace_seconds = grace_seconds
        self._reports: dict[str, WorkerReport] = {}
        self._addresses: list[str] = []  # by number
        self._leaving: set[str] = set()
        self._threads: dict[str, int] = {}
        # Since when a worker begins no calls, by address; or none of them does.
        self._since: dict[str, float] = {}

    def workers(self) -> tuple[WorkerReport, ...]:
        """Return those that the scheduler has now; new ones are asked for their reports.

        Raises:
            NoWorkerError: there is none.
        """
        deadline = time.monotonic() + self._grace_seconds
        while True:
            known = self._reports.keys() | self._leaving
            self._ask([each for each in self._client.nthreads() if each not in known])
            present = [each for each in sorted(self._client.nthreads()) if each in self._reports]
            if present:
                return tuple(self._reports[each] for each in present)
            # All may just be replaced.
            if time.monotonic() > deadline:
                raise self.no_worker()
            with contextlib.suppress(TimeoutError):
                left = deadline - time.monotonic()
                self._client.wait_for_workers(1, timeout=max(0.1, left))
            time.sleep(_PAUSE_SECONDS)

    def counts(self) -> tuple[int, int]:
        """How many workers are known, and how many threads they have; at least one."""
        reports = list(self._reports.values())
        return max(1, len(reports)), max(1, sum(each.threads for each in reports))

    def address(self, number: int) -> str:
        """Where the worker of a number is, or was."""
        return self._addresses[number]

    def threads(self, address: str) -> int:
        """How many calls a worker makes at once, or made."""
        return self._threads[address]

    def replace(self, address: str) -> None:
        """Have a worker end, for its nanny to start another one. Does not wait for it."""
        if self._reports.pop(address, None) is None:
            return  # it is under way
        self._leaving.add(address)

        def replace() -> None:
            with contextlib.suppress(Exception):  # it has ended before it could answer
                self._run(end, [address])

        threading.Thread(target=replace, name="cudadrv dask end", daemon=True).start()

    def view(self) -> ClusterView:
        """The cluster as it is now; notes which workers begin no tasks.

        Raises:
            Exception: the scheduler is gone, or does not answer.
        """
        workers: dict[str, dict[str, Any]] = self._asked("identity")["workers"]
        states = {address: str(each["status"]) for address, each in workers.items()}
        memory = {
            address: (int(each["metrics"].get("memory", 0)), int(each["memory_limit"] or 0))
            for address, each in workers.items()
        }
        idle = {address for address, state in states.items() if state != _RUNNING}
        processing: dict[str, list[str]] = self._asked("processing")
        waiting = [key for address, keys in processing.items() if address in idle for key in keys]
        begun = self._begun(waiting)
        placed = frozenset(key for keys in processing.values() for key in keys)
        running = len(idle) < len(states)
        now = time.monotonic()
        silent = idle if running else idle | {_ANY}
        self._since = {each: self._since.get(each, now) for each in silent}
        self.is_late = self._waited(_ANY) > self._grace_seconds
        return ClusterView(states, memory, running, placed, frozenset(waiting) - begun, begun)

    def forget_waits(self) -> None:
        """Note that no call waits: workers that are given none keep none waiting."""
        self._since.clear()
        self.is_late = False

    def refusal(self, only: str | None, view: ClusterView) -> NoWorkerError | None:
        """Why a call fails that no worker begins, or not the only one; None while it may wait."""
        whom = _ANY if only is None else only
        if self._waited(whom) <= self._grace_seconds:
            return None
        if not view.states:
            return self.no_worker()
        if only is None:
            what = f"no worker of the cluster has begun a call for {self._grace_seconds:g} s"
        else:
            what = f"the one worker for this call has begun none for {self._grace_seconds:g} s"
        lines = [f"{what}:"]
        for address in sorted(view.states) if only is None else [only]:
            has, limit = view.memory[address]
            of = f" of its memory_limit of {limit >> 20} MiB" if limit else ""
            lines.append(f"  {address}: {view.states[address]}, with {has >> 20} MiB{of}")
        return NoWorkerError("\n".join([*lines, _REMEDY]), states=view.states)

    def no_worker(self) -> NoWorkerError:
        """The error of a cluster that has none."""
        return NoWorkerError(
            f"the cluster has had no worker for {self._grace_seconds:g} s\n"
            "  start some for its scheduler, or give GpuExecutor.dask more grace_seconds",
            states={},
        )

    def _waited(self, whom: str) -> float:
        now = time.monotonic()
        return now - self._since.get(whom, now)

    def _ask(self, addresses: list[str]) -> None:
        """Take the reports of new workers; those that end meanwhile are left out."""
        if not addresses:
            return
        for address, found in self._run(report, addresses).items():
            if isinstance(found, WorkerReport):
                self._reports[address] = replace(found, number=len(self._addresses))
                self._addresses.append(address)
                self._threads[address] = found.threads
            elif isinstance(found, CudadrvError):
                raise found

    def _begun(self, keys: list[str]) -> frozenset[str]:
        """The tasks that are being executed; all, where a worker does not answer."""
        if not keys:
            return frozenset()
        try:
            stacks: dict[str, dict[str, object]] = self._asked("call_stack", keys=keys)
        except Exception:  # it is stopped, say: the scheduler decides how long to wait for it
            return frozenset(keys)
        return frozenset(key for of_worker in stacks.values() for key in of_worker)

    def _asked(self, what: str, **arguments: object) -> Any:
        """What a handler of the scheduler returns."""
        function = getattr(self._client.scheduler, what)
        return self._client.sync(function, callback_timeout=_ANSWER_SECONDS, **arguments)

    def _run(self, function: Callable[..., object], workers: list[str]) -> dict[str, object]:
        """What a function returns in each worker, or its error."""
        found: dict[str, object] = self._client.run(function, workers=workers, on_error="return")
        return found
