"""PyInstaller's hook for cudadrv, with the compiled modules of cuda.bindings."""

from __future__ import annotations

from PyInstaller.utils.hooks import collect_submodules

from cudadrv.freezing import data_files, hidden_imports

# The compiled modules of cuda.bindings import each other without a statement that can be seen.
hiddenimports: list[str] = [
    *hidden_imports("cudadrv"),
    *collect_submodules("cuda.bindings"),
    *collect_submodules("cuda.pathfinder"),
]
datas: list[tuple[str, str]] = data_files("cudadrv")
