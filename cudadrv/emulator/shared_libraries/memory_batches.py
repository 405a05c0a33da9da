"""Batches of copies, prefetches and discards, which C has in arrays."""

from __future__ import annotations

from typing import Final

from .special import Handlers

MEMORY_BATCHES: Final = Handlers()
