"""The way of calls into a Dask cluster: short ones of one function go together, as one task."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

from .call import Call
from .dask_begins import DaskBegins
from .dask_client import DaskClient, DaskFuture
from .dask_roster import DaskRoster
from .dask_task import Sent, Wish, all_of
from .dask_worker import serve
from .request import Request, keep
from .shared_arrays import Segment

_MOST_TOGETHER: Final = 64
_TASK_SECONDS: Final = 0.02  # of a task of several calls
_LARGE_CODE: Final = 1 << 15


class DaskOutbox:
    """Calls that are to be sent, and the thread's work that sends them: all that there are at once.

    Args:
        client: the client.
        roster: its workers.
        sent: is given each task, before Dask has it.
        ended: is given the key of each task when it has ended.

    Attributes:
        begins: what is known of calls that are made alone.
    """

    def __init__(
        self,
        client: DaskClient,
        roster: DaskRoster,
        sent: Callable[[Sent], None],
        ended: Callable[[str], None],
    ) -> None:
        token = f"cudadrv-{secrets.token_hex(4)}"
        self.begins: DaskBegins = DaskBegins(client, token)
        self._client = client
        self._roster = roster
        self._tell_sent = sent
        self._tell_ended = ended
        self._keys = (f"{token}-{number}" for number in itertools.count())
        self._codes: dict[str, DaskFuture] = {}
        self._seconds: dict[str, float] = {}
        self._given: SimpleQueue[tuple[Call, Wish] | None] = SimpleQueue()

    def put(self, call: Call, wish: Wish) -> None:
        """Send a call, soon."""
        self._given.put((call, wish))

    def end(self) -> None:
        """Let `run` return when all that was put in before is sent."""
        self._given.put(None)

    def note(self, digest: str, seconds: float) -> None:
        """Note how long a call of a function took."""
        former = self._seconds.get(digest, seconds)
        keep(self._seconds, digest, (former + seconds) / 2)

    def together(self, digest: str) -> int:
        """How many calls of a function are a task."""
        seconds = self._seconds.get(digest, _TASK_SECONDS)
        return max(1, min(_MOST_TOGETHER, int(_TASK_SECONDS / max(seconds, 1e-6))))

    def run(self) -> None:
        """Send calls, as many together as their time allows, until the end."""
        has_ended = False
        while not has_ended:
            together: dict[tuple[str, Wish], list[Call]] = {}
            for given in all_of(self._given, None):
                if given is None:
                    has_ended = True
                    continue
                call, wish = given
                if not call.begin():
                    continue
                digest = call.function.digest
                calls = together.setdefault((digest, wish), [])
                calls.append(call)
                if wish.alone or len(calls) >= self.together(digest):
                    self._submit(calls, wish)
                    del together[digest, wish]
            for (_, wish), calls in together.items():
                self._submit(calls, wish)

    def _submit(self, calls: list[Call], wish: Wish) -> None:
        segments: list[Segment] = []
        sendable: list[Call] = []
        requests: list[Request] = []
        for call in calls:
            try:
                requests.append(self._request(call, segments))
                sendable.append(call)
            except Exception as error:  # arguments that cannot be pickled, or are too large
                call.fail(error)
        if not requests:
            return
        key = next(self._keys)
        try:
            future = self._client.submit(
                serve, requests, self._code(sendable[0]),
                (self.begins.topic(), key) if wish.alone else None,
                key=key, pure=False,
                workers=None if wish.address is None else [wish.address],
                allow_other_workers=wish.address is not None and not wish.only,
            )  # fmt: skip
            self._tell_sent(Sent(key, sendable, wish, future, segments))
            future.add_done_callback(lambda _: self._tell_ended(key))
        except Exception as error:  # the client is closed
            for call in sendable:
                call.fail(error)

    def _request(self, call: Call, segments: list[Segment]) -> Request:
        def share(nbytes: int) -> Segment:
            segments.append(Segment(nbytes))
            return segments[-1]

        return call.request(
            has_function=True, share=share if self._roster.is_shared else None, is_private=True
        )

    def _code(self, call: Call) -> bytes | DaskFuture:
        """The function: with the task, or, if it is large, once a worker."""
        function = call.function
        if len(function.code) <= _LARGE_CODE:
            return function.code
        found = self._codes.get(function.digest)
        if found is None or found.status not in ("pending", "finished"):
            # A task, and no data of the client's: so Dask makes it again where a worker is lost.
            found = self._client.submit(
                bytes, function.code, key=f"cudadrv-code-{function.digest}", pure=False
            )
            keep(self._codes, function.digest, found)
        return found
