"""The workers of a Dask cluster: what each is, and by which number tiles know it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ..errors import CudadrvError, NoWorkerError
from .dask_client import DaskClient
from .dask_worker import can_open, end, report
from .shared_arrays import CAN_SHARE, Segment
from .worker_report import WorkerReport

_PAUSE_SECONDS: Final = 0.2


class DaskRoster:
    """The workers that a cluster has had.

    Args:
        client: whose cluster.
        grace_seconds: how long it may have none.
        refusal: what is raised then.

    Attributes:
        is_shared: whether they can open what this process shares, as far as is known.
    """

    def __init__(
        self, client: DaskClient, grace_seconds: float, refusal: Callable[[], NoWorkerError]
    ) -> None:
        self.is_shared: bool = CAN_SHARE
        self._client = client
        self._grace_seconds = grace_seconds
        self._refusal = refusal
        self._reports: dict[str, WorkerReport] = {}
        self._numbered: list[str] = []
        self._leaving: set[str] = set()
        self._threads: dict[str, int] = {}

    def workers(self) -> tuple[WorkerReport, ...]:
        """Those that the scheduler has now; new ones are asked what they are.

        Raises:
            NoWorkerError: there is none.
        """
        deadline = time.monotonic() + self._grace_seconds
        while True:
            known = self._reports.keys() | self._leaving
            self._ask([each for each in self._client.nthreads() if each not in known])
            there = [each for each in sorted(self._client.nthreads()) if each in self._reports]
            if there:
                return tuple(self._reports[each] for each in there)
            # All may just be replaced.
            if time.monotonic() > deadline:
                raise self._refusal()
            with contextlib.suppress(TimeoutError):
                left = deadline - time.monotonic()
                self._client.wait_for_workers(1, timeout=max(0.1, left))
            time.sleep(_PAUSE_SECONDS)

    def address(self, number: int) -> str:
        """Where the worker of a number is, or was."""
        return self._numbered[number]

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
                self._run(end, workers=[address])

        threading.Thread(target=replace, name="cudadrv dask end", daemon=True).start()

    def _ask(self, addresses: list[str]) -> None:
        """Ask new workers what they are; those that end meanwhile are none."""
        if not addresses:
            return
        for address, found in self._run(report, workers=addresses).items():
            if isinstance(found, WorkerReport):
                self._reports[address] = replace(found, number=len(self._numbered))
                self._numbered.append(address)
                self._threads[address] = found.threads
            elif isinstance(found, CudadrvError):
                raise found
        if self.is_shared:
            token = Segment(1)
            found_open = self._run(can_open, token.put(()), workers=addresses)
            self.is_shared = all(answer is not False for answer in found_open.values())

    def _run(
        self, function: Callable[..., object], *args: object, workers: list[str]
    ) -> dict[str, object]:
        """What a function gives in each worker, or its error."""
        found: dict[str, object] = self._client.run(
            function, *args, workers=workers, on_error="return"
        )
        return found
