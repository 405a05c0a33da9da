"""The error of tensor maps."""

from __future__ import annotations

from .base import CudadrvError


class TensorMapError(CudadrvError):
    """A tensor map that there cannot be: of such an array, by such boxes, or on such a device."""
