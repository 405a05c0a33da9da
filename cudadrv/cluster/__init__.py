"""Beyond one process: executors over GPUs of this host, or of many hosts by Dask.

`cudadrv.scatter_batched` and `cudadrv.scatter_map` take a `GpuExecutor` in place of a
`GpuRuntime`.
"""

from typing import TYPE_CHECKING

from ..lazy_names import at_first_use

if TYPE_CHECKING:
    from .executor import (
        GpuExecutor as GpuExecutor,
    )
    from .tile_policy import (
        Progress as Progress,
        TerminalBar as TerminalBar,
        TilePolicy as TilePolicy,
    )
    from .worker_report import (
        WorkerReport as WorkerReport,
    )
else:
    _NAMES = {
        "executor": "GpuExecutor",
        "tile_policy": "Progress TerminalBar TilePolicy",
        "worker_report": "WorkerReport",
    }
    __getattr__, __dir__ = at_first_use(__name__, _NAMES)
