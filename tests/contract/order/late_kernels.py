"""Kernels that take their time: each waits for a number of clock cycles before it does its work.

So that what should have waited for one of them, and did not, is seen. The emulator, which has no
clock worth waiting for, is given 0 cycles.
"""

from __future__ import annotations

import functools
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

import cudadrv
import ptx
from cudadrv import LaunchConfig

Ints: TypeAlias = cudadrv.DeviceArray[np.int32]
HostInts: TypeAlias = npt.NDArray[np.int32]

BLOCK: Final = 256
WIDTH: Final = 128
"""Texels in a row of the images."""
LATE_MS: Final = 3.0
"""How long each kernel waits."""
_TRIED_CYCLES: Final = 2_000_000

SOURCE: Final = """
__device__ void linger(long long cycles)
{
    if (cycles <= 0) return;
    long long start = clock64();
    while (clock64() - start < cycles) {}
}
__device__ int place() { return blockIdx.x * blockDim.x + threadIdx.x; }
extern "C" __global__ void spin(long long cycles) { linger(cycles); }
extern "C" __global__ void write(int* x, int n, int value, long long cycles)
{
    linger(cycles);
    int i = place();
    if (i < n) x[i] = value + i;
}
extern "C" __global__ void read(int* out, const int* x, int n, long long cycles)
{
    linger(cycles);
    int i = place();
    if (i < n) out[i] = x[i];
}
extern "C" __global__ void bump(int* x, int n, int by, long long cycles)
{
    linger(cycles);
    int i = place();
    if (i < n) x[i] += by;
}
extern "C" __global__ void fetch(int* out, cudaTextureObject_t texture, int n, long long cycles)
{
    linger(cycles);
    int i = place();
    if (i < n) out[i] = tex1Dfetch<int>(texture, i);
}
extern "C" __global__ void paint(cudaSurfaceObject_t surface, int w, int n, int value,
                                 long long cycles)
{
    linger(cycles);
    int i = place();
    if (i < n) surf2Dwrite(value + i, surface, 4 * (i % w), i / w);
}
"""


@functools.cache
def image_for(target: ptx.Target) -> ptx.Image:
    """The kernels, compiled once a target."""
    return ptx.compile(SOURCE, ptx.CompileOptions(target=target))


def count_from(value: int, n: int) -> HostInts:
    """What `LateKernels.write` writes: value, value + 1, and so on."""
    return np.arange(value, value + n, dtype=np.int32)


def over(n: int) -> LaunchConfig:
    """One thread an element."""
    return LaunchConfig.for_elements(n, BLOCK)


class LateKernels:
    """The kernels on one context, each as late as the others.

    Args:
        context: where.
        cycles: what each waits; `late_cycles` gives them.
    """

    def __init__(self, context: cudadrv.Context, cycles: int) -> None:
        self.cycles = cycles
        self.module = context.load_module(image_for(context.target))
        self._kernels: dict[str, cudadrv.Kernel] = {}
        if not context.device.is_emulated:
            self._warm_up()

    def kernel(self, name: str) -> cudadrv.Kernel:
        """One of them."""
        found = self._kernels.get(name)
        if found is None:
            found = self._kernels[name] = self.module.kernel(name)
        return found

    def spin(self, stream: cudadrv.Stream) -> None:
        """Keep a stream busy."""
        self.kernel("spin").launch(stream, LaunchConfig(1, 1), self.cycles)

    def write(self, stream: cudadrv.Stream, x: Ints, value: int) -> None:
        """x[i] = value + i, late."""
        self.write_at(stream, x, x.size, value)

    def write_at(self, stream: cudadrv.Stream, x: Ints | int, n: int, value: int) -> None:
        """The same of `n` elements at an address."""
        self.kernel("write").launch(stream, over(n), x, n, value, self.cycles)

    def read(self, stream: cudadrv.Stream, out: Ints, x: Ints | cudadrv.In | int) -> None:
        """out = x, late."""
        n = out.size
        self.kernel("read").launch(stream, over(n), out, x, n, self.cycles)

    def bump(self, stream: cudadrv.Stream, x: Ints, by: int) -> None:
        """x += by, late."""
        self.kernel("bump").launch(stream, over(x.size), x, x.size, by, self.cycles)

    def fetch(self, stream: cudadrv.Stream, out: Ints, texture: cudadrv.texture.Texture) -> None:
        """out = what the texture reads, late."""
        n = out.size
        self.kernel("fetch").launch(stream, over(n), out, texture, n, self.cycles)

    def paint(
        self, stream: cudadrv.Stream, surface: cudadrv.texture.Surface, n: int, value: int
    ) -> None:
        """The texels of an image WIDTH wide count from `value`, late."""
        self.kernel("paint").launch(stream, over(n), surface, WIDTH, n, value, self.cycles)

    def _warm_up(self) -> None:
        """Run each once: the driver loads a kernel at its first launch, and waits for that."""
        context = self.module.context
        assert isinstance(context, cudadrv.Context)
        cycles, self.cycles = self.cycles, 0
        n = 2 * BLOCK
        with context.new_stream() as stream:
            x, out = stream.zeros(n, np.int32), stream.zeros(n, np.int32)
            painted = cudadrv.texture.CudaArray(
                context, (n // WIDTH, WIDTH), np.int32, surface=True
            )
            self.spin(stream)
            self.write(stream, x, 1)
            self.bump(stream, x, 1)
            self.read(stream, out, x)
            self.fetch(stream, out, cudadrv.texture.Texture(x))
            self.paint(stream, cudadrv.texture.Surface(painted), n, 1)
            stream.synchronize()
        self.cycles = cycles


_late_cycles: dict[int, int] = {}


def late_cycles(context: cudadrv.Context) -> int:
    """Clock cycles of about `LATE_MS`, measured once a device; 0 on the emulator."""
    if context.device.is_emulated:
        return 0
    found = _late_cycles.get(context.ordinal)
    if found is None:
        kernels = LateKernels(context, _TRIED_CYCLES)
        with context.new_stream() as stream:
            kernels.spin(stream)  # the first launch loads the kernel
            stream.synchronize()
            start = stream.record()
            kernels.spin(stream)
            end = stream.record()
            end.synchronize()
            took_ms = end.elapsed_ms(start)
        found = _late_cycles[context.ordinal] = int(_TRIED_CYCLES * LATE_MS / took_ms)
    return found
