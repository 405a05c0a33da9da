"""PyInstaller's hook for ptx, with the compilers that it loads."""

from __future__ import annotations

from cudadrv.freezing import compiler_files, data_files, hidden_imports

hiddenimports = hidden_imports("ptx")
datas = data_files("ptx")
binaries = compiler_files()
