"""Programs with a fault each, as their users would write them."""

from __future__ import annotations

from typing import Final

WRONG_INDEX: Final = '''
import numpy as np
import cudadrv

SOURCE = """
extern "C" __global__ void smooth(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int j = 0; j < 3; j++)
        sum += x[i + j];
    y[i] = sum / 3;
}
"""
context = cudadrv.cuda_context_for(0)
kernel = context.compile(SOURCE, name="smooth.cu").kernel("smooth")
stream = context.default_stream
x, y = stream.to_device(np.arange(64, dtype=np.float32)), stream.zeros(64, np.float32)
kernel.launch(stream, cudadrv.LaunchConfig(2, 32), x, y, 64)
stream.synchronize()
'''

MISSING_BARRIER: Final = '''
import numpy as np
import cudadrv

SOURCE = """
extern "C" __global__ void reverse(const int *x, int *y) {
    __shared__ int tile[64];
    int i = threadIdx.x;
    tile[i] = x[i];
    int other = tile[blockDim.x - 1 - i];
    y[i] = other;
}
"""
context = cudadrv.cuda_context_for(0)
kernel = context.compile(SOURCE, name="reverse.cu").kernel("reverse")
stream = context.default_stream
x, y = stream.to_device(np.arange(64, dtype=np.int32)), stream.zeros(64, np.int32)
kernel.launch(stream, cudadrv.LaunchConfig(1, 64), x, y)
stream.synchronize()
'''

WRONG_STREAM: Final = '''
import numpy as np
import cudadrv

SOURCE = """
extern "C" __global__ void twice(const float *x, float *y) {
    int i = threadIdx.x;
    float value = x[i];
    y[i] = 2 * value;
}
"""
context = cudadrv.cuda_context_for(0)
kernel = context.compile(SOURCE, name="twice.cu").kernel("twice")
copies, work = context.new_stream(), context.new_stream()
x, y = context.default_stream.zeros(32, np.float32), context.default_stream.zeros(32, np.float32)
context.synchronize()
host = np.full(32, 7, np.float32)
with copies.unordered(), work.unordered():
    copies.copy(x, host)
    kernel.launch(work, cudadrv.LaunchConfig(1, 32), x, y)
work.synchronize()
'''

NOT_A_NUMBER: Final = '''
import numpy as np
import cudadrv

SOURCE = """
extern "C" __global__ void normalise(const float *x, float *y, int n) {
    int row = threadIdx.x;
    float sum = 0;
    for (int j = 0; j < n; j++)
        sum += x[row * n + j];
    for (int j = 0; j < n; j++) {
        float share = x[row * n + j] / sum;
        y[row * n + j] = share;
    }
}
"""
context = cudadrv.cuda_context_for(0)
kernel = context.compile(SOURCE, name="normalise.cu").kernel("normalise")
stream = context.default_stream
rows = np.ones((32, 4), np.float32)
rows[11] = 0
x, y = stream.to_device(rows), stream.zeros((32, 4), np.float32)
kernel.launch(stream, cudadrv.LaunchConfig(1, 32), x, y, 4)
stream.synchronize()
'''


def line_of(program: str, text: str) -> int:
    """Return the line of a text in the CUDA source of a program."""
    source = program.split('"""')[1]
    (line,) = [n for n, each in enumerate(source.splitlines(), 1) if each.strip() == text]
    return line


LONG: Final = '''
import numpy as np
import cudadrv

SOURCE = """
__device__ __noinline__ int twice(int value) {
    return value * 2;
}
extern "C" __global__ void loop(int *y, int n) {
    __shared__ int tile[32];
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    int sum = 0;
    for (int j = 0; j < n; j++)
        sum += twice(tile[j % 32]);
    y[threadIdx.x] = sum;
}
"""
context = cudadrv.cuda_context_for(0)
kernel = context.compile(SOURCE, name="loop.cu").kernel("loop")
stream = context.default_stream
y = stream.zeros(32, np.int32)
kernel.launch(stream, cudadrv.LaunchConfig(1, 32), y, 1_000_000)
'''


THREE_LAUNCHES: Final = '''
import numpy as np
import cudadrv

SOURCE = """
extern "C" __global__ void first(int *y) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    y[i] = i;
}
extern "C" __global__ void second(int *y) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i % 2)
        y[i] += 100;
    else
        y[i] -= 1;
    __syncthreads();
    y[i] *= 2;
}
"""
context = cudadrv.cuda_context_for(0)
module = context.compile(SOURCE, name="three.cu")
one, other = context.new_stream(), context.new_stream()
y = one.zeros(128, np.int32)
config = cudadrv.LaunchConfig(2, 64)
module.kernel("first").launch(one, config, y)
module.kernel("second").launch(one, config, y)
module.kernel("second").launch(other, config, y)
context.synchronize()
print(other.to_host(y)[:4])
'''


ENDLESS: Final = '''
import numpy as np
import cudadrv

SOURCE = """
extern "C" __global__ void spin(volatile int *flag, int *y) {
    int i = threadIdx.x, n = 0;
    y[i] = i;
    __syncthreads();
    if (i < 32)
        while (*flag == 0)
            n++;
    __syncthreads();
    y[i] = n;
}
"""
context = cudadrv.cuda_context_for(0)
kernel = context.compile(SOURCE, name="spin.cu").kernel("spin")
stream = context.default_stream
flag, y = stream.zeros(1, np.int32), stream.zeros(64, np.int32)
kernel.launch(stream, cudadrv.LaunchConfig(1, 64), flag, y)
stream.synchronize()
'''


MANY_LAUNCHES: Final = '''
import numpy as np
import cudadrv

SOURCE = """
extern "C" __global__ void count(int *y) {
    y[threadIdx.x] += 1;
}
extern "C" __global__ void last(int *y) {
    y[threadIdx.x] *= 2;
}
"""
context = cudadrv.cuda_context_for(0)
module = context.compile(SOURCE, name="many.cu")
stream = context.default_stream
y = stream.zeros(32, np.int32)
config = cudadrv.LaunchConfig(1, 32)
for _ in range(40):
    module.kernel("count").launch(stream, config, y)
    stream.synchronize()
module.kernel("last").launch(stream, config, y)
stream.synchronize()
'''
