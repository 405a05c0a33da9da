"""NVRTC for an emulated device: a requested cubin is the PTX that NVRTC makes on its way to it.

All other functions are those of the real NVRTC.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ptx import _nvrtc

from .elf_file import elf_image
from .library_files import this_machine
from .shared_object import SharedObject, guarded, is_loaded

if TYPE_CHECKING:
    from _ctypes import CFuncPtr

_WORDS: Final = """
    AddNameExpression CompileProgram CreateProgram DestroyProgram GetBundledHeadersInfo GetCUBIN
    GetCUBINSize GetErrorString GetLTOIR GetLTOIRSize GetLoweredName GetNVVM GetNVVMSize
    GetNumSupportedArchs GetOptiXIR GetOptiXIRSize GetPCHCreateStatus GetPCHHeapSize
    GetPCHHeapSizeRequired GetPTX GetPTXSize GetProgramLog GetProgramLogSize GetSupportedArchs
    GetTileIR GetTileIRSize InstallBundledHeaders RemoveBundledHeaders SetFlowCallback
    SetPCHHeapSize Version
"""
_NAMES: Final = tuple("nvrtc" + word for word in _WORDS.split())
_INTERNAL_ERROR: Final = 11  # NVRTC_ERROR_INTERNAL_ERROR
_FORM: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t)
_Address: Final = ctypes.c_size_t
_IN_PACKAGES: Final = ("nvidia/cu{0}/lib", "nvidia/cuda_nvrtc/lib")
_IN_TOOLKIT: Final = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")
_TOOLKITS: Final = ("CONDA_PREFIX", "CUDA_PATH", "CUDA_HOME")


class LibNvrtc:
    """The C functions of NVRTC; one object per process, as libraries keep their addresses.

    Attributes:
        is_used: whether a cubin is PTX now; otherwise every function is the real one.
    """

    def __init__(self, soname: str, path: str) -> None:
        self.is_used: bool = False
        # Others find the library of this name that was loaded first.
        image = elf_image(soname, _NAMES, this_machine(soname), soname, result=_INTERNAL_ERROR)
        library = SharedObject(soname, _NAMES, image)
        # NVRTC 13.0 looks for these beside the library of its name that was loaded first: ours.
        for builtins in Path(path).parent.glob("libnvrtc-builtins.so.*"):
            ctypes.CDLL(str(builtins))
        self._real = ctypes.CDLL(path)
        replaced = {"nvrtcGetCUBINSize": self._cubin_size, "nvrtcGetCUBIN": self._cubin}
        functions: dict[str, CFuncPtr] = {}
        for name in _NAMES:
            if name in replaced:
                functions[name] = _FORM(guarded(replaced[name], _INTERNAL_ERROR))
            elif hasattr(self._real, name):  # the versions of NVRTC differ
                functions[name] = self._real[name]
            else:
                functions[name] = _FORM(_missing)
        library.connect(functions, run_python=False)  # most are C, and may run for seconds
        _nvrtc.replaced["nvrtc"] = path

    @classmethod
    def make(cls) -> LibNvrtc | None:
        """Return the functions; None if NVRTC is not installed, or loaded already."""
        major = metadata.version("cuda-bindings").partition(".")[0]
        soname = f"libnvrtc.so.{major}"
        path = next(_paths(soname, major), None)
        if path is None or is_loaded(soname) or not sys.platform.startswith("linux"):
            return None
        return cls(soname, path)

    def _cubin_size(self, program: int, result: int) -> int:
        """Return the size of the PTX, if a cubin was made."""
        code: int = self._real.nvrtcGetCUBINSize(_Address(program), _Address(result))
        if code or not self._is_ptx or not ctypes.c_size_t.from_address(result).value:
            return code
        return int(self._real.nvrtcGetPTXSize(_Address(program), _Address(result)))

    def _cubin(self, program: int, result: int) -> int:
        """Return the PTX, if a cubin was made."""
        size = ctypes.c_size_t()
        code: int = self._real.nvrtcGetCUBINSize(_Address(program), ctypes.byref(size))
        is_ptx = not code and size.value and self._is_ptx
        read = self._real.nvrtcGetPTX if is_ptx else self._real.nvrtcGetCUBIN
        return int(read(_Address(program), _Address(result)))

    @property
    def _is_ptx(self) -> bool:
        return self.is_used and not _nvrtc.reading.machine_code


def _missing(*_: int) -> int:
    return _INTERNAL_ERROR


def _paths(soname: str, major: str) -> Iterator[str]:
    """Yield the files that cuda-pathfinder would load, in its order."""
    folders = [
        Path(search_path, part.format(major)) for search_path in sys.path for part in _IN_PACKAGES
    ]
    folders += map(Path, filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)))
    roots = [*filter(None, map(os.environ.get, _TOOLKITS)), "/usr/local/cuda"]
    folders += [Path(root, part) for root in roots for part in _IN_TOOLKIT]
    for folder in folders:
        path = folder / soname
        if path.is_file():
            yield str(path)
