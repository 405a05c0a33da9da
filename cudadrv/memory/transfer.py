"""One transfer by the driver, right whichever context is current."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

from ..driver._api import CUresult
from ..driver.stream_handle import StreamHandle

_P = ParamSpec("_P")


def transfer(
    stream: StreamHandle,
    function: Callable[_P, tuple[CUresult]],
    *args: _P.args,
    **kwargs: _P.kwargs,
) -> CUresult:
    """Call a copy function of the driver for a stream and give its result.

    With a context of another device current, driver 580 refuses copies of stream-ordered memory
    (CUDA_ERROR_INVALID_VALUE), although they name their stream; with none current it takes them,
    but for what goes over the border of two mappings of a reserved range. Where there are several
    devices or such ranges it is asked which context is current, and the stream's own is bound for
    the call if need be, in a capture in any case: a refusal would spoil it, and be reported by who
    checks a program's calls.
    """
    context = stream.context
    if context.is_alone or (stream.capture is None and context.suits_copies()):
        (code,) = function(*args, **kwargs)
    else:
        (code,) = context.call(function, *args, **kwargs)
    return code
