"""The error of CUDA arrays, textures and surfaces."""

from __future__ import annotations

from .base import CudadrvError


class TextureError(CudadrvError):
    """A CUDA array, texture or surface that there cannot be, or that CUDA would read otherwise."""
