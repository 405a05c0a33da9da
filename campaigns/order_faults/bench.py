"""What a program has: two streams, kernels, arrays; and the running of it in an order."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.emulator import OrderWarning
from cudadrv.emulator.timeline.schedule import OrderName
from cudadrv.errors import CudadrvError

N: Final = 64
# More than what cudadrv and the driver take over in the call.
LARGE: Final = 16 << 10
Ints: TypeAlias = cudadrv.DeviceArray[np.int32]
HostInts: TypeAlias = npt.NDArray[np.int32]
LATE_MS: Final = 3.0
"""How late each kernel is on a GPU."""
_CYCLES_OF_A_MS: Final = 1_500_000
_SOURCE: Final = """
extern "C" __global__ void spin(long long cycles)
{
    long long start = clock64();
    while (clock64() - start < cycles) {}
}
__device__ int place() { return blockIdx.x * blockDim.x + threadIdx.x; }
extern "C" __global__ void set(int* x, int value) { x[place()] = value; }
extern "C" __global__ void add(int* x, int by) { x[place()] += by; }
extern "C" __global__ void twice(int* x) { x[place()] *= 2; }
extern "C" __global__ void read(int* out, const int* x) { out[place()] = x[place()]; }
"""


@functools.cache
def _image(target: ptx.Target) -> ptx.Image:
    return ptx.compile(_SOURCE, ptx.CompileOptions(target=target))


class Bench:
    """Where a program runs: two streams of one device, which do not order each other.

    The programs order their streams themselves, as those do that take addresses from elsewhere.

    Args:
        late: the kernels that come late on a GPU, so that what does not wait for them is seen.
    """

    def __init__(self, late: tuple[str, ...] = ()) -> None:
        self._late = late
        self.context = cudadrv.cuda_context_for(0)
        self.a, self.b = self.context.new_stream(), self.context.new_stream()
        self._module = self.context.load_module(_image(self.context.target))
        if not self.context.device.is_emulated:
            self._warm_up()

    def _warm_up(self) -> None:
        """Run each kernel once: the driver loads it at its first launch, and waits for that."""
        x, y, late, self._late = self.ints(0), self.ints(0), self._late, ("set",)
        self.run(self.a, "set", x, 1)
        self.run(self.a, "add", x, 1)
        self.run(self.a, "twice", x)
        self.run(self.a, "read", y, x)
        self.context.synchronize()
        self._late = late

    def run(self, stream: cudadrv.Stream, kernel: str, *arguments: Ints | HostInts | int) -> None:
        """Launch a kernel of one thread an element, ordered by its stream alone."""
        found = self._module.kernel(kernel)
        with stream.unordered():
            if kernel in self._late and not self.context.device.is_emulated:
                spin = self._module.kernel("spin")
                spin.launch(stream, cudadrv.LaunchConfig(1, 1), int(LATE_MS * _CYCLES_OF_A_MS))
            found.launch(stream, cudadrv.LaunchConfig(1, N), *arguments)

    def ints(self, value: int, n: int = N) -> Ints:
        """An array on the device, ready to use on every stream."""
        found = self.a.to_device(np.full(n, value, np.int32))
        self.context.synchronize()
        return found

    def pinned(self, value: int, n: int = N) -> HostInts:
        """An array of the host in pinned memory."""
        found = cudadrv.pinned_empty(n, np.int32)
        found[:] = value
        return found

    def host(self, array: Ints) -> HostInts:
        """What is in an array once everything is done."""
        self.context.synchronize()
        return self.a.to_host(array)

    def join(self, later: cudadrv.Stream, earlier: cudadrv.Stream) -> None:
        """Let a stream wait for what another has queued by now."""
        later.wait(earlier)


Body: TypeAlias = Callable[[Bench, bool], bool]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a program ended: with the values that it must have, with findings, with an error."""

    is_right: bool
    findings: tuple[str, ...]
    error: str

    @property
    def is_clean(self) -> bool:
        """Whether nothing was wrong."""
        return self.is_right and not self.findings and not self.error


def run(body: Body, is_corrected: bool, order: OrderName, seed: int | None = None) -> Verdict:
    """Run a program in a fresh session."""
    right, error = False, ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OrderWarning)
        with emulator.session(devices=2, order=order, seed=seed) as machine:
            try:
                right = body(Bench(), is_corrected)
            except CudadrvError as caught:
                error = str(caught)
            try:
                machine.finish()
            finally:
                findings = tuple(map(str, machine.findings))
    return Verdict(right, findings, error)
