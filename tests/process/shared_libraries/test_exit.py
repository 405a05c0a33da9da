"""Calls while a process ends: by objects of Python, by handlers of C, and by destructors."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from .native import compiled
from .process import run

# The interpreter destroys objects at several steps, some after it has cleared `builtins`.
_OBJECTS: Final = """
import builtins, ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1"); cuda.cuInit(0)
context, memory = ctypes.c_void_p(), ctypes.c_void_p()
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0); cuda.cuCtxSetCurrent(context)
cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(64))

class Object:
    def __init__(self, where):
        self.where = where

    def __del__(self, cuda=cuda, at=ctypes.byref, Pointer=ctypes.c_void_p, Text=ctypes.c_char_p,
                Size=ctypes.c_size_t, write=os.write, memory=memory):
        pool, name, text, other = Pointer(), Text(b"unset"), Text(b"unset"), Pointer()
        codes = (cuda.cuDeviceGetDefaultMemPool(at(pool), 0), cuda.cuGetErrorName(1, at(name)),
                 cuda.cuGetErrorString(1, at(text)), cuda.cuMemAlloc_v2(at(other), Size(100)),
                 cuda.cuMemsetD8_v2(memory, 7, Size(64)), cuda.cuMemFree_v2(other),
                 cuda.cuStreamSynchronize(None), cuda.cuMemFree_v2(Size(12)))
        write(1, f"{self.where}: {codes} {name.value} {text.value}\\n".encode())
"""
_PLACES: Final = {
    "global": "a = Object('global')",
    "cycle": "b = Object('cycle'); b.self = b",
    "list": "c = [Object('list')]",
    "builtins": "builtins.kept = Object('builtins')",
    "sys": "sys.kept = Object('sys')",
    "library": "import json; json.kept = None; cuda.kept = Object('library')",
    "thread": "import threading; threading.local().kept = Object('thread')",
}


@pytest.mark.slow
def test_objects_that_die_with_the_interpreter_call_the_driver(tmp_path: Path) -> None:
    (tmp_path / "held.py").write_text(_OBJECTS + "\n".join(_PLACES.values()))
    results = "(0, 0, 0, 0, 0, 0, 0, 1) b'CUDA_ERROR_INVALID_VALUE' b'invalid argument'"
    for program in ("import held", _OBJECTS + "\n".join(_PLACES.values())):
        script = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n" + program
        ended = run("-m", "cudadrv", "emulate", "python", "-c", script)
        assert (ended.status, "Traceback" in ended.err) == (0, False), ended.err
        assert sorted(ended.out.splitlines()) == sorted(f"{at}: {results}" for at in _PLACES)


_AT_EXIT: Final = """
#include <stdio.h>
#include <stdlib.h>
int cuInit(unsigned), cuGetErrorName(int, const char **), cuGetErrorString(int, const char **);
int cuCtxGetCurrent(void **), cuMemFree_v2(unsigned long), cuCtxSynchronize(void);
int cuCtxDetach(void *), cuIpcCloseMemHandle(unsigned long), cuProfilerStop(void);
static void report(const char *who) {
  const char *name = "unset", *text = "unset", *unknown = "unset"; void *context = 0;
  int codes[] = {cuGetErrorName(801, &name), cuGetErrorString(801, &text),
                 cuGetErrorName(9999, &unknown), cuGetErrorName(4, 0), cuCtxGetCurrent(&context),
                 cuMemFree_v2(16), cuCtxSynchronize(), cuCtxDetach(context),
                 cuIpcCloseMemHandle(16), cuProfilerStop()};
  printf("%s:", who);
  for (int at = 0; at < 10; at++) printf(" %d", codes[at]);
  printf(" %s %s %d\\n", name, text, unknown == 0); fflush(stdout);
}
static void handler(void) { report("handler"); }
__attribute__((destructor)) static void destructor(void) { report("destructor"); }
int begin(void) { atexit(handler); return cuInit(0); }
"""


@pytest.mark.slow
def test_handlers_of_c_and_destructors_have_codes_and_texts(tmp_path: Path) -> None:
    library = compiled(tmp_path, _AT_EXIT)
    program = f"""
import ctypes
ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
print(ctypes.CDLL({str(library)!r}, mode=1).begin(), flush=True)
"""
    ended = run("-m", "cudadrv", "emulate", "python", "-c", program)
    line = "0 0 1 0 4 0 0 0 0 0 CUDA_ERROR_NOT_SUPPORTED operation not supported 1"
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.splitlines() == ["0", f"handler: {line}", f"destructor: {line}"]
