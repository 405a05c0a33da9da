"""Streams of our own, which stand in for what the driver does not order or has no more."""

from __future__ import annotations

from typing import Final

from ._api import CUstream_flags
from .context_box import ContextBox
from .in_use import failure
from .stream_box import EventBox, StreamBox

_NON_BLOCKING: Final = int(CUstream_flags.CU_STREAM_NON_BLOCKING)


def wait_by_way(stream: StreamBox, event: EventBox) -> None:
    """Let a stream wait for an event of several processes, which is another device's.

    A stream of that device waits for it, and this one for that: if this one did itself, the driver
    of CUDA 13.0 would end the process.
    """
    between = _private_stream(event.context)
    between.wait(event)
    stream.follow(between)


def replace(borrowed: StreamBox) -> None:
    """Put a stream of our own in the place of another library's, after what that was given.

    For memory that was used there and is needed still: its owner may destroy his stream now.
    """
    if borrowed.context.is_lost or borrowed.is_capturing():
        return  # nothing may wait for it
    own = _private_stream(borrowed.context)
    own.follow(borrowed)
    borrowed.raw, own.raw = own.raw, None  # type: ignore[assignment]  # it owns nothing any more
    borrowed.is_owned, borrowed.keeps = True, None


def _private_stream(context: ContextBox) -> StreamBox:
    """A stream that goes when its work is done and nothing needs it."""
    made = StreamBox(context, None, is_owned=True)
    code = made.make(context.api.cuStreamCreateWithPriority, _NON_BLOCKING, 0)
    if code:
        raise failure(context.api, code, "cuStreamCreateWithPriority", "making a stream")
    return made
