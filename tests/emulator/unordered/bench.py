"""What the programs have: three streams that nothing orders, kernels, and arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.emulator.timeline.schedule import OrderName
from cudadrv.errors import IllegalAddressError

N = 256
SOURCE = """
#define KERNEL extern "C" __global__ void
#define I (blockIdx.x * blockDim.x + threadIdx.x)
KERNEL set(int* o, int n, int value) { if (I < n) o[I] = value; }
KERNEL add(int* o, int n) { if (I < n) o[I] += 1; }
KERNEL read(int* o, const int* a, int n) { if (I < n) o[I] = a[I]; }
KERNEL count(int* o, int n) { if (I < n) atomicAdd(&o[I % 16], 1); }
KERNEL count_in_blocks(int* o, int n) { if (I < n) atomicAdd_block(&o[I % 16], 1); }
KERNEL raise_flag(volatile int* o) { if (I == 0) o[0] = 1; }
KERNEL look(int* o, volatile int* a) { if (I == 0) o[0] = a[0]; }
KERNEL look_plainly(int* o, int* a) { if (I == 0) o[0] = a[0]; }
KERNEL scatter(int* o, const int* at, int n) { if (I < n) o[at[I]] = I; }
KERNEL bytes(char* o, int n, int first, int step) {
  int k = first + I * step;
  if (k < n) o[k] = 1;
}
KERNEL wide(int4* o, int n) { if (I < n) o[I] = make_int4(1, 2, 3, 4); }
KERNEL read_by_a_pointer(int* o, const int* const* a, int n) { if (I < n) o[I] = (*a)[I]; }
KERNEL take_behind_a_flag(int* o, int* a, int n) {
  if (I < n && *(volatile int*)a) {
    __threadfence_system();
    o[I] = a[I];
  }
}
KERNEL set_every_second(int* o, int n) { if (I < n) o[2 * I] = 1; }
KERNEL sum(int* o, const int* a, int n) { if (I < n) atomicAdd(o, a[I]); }
"""
Ints: TypeAlias = cudadrv.DeviceArray[np.int32]
HostInts: TypeAlias = npt.NDArray[np.int32]


@functools.cache
def image() -> ptx.Image:
    """The kernels."""
    options = ptx.CompileOptions(target=ptx.Target.ptx("compute_90"), lineinfo=True)
    return ptx.compile(SOURCE, options, name="unordered.cu")


class Bench:
    """Three streams; the programs order them themselves."""

    def __init__(self) -> None:
        self.context = cudadrv.cuda_context_for(0)
        self.a, self.b, self.c = (self.context.new_stream() for _ in range(3))
        self._module = self.context.load_module(image())
        self._kept: list[Ints] = []  # no stream that uses them is known to their owners

    def run(self, stream: cudadrv.Stream, kernel: str, *arguments: Ints | HostInts | int) -> None:
        """Launch a thread for each of `4 * N` elements, ordered by the stream alone."""
        with stream.unordered():
            found = self._module.kernel(kernel)
            found.launch(stream, cudadrv.LaunchConfig(4 * N // 128, 128), *arguments)

    def ints(self, n: int = N) -> Ints:
        """An array of zeros that every stream may use."""
        found = self.a.zeros(n, np.int32)
        self._kept.append(found)
        self.context.synchronize()
        return found

    def of(self, values: npt.ArrayLike) -> Ints:
        """Likewise one of these values."""
        found = self.a.to_device(np.asarray(values, np.int32))
        self._kept.append(found)
        self.context.synchronize()
        return found

    def pinned(self, n: int = N) -> HostInts:
        """Zeros in pinned memory."""
        found = cudadrv.pinned_empty(n, np.int32)
        found[:] = 0
        return found


Body: TypeAlias = Callable[[Bench, bool], None]


def findings_of(
    body: Body, ok: bool, order: OrderName = "immediate", seed: int | None = None
) -> tuple[emulator.Finding, ...]:
    """Run a program in a session that looks for races, and give what was found."""
    checked = emulator.session(check=("race",), order=order, seed=seed, raise_findings=False)
    with checked as machine:
        bench = Bench()
        try:
            body(bench, ok)
            bench.context.synchronize()
        except IllegalAddressError:
            assert order != "immediate"  # a late kernel reaches what is gone by then
        found = [each for each in machine.findings if isinstance(each, emulator.Finding)]
        return tuple(each for each in found if not each.benign)
