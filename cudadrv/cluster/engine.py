"""An engine brings calls to workers: processes of this host, or Dask's."""

from __future__ import annotations

from abc import ABC, abstractmethod

from .call import Call
from .pickled import PickledFunction
from .worker_report import WorkerReport


class Engine(ABC):
    """Workers, and a way to them."""

    @abstractmethod
    def workers(self) -> tuple[WorkerReport, ...]:
        """Return the present workers; wait for those that are starting.

        Raises:
            CudadrvError: none of them could be started.
        """

    @abstractmethod
    def capacity(self, nbytes: int, function: PickledFunction) -> int:
        """Return how many tiles of a size are worth being started at once, as far as known now."""

    @abstractmethod
    def start(self, call: Call) -> None:
        """Have a call made.

        Raises:
            ExecutorClosedError: the engine was closed.
        """

    @abstractmethod
    def close(self, *, wait: bool, cancel: bool) -> None:
        """Accept no more calls; end the workers when all are done. Idempotent."""

    @abstractmethod
    def abort(self) -> None:
        """End everything now; then nothing touches the memory of a caller. Idempotent."""
