"""PyInstaller's hook for ptx, with the compilers that it loads."""

from __future__ import annotations

from cudadrv.freezing import compiler_files, data_files, hidden_imports

hiddenimports: list[str] = hidden_imports("ptx")
datas: list[tuple[str, str]] = data_files("ptx")
binaries: list[tuple[str, str]] = compiler_files()
