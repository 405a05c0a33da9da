"""Settings from environment variables; a value that cannot be read is never fatal."""

from __future__ import annotations

import os
import warnings
from typing import Final

POOL_RELEASE_THRESHOLD_MB: Final = "CUDADRV_POOL_RELEASE_THRESHOLD_MB"
FREE_LIST_CAP_MB: Final = "CUDADRV_FREE_LIST_CAP_MB"

_MIB: Final = 1 << 20
_MOST_MIB: Final = (1 << 64) // _MIB - 1  # the driver keeps a threshold in 64 bits


def mebibytes(name: str, default_bytes: int) -> int:
    """The bytes that an environment variable gives in MiB, a whole number.

    A variable that is not set or empty is the default; one that cannot be read is the default
    too, with a `RuntimeWarning`.
    """
    text = os.environ.get(name, "").strip()
    if not text:
        return default_bytes
    if text.isascii() and text.isdecimal() and int(text) <= _MOST_MIB:
        return int(text) * _MIB
    warnings.warn(
        f"{name} is {text!r}, which is no whole number of MiB: using {default_bytes // _MIB}",
        RuntimeWarning,
        stacklevel=2,
    )
    return default_bytes
