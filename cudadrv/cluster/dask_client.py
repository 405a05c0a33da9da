"""What is used of Dask, as types: whether it is installed or not, they are the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol


class DaskFuture(Protocol):
    """What is used of a `distributed.Future`."""

    key: str
    status: str

    def add_done_callback(self, function: Callable[[DaskFuture], None]) -> None:
        """Call a function, in a thread of the client's, when it has ended."""

    def exception(self) -> BaseException | None:
        """What the task raised."""

    def cancel(self) -> None:
        """Ask that it be given up."""

    def release(self) -> None:
        """Want it no more: what nobody wants is not made again where its worker is lost."""


class DaskClient(Protocol):
    """What is used of a `distributed.Client`."""

    loop: Any  # tornado's, which has asyncio's
    scheduler: Any  # a function for each handler of the scheduler

    def submit(self, function: Callable[..., object], *args: object, **kwargs: Any) -> DaskFuture:
        """Have a function called."""

    def gather(self, futures: Mapping[str, DaskFuture], **kwargs: Any) -> Any:
        """The results."""

    def run(self, function: Callable[..., object], *args: object, **kwargs: Any) -> Any:
        """Call a function in each worker, whatever it is doing."""

    def sync(
        self, function: Callable[..., Any], *, callback_timeout: float, **arguments: object
    ) -> Any:
        """What a coroutine function of the client's loop gives, or TimeoutError."""

    def subscribe_topic(self, topic: str, handler: Callable[[tuple[float, Any]], object]) -> None:
        """Have each event of a topic from now on, with its time, in the client's loop."""

    def unsubscribe_topic(self, topic: str) -> None:
        """Have them no more."""

    def nthreads(self) -> dict[str, int]:
        """The workers by address."""

    def wait_for_workers(self, n_workers: int, timeout: float) -> None:
        """Wait for some, or raise TimeoutError."""


class DaskWorker(Protocol):
    """What is used of a `distributed.Worker`."""

    address: str
    loop: Any  # tornado's, which has asyncio's
    scheduler: Any  # a function for each handler of the scheduler
    state: DaskWorkerState


class DaskWorkerState(Protocol):
    """What is used of its state."""

    nthreads: int
