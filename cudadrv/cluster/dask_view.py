"""What a Dask scheduler says of its workers at one moment: who begins calls, and who does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from .dask_client import DaskClient

_ANSWER_SECONDS: Final = 10.0
_RUNNING: Final = "running"


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The workers, and the tasks of those that begin none.

    A worker is paused, which means that it begins no task, while its process has more memory than
    the share of its memory_limit that Dask allows ("Worker Memory Management" in the manual of
    dask.distributed).

    Attributes:
        states: what the scheduler calls the state of each worker, by address.
        memory: bytes that the process of each worker has, and may have; 0 for any.
        takers: those that begin tasks.
        placed: the keys of tasks that some worker has.
        held: those of tasks that others than the takers have, and have not begun.
        begun: the keys of tasks that others are in the middle of.
    """

    states: dict[str, str]
    memory: dict[str, tuple[int, int]]
    takers: frozenset[str]
    placed: frozenset[str]
    held: frozenset[str]
    begun: frozenset[str]

    @classmethod
    def of(cls, client: DaskClient) -> ClusterView:
        """The cluster as it is now.

        Raises:
            Exception: the scheduler is gone, or does not answer.
        """
        workers: dict[str, dict[str, Any]] = _asked(client, "identity")["workers"]
        states = {address: str(each["status"]) for address, each in workers.items()}
        memory = {
            address: (int(each["metrics"].get("memory", 0)), int(each["memory_limit"] or 0))
            for address, each in workers.items()
        }
        takers = frozenset(address for address, state in states.items() if state == _RUNNING)
        placed: dict[str, list[str]] = _asked(client, "processing")
        idle = [key for address, keys in placed.items() if address not in takers for key in keys]
        begun = _begun(client, idle)
        every = frozenset(key for keys in placed.values() for key in keys)
        return cls(states, memory, takers, every, frozenset(idle) - begun, begun)

    def text(self, address: str) -> str:
        """The state of a worker, with its memory."""
        has, limit = self.memory[address]
        of = f" of its memory_limit of {limit >> 20} MiB" if limit else ""
        return f"{self.states[address]}, with {has >> 20} MiB{of}"


def _begun(client: DaskClient, keys: list[str]) -> frozenset[str]:
    """Those of the tasks that are being executed; all, where a worker does not say so."""
    if not keys:
        return frozenset()
    try:
        stacks: dict[str, dict[str, object]] = _asked(client, "call_stack", keys=keys)
    except Exception:  # it is stopped, say: who waits for it is the scheduler's to decide
        return frozenset(keys)
    return frozenset(key for of_worker in stacks.values() for key in of_worker)


def _asked(client: DaskClient, what: str, **arguments: object) -> Any:
    function = getattr(client.scheduler, what)
    return client.sync(function, callback_timeout=_ANSWER_SECONDS, **arguments)
