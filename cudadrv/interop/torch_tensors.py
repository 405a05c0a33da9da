"""PyTorch's tensors.

Their array interface refuses a tensor that requires a gradient and names no stream; `data_ptr`
takes every tensor. So what the bytes of a tensor do not say is looked at here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from .reader import Reader


def readers() -> Iterator[tuple[type, Reader]]:
    """The types with their readers."""
    torch = sys.modules["torch"]
    if getattr(torch.version, "hip", None):
        return  # its tensors say "cuda", and are of another driver
    reader = Reader(_address_of(torch), torch.Tensor.get_device, _current_stream_of(torch))
    yield torch.Tensor, reader
    yield torch.nn.Parameter, reader


# The library need not be installed where types are checked; so it is Any here.
def _address_of(torch: Any) -> Callable[[Any], int]:
    """What finds a tensor's address; local names are quicker than attributes."""
    data_ptr, is_neg, is_conj = torch.Tensor.data_ptr, torch.Tensor.is_neg, torch.Tensor.is_conj
    single, double = torch.float32, torch.float64

    def address(tensor: Any) -> int:
        dtype = tensor.dtype
        # Only complex tensors are conjugated; the usual types are seen without asking.
        if is_neg(tensor) or (dtype is not single and dtype is not double and is_conj(tensor)):
            raise BufferError(
                "is negated or conjugated only when it is read: give tensor.resolve_conj() or "
                "tensor.resolve_neg()"
            )
        found: int = data_ptr(tensor)
        if not found and tensor.numel():
            raise BufferError("has no memory: it is fake, meta, a zero tensor, or was freed")
        return found

    return address


def _current_stream_of(torch: Any) -> Callable[[int], int]:
    """What gives the number of PyTorch's current stream on a device."""
    quick: Callable[[int], int] | None = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if quick is not None:
        return quick

    def current(ordinal: int) -> int:
        number: int = torch.cuda.current_stream(ordinal).cuda_stream
        return number

    return current
