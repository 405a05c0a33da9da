"""cudadrv with its cache on disk."""

import sys

import numpy as np

import cudadrv

context = cudadrv.cuda_context_for(0)
with open(sys.argv[1]) as file:
    module = context.compile(file.read())
stream = context.new_stream()
array = stream.to_device(np.arange(1024, dtype=np.float32))
module.kernel("twice").launch(stream, cudadrv.LaunchConfig(4, 256), array, 1024)
assert stream.to_host(array)[3] == 6
