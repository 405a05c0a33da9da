"""cuda.core with its file cache."""

import sys

import numpy as np
from cuda.core import Buffer, Device, LaunchConfig, Program, ProgramOptions, launch
from cuda.core.utils import FileStreamProgramCache

device = Device()
device.set_current()
with open(sys.argv[1]) as file:
    source = file.read()
options = ProgramOptions(arch=f"sm_{device.arch}")
with FileStreamProgramCache(sys.argv[2]) as cache:
    code = Program(source, "c++", options=options).compile("cubin", cache=cache)
kernel = code.get_kernel("twice")
stream = device.create_stream()
host = np.arange(1024, dtype=np.float32)
buffer = device.allocate(host.nbytes, stream=stream)
staging = Buffer.from_handle(host.ctypes.data, host.nbytes)
buffer.copy_from(staging, stream=stream)
launch(stream, LaunchConfig(grid=4, block=256), kernel, buffer, np.int32(1024))
buffer.copy_to(staging, stream=stream)
stream.sync()
assert host[3] == 6
