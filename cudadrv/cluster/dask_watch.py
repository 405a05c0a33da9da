"""Calls that wait for workers which take none: which go elsewhere, and which have waited long."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ..errors import NoWorkerError
from .dask_client import DaskClient
from .dask_task import Sent
from .dask_view import ClusterView

_ANY: Final = ""  # instead of an address
_REMEDY: Final = (
    "  Dask pauses a worker whose process has more than a share of its memory_limit: give workers\n"
    "  a larger one, or memory_limit=0 where they are threads of a process that does other work"
)


@dataclass(slots=True)
class Decision:
    """What is to be done with tasks, by their keys.

    Attributes:
        elsewhere: those that other workers are to have.
        refused: why no worker takes them.
    """

    elsewhere: list[str] = field(default_factory=list)
    refused: dict[str, NoWorkerError] = field(default_factory=dict)


class DaskWatch:
    """Looks at the workers from time to time.

    Args:
        client: whose cluster.
        grace_seconds: how long calls wait that no worker takes.

    Attributes:
        is_over: whether they have waited so long now.
    """

    def __init__(self, client: DaskClient, grace_seconds: float) -> None:
        self.is_over: bool = False
        self._client = client
        self._grace_seconds = grace_seconds
        # Since when a worker takes no calls, by address; or none of them does.
        self._since: dict[str, float] = {}

    def look(self, sent: Mapping[str, Sent]) -> Decision:
        """Decide on tasks that are under way."""
        decision = Decision()
        if not sent:
            # Workers that nobody asks for anything keep nobody waiting.
            self._since.clear()
            self.is_over = False
            return decision
        try:
            view = ClusterView.of(self._client)
        except Exception:  # the scheduler is gone; Dask cancels the futures
            return decision
        self._note(view)
        self.is_over = self._waited(_ANY) > self._grace_seconds
        for key, each in list(sent.items()):  # another thread adds to it
            at = each.wish.address
            # Where all workers were gone, Dask waits for the very one that a task was to go to.
            is_gone = at is not None and at not in view.states and key not in view.placed
            is_held = key in view.held and not each.wish.only
            if is_gone or (is_held and view.takers):
                decision.elsewhere.append(key)
            elif key not in view.begun:
                whom = at if each.wish.only and at is not None else _ANY
                if self._waited(whom) > self._grace_seconds:
                    decision.refused[key] = self._refusal(whom, view)
        return decision

    def no_worker(self) -> NoWorkerError:
        """That the cluster has none."""
        return NoWorkerError(
            f"the cluster has had no worker for {self._grace_seconds:g} s\n"
            "  start some for its scheduler, or give GpuExecutor.dask more grace_seconds",
            states={},
        )

    def _note(self, view: ClusterView) -> None:
        idle = view.states.keys() - view.takers
        if not view.takers:
            idle = idle | {_ANY}
        now = time.monotonic()
        self._since = {each: self._since.get(each, now) for each in idle}

    def _waited(self, whom: str) -> float:
        now = time.monotonic()
        return now - self._since.get(whom, now)

    def _refusal(self, whom: str, view: ClusterView) -> NoWorkerError:
        if not view.states:
            return self.no_worker()
        if whom == _ANY:
            what = f"no worker of the cluster has begun a call for {self._grace_seconds:g} s"
        else:
            what = f"the one worker for this call has begun none for {self._grace_seconds:g} s"
        chosen = sorted(view.states) if whom == _ANY else [whom]
        lines = [f"  {address}: {view.text(address)}" for address in chosen]
        return NoWorkerError("\n".join([f"{what}:", *lines, _REMEDY]), states=view.states)
