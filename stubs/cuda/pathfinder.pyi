"""Types of cuda.pathfinder, for the names that cudadrv and ptx use."""

from dataclasses import dataclass

class DynamicLibNotFoundError(RuntimeError): ...

@dataclass
class LoadedDL:
    abs_path: str | None
    was_already_loaded_from_elsewhere: bool
    _handle_uint: int
    found_via: str

def load_nvidia_dynamic_lib(libname: str) -> LoadedDL: ...
