"""A call on its way to a worker and back, until it has succeeded or failed for good."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

import numpy as np

from ..errors import WorkerLostError
from .failure import Failure
from .pickled import Function, packed
from .request import Reply, Request, Wanted, here
from .shared_arrays import Segment
from .tile_policy import TilePolicy


class Call:
    """A function with its arguments, and the future of what comes of it.

    Attributes:
        function: what is called.
        future: for who waits.
        attempts: how often it was begun.
        worker: the name of the worker that had it last, "" before.
        ordinal: that one's device.
    """

    __slots__ = (
        "_arguments", "_deliver", "_items", "_policy", "_retries", "attempts", "function",
        "future", "ordinal", "worker",
    )  # fmt: skip

    def __init__(
        self,
        function: Function,
        arguments: tuple[tuple[object, ...], dict[str, object]],
        policy: TilePolicy,
        *,
        items: range | None = None,
        deliver: Callable[[object], None] | None = None,
    ) -> None:
        """A call; a tile's has items, and one that changes them is told where to `deliver` them."""
        self.function: Function = function
        self.future: Future[object] = Future()
        self.attempts: int = 0
        self.worker: str = ""
        self.ordinal: int = -1
        self._arguments = arguments
        self._policy = policy
        self._items = items
        self._deliver = deliver
        self._retries = policy.retried

    @property
    def seconds(self) -> float | None:
        """How long it may take."""
        return self._policy.seconds

    def begin(self) -> bool:
        """Begin it, for the first time or again; False where it was cancelled before."""
        future = self.future
        if not future.running():
            if future.done() and not future.cancelled():
                return False  # it was given up
            if not future.set_running_or_notify_cancel():
                return False
        self.attempts += 1
        return True

    def put_back(self) -> None:
        """Note that the worker did not begin it."""
        self.attempts -= 1

    def request(
        self,
        *,
        has_function: bool,
        share: Callable[[int], Segment] | None,
        is_private: bool,
    ) -> Request:
        """What a worker is sent.

        Raises:
            ArgumentTypeError: an argument cannot be pickled.
            OSError: there is not so much memory to share.
        """
        parcel = packed(self._arguments, share)
        wanted = Wanted.RESULT
        if self._deliver is not None:
            in_place = parcel.place is not None and not is_private and self._is_plain_array()
            wanted = Wanted.NOTHING if in_place else Wanted.ITEMS
        return Request(
            self.function.digest, None if has_function else self.function.code, parcel,
            self._items, wanted, is_private, self.seconds, here(),
        )  # fmt: skip

    def _is_plain_array(self) -> bool:
        tile = self._arguments[0][0]
        return isinstance(tile, np.ndarray) and not tile.dtype.hasobject

    def accept(self, reply: Reply, value: Callable[[], object]) -> bool:
        """Take an answer; whether the call is to be made once more.

        Args:
            reply: the answer.
            value: gives its value; of a tile that was changed in shared memory, the tile.
        """
        self.worker, self.ordinal = reply.worker, reply.ordinal
        if reply.failure is not None:
            if reply.is_broken:
                return self.lose("its context is lost", reply.failure)
            if self._retries > 0:
                self._retries -= 1
                return True
            self.fail(reply.failure.raised())
            return False
        try:
            result = value()
            if self._deliver is not None:
                self._deliver(result)
                result = None
        except Exception as error:  # what cannot be unpickled, or is not for these items
            self.fail(error)
        else:
            self.future.set_result(result)
        return False

    def lose(self, reason: str, failure: Failure | None = None) -> bool:
        """Note that its worker is lost; whether the call is to be made once more."""
        if self.attempts <= self._policy.redone:
            return True
        what = f"items {self._items.start} to {self._items.stop}" if self._items else "a call"
        lost = WorkerLostError(
            f"{what}: worker {self.worker} was lost ({reason}), in attempt {self.attempts}",
            worker=self.worker,
            attempts=self.attempts,
        )
        if failure is not None:
            lost.__cause__ = failure.raised()
        self.fail(lost)
        return False

    def fail(self, error: BaseException) -> None:
        """End it with an error."""
        if not self.future.done():
            self.future.set_exception(error)
