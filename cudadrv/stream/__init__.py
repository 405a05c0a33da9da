"""The public streams and contexts."""

from .context import Context as Context, Stream as Stream, cuda_context_for as cuda_context_for
