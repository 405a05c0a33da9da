"""PyTorch's tensors.

Their array interface refuses a tensor that requires a gradient and names no stream; `data_ptr`
takes every tensor. So what the bytes of a tensor do not say is looked at here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from .reader import Reader


def readers() -> Iterator[tuple[type, Reader]]:
    """The types with their readers."""
    torch = sys.modules["torch"]
    if getattr(torch.version, "hip", None):
        return  # its tensors say "cuda", and are of another driver
    tensor = torch.Tensor
    reader = Reader(
        tensor.data_ptr,
        tensor.get_device,
        _current_stream_of(torch),
        attrgetter("dtype"),
        tensor.is_neg,
        _examined,
    )
    yield tensor, reader
    yield torch.nn.Parameter, reader


# The library need not be installed where types are checked; so it is Any here.
def _examined(tensor: Any) -> bool:
    if tensor.is_neg() or tensor.is_conj():
        raise BufferError(
            "is negated or conjugated only when it is read\n"
            "  give tensor.resolve_conj() or tensor.resolve_neg()"
        )
    if not tensor.data_ptr() and tensor.numel():
        raise BufferError("has no memory: it is fake, meta, a zero tensor, or was freed")
    # Only complex tensors are conjugated, so that others need not be asked at each launch.
    return not tensor.dtype.is_complex


def _current_stream_of(torch: Any) -> Callable[[int], int]:
    """What gives the number of PyTorch's current stream on a device."""
    quick: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if quick is not None:
        return quick

    def current(ordinal: int) -> int:
        number: int = torch.cuda.current_stream(ordinal).cuda_stream
        return number

    return current
