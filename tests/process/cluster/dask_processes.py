"""Dask workers that are processes of this host."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def three_processes(threads: int, **settings: object) -> Iterator[Any]:
    """A client of three processes with nannies, under settings of `distributed` by name.

    distributed has no types, and may be absent.
    """
    import dask
    import distributed

    # A busy machine takes longer to replace a worker than a cluster waits before it forgets it.
    usual: dict[str, object] = {
        "logging.distributed": "critical",
        "deploy.lost-worker-timeout": "120s",
    }
    named = {f"distributed.{name}": value for name, value in {**usual, **settings}.items()}
    with (
        dask.config.set(named),
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=threads, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
