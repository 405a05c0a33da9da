"""Several devices: a pool of contexts, and work shared between devices by their scores."""

from typing import TYPE_CHECKING

from ..lazy_names import at_first_use

if TYPE_CHECKING:
    from .device_pool import (
        DevicePool as DevicePool,
    )
    from .scatter import (
        balanced_partition as balanced_partition,
        scatter_batched as scatter_batched,
        scatter_map as scatter_map,
    )
    from .tile import (
        NotInTileError as NotInTileError,
        ScatterError as ScatterError,
        Tile as Tile,
        TileError as TileError,
        current_tile as current_tile,
    )
else:
    _NAMES = {
        "device_pool": "DevicePool",
        "scatter": "balanced_partition scatter_batched scatter_map",
        "tile": "NotInTileError ScatterError Tile TileError current_tile",
    }
    __getattr__, __dir__ = at_first_use(__name__, _NAMES)
