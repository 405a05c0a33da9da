"""Where the user wants images to be kept, and how many."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ptx.base_errors import PtxArgumentValueError

DEFAULT_MAX_BYTES: Final = 512 * 1024 * 1024


class NoCacheFolderError(OSError):
    """Nothing says where images could be kept: there is no home folder."""


def folder_from_environment() -> Path:
    """`CUDADRV_CACHE_DIR`, or the platform's cache folder for this user.

    Raises:
        NoCacheFolderError: there is no such folder, as in a container that knows no user.
    """
    if named := os.environ.get("CUDADRV_CACHE_DIR"):
        try:
            return Path(named).expanduser()
        except RuntimeError:
            raise NoCacheFolderError(
                f"CUDADRV_CACHE_DIR={named!r} begins with a home folder that is not known"
            ) from None
    import platformdirs  # saves 2 ms where the folder is named

    try:
        path = Path(platformdirs.user_cache_dir("cudadrv", appauthor=False))
    except RuntimeError:  # older versions give a relative path instead, or one from an empty HOME
        path = Path()
    lost = os.environ.get("HOME") == "" and path.parent == Path("/.cache")
    if lost or not path.is_absolute():
        raise NoCacheFolderError("there is no home folder (HOME is not set, empty or relative)")
    return path


def max_bytes_from_environment() -> int:
    """`CUDADRV_CACHE_MAX_MB` in bytes; 0 means no cache on disk.

    Raises:
        ValueError: it is set to something that is not a number.
    """
    text = os.environ.get("CUDADRV_CACHE_MAX_MB")
    if text is None or not text.strip():
        return DEFAULT_MAX_BYTES
    try:
        return max(0, int(float(text) * 1024 * 1024))
    except (ValueError, OverflowError):
        raise PtxArgumentValueError(
            f"CUDADRV_CACHE_MAX_MB={text!r} is not a number of megabytes (0 turns the cache off)"
        ) from None


def folder_in_use() -> Path | None:
    """Where images are kept; None where they are not, as the user says so or there is no home.

    Raises:
        ValueError: `CUDADRV_CACHE_MAX_MB` is not a number.
    """
    try:
        return folder_from_environment() if max_bytes_from_environment() else None
    except OSError:
        return None  # a cache finds that out as well, and says it once
