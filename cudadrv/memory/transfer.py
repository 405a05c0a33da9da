"""One transfer by the driver, right whichever context is current."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, ParamSpec

from ..driver._api import CUresult
from ..driver.stream_box import StreamBox

_P = ParamSpec("_P")
_REFUSED: Final = int(CUresult.CUDA_ERROR_INVALID_VALUE)


def transfer(
    stream: StreamBox,
    function: Callable[_P, tuple[CUresult]],
    *args: _P.args,
    **kwargs: _P.kwargs,
) -> CUresult:
    """Call a copy function of the driver for a stream and give its result.

    With a context of another device current, driver 580 refuses copies of stream-ordered memory
    (CUDA_ERROR_INVALID_VALUE), although they name their stream; with none current it takes them.
    Binding the stream's context for each copy would cost 0.4 µs, so it is bound where the driver
    refuses, and in a capture, which a refusal would spoil.
    """
    if stream.capture is None:
        (code,) = function(*args, **kwargs)
        if code != _REFUSED:
            return code
    (code,) = stream.context.call(function, *args, **kwargs)
    return code
