"""cuda.bindings and a cubin file, nothing else: the floor."""

import ctypes
import sys

import numpy as np
from cuda.bindings import driver

(_,) = driver.cuInit(0)
_, device = driver.cuDeviceGet(0)
_, context = driver.cuDevicePrimaryCtxRetain(device)
(_,) = driver.cuCtxSetCurrent(context)
with open(sys.argv[1], "rb") as file:
    image = file.read()
_, module = driver.cuModuleLoadData(image)
_, kernel = driver.cuModuleGetFunction(module, b"twice")
_, stream = driver.cuStreamCreateWithPriority(1, 0)
host = np.arange(1024, dtype=np.float32)
_, pointer = driver.cuMemAllocAsync(host.nbytes, stream)
driver.cuMemcpyHtoDAsync(pointer, host.ctypes.data, host.nbytes, stream)
value, count = ctypes.c_uint64(int(pointer)), ctypes.c_int(1024)
pointers = (ctypes.c_void_p * 2)(ctypes.addressof(value), ctypes.addressof(count))
driver.cuLaunchKernel(kernel, 4, 1, 1, 256, 1, 1, 0, stream, ctypes.addressof(pointers), 0)
driver.cuMemcpyDtoHAsync(host.ctypes.data, pointer, host.nbytes, stream)
driver.cuStreamSynchronize(stream)
assert host[3] == 6
