"""The public streams and contexts."""

from .context_and_stream import (
    Context as Context,
    Stream as Stream,
    StreamPool as StreamPool,
    cuda_context_for as cuda_context_for,
)

__all__ = ["Context", "Stream", "StreamPool", "cuda_context_for"]
