"""PyInstaller's hook for ptx."""

from __future__ import annotations

from cudadrv.freezing import data_files, hidden_imports

hiddenimports = hidden_imports("ptx")
datas = data_files("ptx")
