"""Every error that package `ptx` raises by itself derives from `PtxError`."""

from __future__ import annotations


class PtxError(Exception):
    """Root of the errors of package `ptx`."""
