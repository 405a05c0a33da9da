"""What `scatter_batched` and `scatter_map` take beside a `GpuRuntime`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any


class TileExecutor(ABC):
    """Who runs tiles elsewhere than in threads of this process; `cudadrv.cluster` has it."""

    # Arrays of any dtype and sequences of any type: the public functions tie items and `f`.
    @abstractmethod
    def change_items(self, items: Any, f: Callable[[int, Any], None]) -> None:
        """As `scatter_batched`, of items that it has checked."""

    @abstractmethod
    def map_items(self, items: Any, f: Callable[[int, Any], Any]) -> list[Any]:
        """As `scatter_map`, of items that it has checked."""
