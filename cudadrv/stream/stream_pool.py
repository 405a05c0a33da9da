"""Several streams that work is divided among."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from .. import border
from ..driver.handle import NotCopyable
from ..driver.stream_core import StreamCore
from ..errors import ArgumentIndexError, ArgumentValueError
from .stream_work import StreamWork

_StreamT = TypeVar("_StreamT", bound=StreamWork)


class StreamPool(NotCopyable, Generic[_StreamT]):
    """Streams of one context, given out in turn; made by `Context.new_stream_pool`.

    Threads may take streams at once. ``with`` closes them at its end.
    """

    __slots__ = ("_streams", "_turns")

    def __init__(self, streams: Sequence[_StreamT]) -> None:
        border.several("StreamPool: streams", streams, StreamWork)
        self._streams = tuple(streams)
        if not self._streams:
            raise ArgumentValueError("StreamPool: streams: there are none: give one or more")
        self._turns = itertools.count()

    def __repr__(self) -> str:
        return f"<StreamPool of {len(self)} streams>"

    def __len__(self) -> int:
        return len(self._streams)

    def __getitem__(self, number: int) -> _StreamT:
        place = border.integer("StreamPool: number", number)
        if not -len(self) <= place < len(self):
            raise ArgumentIndexError(f"{self!r} has no stream {place}")
        return self._streams[place]

    def __iter__(self) -> Iterator[_StreamT]:
        return iter(self._streams)

    def __enter__(self) -> StreamPool[_StreamT]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def next_stream(self) -> _StreamT:
        """The stream whose turn it is."""
        return self._streams[next(self._turns) % len(self._streams)]

    def fork(self, stream: StreamCore) -> None:
        """Let all of them wait for what a stream holds now."""
        border.instance("StreamPool.fork: stream", stream, StreamCore)
        event = stream.record(timing=False)
        for each in self._streams:
            each.wait(event)

    def join(self, stream: StreamWork) -> None:
        """Let a stream wait for what all of them hold now."""
        border.instance("StreamPool.join: stream", stream, StreamWork)
        for each in self._streams:
            stream.wait(each)

    def synchronize(self) -> None:
        """Wait until everything queued on them is done.

        Raises:
            CudaError: something that was queued failed.
        """
        for stream in self._streams:
            stream.synchronize()

    def close(self) -> None:
        """Give the streams up. Idempotent."""
        for stream in self._streams:
            stream.close()
