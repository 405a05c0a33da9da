"""A device's client: its streams, allocator and caches, captured graphs, registered modules."""

from .captured_graph import CapturedGraph as CapturedGraph
from .cuda_client import CudaClient as CudaClient, CudaRawHandle as CudaRawHandle
from .module_registry import (
    ModuleRegistry as ModuleRegistry,
    UnknownModuleError as UnknownModuleError,
    register_module as register_module,
)
from .sobol import SobolDvCache as SobolDvCache
