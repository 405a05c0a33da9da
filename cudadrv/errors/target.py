"""The compilation error of both packages; in a module of its own, as it imports `ptx`."""

from __future__ import annotations

from ptx import errors as ptx_errors

from .base import CudadrvError


class UnsupportedTargetError(CudadrvError, ptx_errors.UnsupportedTargetError):
    """The installed NVRTC can make no image that loads on the device.

    It is also an error of package `ptx`, which is raised when compiling without a device.
    """
