"""What a Dask worker does with a request: tasks of `cudadrv.cluster.dask_engine` come here."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Final, cast

from .dask_begins import Gate, tell
from .dask_client import DaskWorker
from .request import Reply, Request, RequestHandler, here
from .shared_arrays import NotHereError, Place, opened
from .worker_report import Claim, WorkerReport, report_of

_handlers: Final[dict[str, RequestHandler]] = {}
"""By the worker's address: there are several in a process where a cluster has no processes."""
_gate: Final = Gate()
"""What calls of this process go through, whichever worker of it has them."""
_END_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.2
_ending: Final[list[threading.Timer]] = []
"""What ends the process, once it is to end."""
_claims: Final[list[Claim]] = []
"""The devices that these have, as long as the process lives."""


def serve(
    requests: Sequence[Request], code: bytes, told: tuple[str, str] | None = None
) -> list[Reply]:
    """Answer requests of one function, one after the other.

    A worker whose context is lost leaves them to another one.

    Args:
        requests: the requests.
        code: the function's pickle.
        told: a topic, and what is told under it before a call that is to be made alone.
    """
    worker: DaskWorker = import_module("distributed").get_worker()
    handler = _handler(worker.address)
    replies: list[Reply] = []
    with _gate.entered(alone=told is not None):
        for request in requests:
            if request.giver == here() or not handler.is_broken:
                if told is not None:
                    tell(worker, *told)
                replies.append(handler.answer(replace(request, code=code)))
            elif replies:
                replies.append(handler.not_called())
            else:
                _end_soon()
                raise cast(Exception, import_module("distributed").Reschedule())
    return replies


def _end_soon() -> None:
    """End a process whose context is lost, if the client that learnt of it does not have it done.

    Until then it takes tasks only to give them back, and not many.
    """
    if not _ending:
        _ending.append(threading.Timer(_END_SECONDS, end))
        _ending[0].daemon = True
        _ending[0].start()
    time.sleep(_PAUSE_SECONDS)


# Dask gives the worker to a parameter of this name.
async def report(dask_worker: DaskWorker) -> WorkerReport:
    """This worker and its device, while the worker goes on: a driver's start takes a while."""
    address, threads = dask_worker.address, dask_worker.state.nthreads
    return await asyncio.to_thread(lambda: report_of(_handler(address).ordinal, address, threads))


def can_open(place: Place) -> bool:
    """Whether shared memory can be opened here: on the host that made it, by the same user."""
    try:
        opened(place, private=True)
    except NotHereError:
        return False
    return True


def end() -> None:
    """End the process, for a nanny to start another one."""
    os._exit(1)


def _handler(address: str) -> RequestHandler:
    handler = _handlers.get(address)
    if handler is None:
        claim = Claim(len(_claims))
        _claims.append(claim)
        # Dask itself moves arrays' bytes beside a pickle.
        handler = _handlers.setdefault(address, RequestHandler(address, claim.ordinal, None))
    return handler
