"""A device's client: its streams, allocator and caches, captured graphs, registered modules."""

from .cuda_client import (
    CapturedGraph as CapturedGraph,
    CudaClient as CudaClient,
    CudaRawHandle as CudaRawHandle,
    ModuleRegistry as ModuleRegistry,
    UnknownModuleError as UnknownModuleError,
    register_module as register_module,
)
from .sobol import SobolDvCache as SobolDvCache

__all__ = ["CapturedGraph", "CudaClient", "CudaRawHandle", "SobolDvCache", "register_module"]
