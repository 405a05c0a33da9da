"""Symbols of the stand-in libraries, and symbols of the same names elsewhere in the process."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from cudadrv.emulator.shared_libraries.library_files import libcuda_names
from cudadrv.emulator.shared_libraries.nvml_functions import NVML_NAMES

from .native import compiled
from .process import run, run_program

# As slang-rhi has them.
_VARIABLES: Final = """
int (*cuInit)(unsigned);
int (*cuGetErrorString)(int, const char **);
int (*nvrtcVersion)(int *, int *);
int (*nvmlInit_v2)(void);
int (*nvJitLinkVersion)(unsigned *, unsigned *);
int fill(void *address) {
  cuInit = address; cuGetErrorString = address; nvrtcVersion = address; nvmlInit_v2 = address;
  nvJitLinkVersion = address;
  return cuInit(0);
}
"""
_FILLS: Final = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
cuda = ctypes.CDLL("libcuda.so.1")
print(library.fill(ctypes.cast(cuda.cuInit, ctypes.c_void_p)))
"""


@pytest.mark.slow
def test_no_symbol_of_a_stand_in_is_seen_by_other_libraries() -> None:
    out = run_program(f"""
        stand_in()
        prepare()
        names = {[*libcuda_names(), *NVML_NAMES, "nvrtcVersion", "nvJitLinkVersion"]!r}
        everywhere = ctypes.CDLL(None)
        print(len(names) > 900, [name for name in names if hasattr(everywhere, name)])
    """)
    assert out == "True []\n"


@pytest.mark.slow
def test_a_library_has_variables_of_its_own_with_the_names_of_functions(tmp_path: Path) -> None:
    library = str(compiled(tmp_path, _VARIABLES))
    early = run("-m", "cudadrv", "emulate", "python", "-c", _FILLS, library)
    assert (early.status, early.out) == (0, "0\n"), early.err
    late = _FILLS.replace("import ctypes, sys", "import ctypes, sys; ctypes.CDLL('libcuda.so.1')")
    ended = run("-m", "cudadrv", "emulate", "python", "-c", late, library)
    assert (ended.status, ended.out) == (0, "0\n"), ended.err
