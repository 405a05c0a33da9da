"""What brings calls to workers: processes of this host, or Dask."""

from __future__ import annotations

from abc import ABC, abstractmethod

from .call import Call
from .pickled import Function
from .worker_report import WorkerReport


class Engine(ABC):
    """Workers, and a way to them."""

    @abstractmethod
    def workers(self) -> tuple[WorkerReport, ...]:
        """The workers that there are now; waits for those that are starting.

        Raises:
            CudadrvError: none of them could be started.
        """

    @abstractmethod
    def depth(self, worker: int, nbytes: int, function: Function) -> int:
        """How many tiles of a size a worker is given at once, as far as is known now."""

    @abstractmethod
    def start(self, call: Call, worker: int | None = None) -> None:
        """Let a call be made, by the worker of a number if that is possible.

        Raises:
            ExecutorClosedError: the engine was closed.
        """

    @abstractmethod
    def start_on(self, call: Call, worker: int) -> None:
        """Let a call be made by the worker of a number and no other."""

    @abstractmethod
    def close(self, *, wait: bool, cancel: bool) -> None:
        """Take no more calls; end the workers when all are done. Idempotent."""

    @abstractmethod
    def abort(self) -> None:
        """End everything now; afterwards nothing touches the memory of a caller. Idempotent."""
