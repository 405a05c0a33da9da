"""CuPy's RawKernel with its cache on disk."""

import sys

import cupy
import numpy as np

with open(sys.argv[1]) as file:
    kernel = cupy.RawKernel(file.read(), "twice")
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    array = cupy.asarray(np.arange(1024, dtype=np.float32))
    kernel((4,), (256,), (array, np.int32(1024)))
    assert array.get()[3] == 6
