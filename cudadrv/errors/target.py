"""The error of compiling that belongs to both packages; a module of its own, as it needs `ptx`."""

from __future__ import annotations

from ptx import errors as ptx_errors

from .base import CudadrvError


class UnsupportedTargetError(CudadrvError, ptx_errors.UnsupportedTargetError):
    """No image that the installed NVRTC can make will load on the device.

    It is the error of package `ptx`, too, for those that compile without a device.
    """
