"""A program for the emulator: functions of libcuda with all arguments zero.

It prints a line for each name that it reads: the results with the primary context of device 0
current, and without a context.
"""

from __future__ import annotations

import ctypes
import sys

CUDA = ctypes.CDLL("libcuda.so.1")
ZEROS = [ctypes.c_size_t(0)] * 14


def main() -> None:
    assert CUDA.cuInit(0) == 0
    context, graph = ctypes.c_void_p(), ctypes.c_void_p()
    for name in sys.stdin.read().split():
        codes = []
        for has_context in (True, False):
            # The calls before may have left some.
            CUDA.cuStreamEndCapture_ptsz(None, ctypes.byref(graph))
            while not CUDA.cuDevicePrimaryCtxRelease_v2(0):
                pass
            if has_context:
                assert CUDA.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
            assert CUDA.cuCtxSetCurrent(context if has_context else ctypes.c_void_p()) == 0
            codes.append(getattr(CUDA, name)(*ZEROS))
        print(name, *codes, flush=True)


main()
