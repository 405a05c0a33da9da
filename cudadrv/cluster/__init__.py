"""Beyond one process: executors over GPUs of this host, or of many hosts by Dask.

`cudadrv.scatter_batched` and `cudadrv.scatter_map` take a `GpuExecutor` in place of a
`GpuRuntime`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .executor import GpuExecutor as GpuExecutor
    from .tile_policy import (
        Progress as Progress,
        TerminalBar as TerminalBar,
        TilePolicy as TilePolicy,
    )
    from .worker_report import WorkerReport as WorkerReport
else:  # a worker needs none of them, and starts faster without
    _AT_FIRST_USE = {
        "progress_bar": "TerminalBar",
        "executor": "GpuExecutor",
        "tile_policy": "Progress TilePolicy",
        "worker_report": "WorkerReport",
    }

    def __getattr__(name: str) -> object:
        for module, names in _AT_FIRST_USE.items():
            if name in names.split():
                value = getattr(import_module(f"{__name__}.{module}"), name)
                globals()[name] = value
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *" ".join(_AT_FIRST_USE.values()).split()})
