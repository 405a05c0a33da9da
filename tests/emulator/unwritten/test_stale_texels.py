"""Texels that a launch has written and then reads by a texture or a surface are a race."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig, emulator
from cudadrv.emulator.timeline.schedule import OrderName
from cudadrv.texture import CudaArray, FilterMode, Surface, Texture

W, H = 16, 4
SOURCE = """
#define KERNEL extern "C" __global__ void
#define X threadIdx.x
#define Y blockIdx.x
KERNEL by_surface(float* o, cudaTextureObject_t t, cudaSurfaceObject_t s, float at, float dy) {
  surf2Dwrite(1.0f, s, X * 4, 0);
  __syncthreads();
  o[X] = tex2D<float>(t, X + at, dy);
}
KERNEL again(float* o, cudaSurfaceObject_t s, int line) {
  surf2Dwrite(1.0f, s, X * 4, 0);
  float v;
  surf2Dread(&v, s, X * 4, line);
  o[X] = v;
}
KERNEL changed(cudaSurfaceObject_t s) {
  float v;
  surf2Dread(&v, s, X * 4, Y);
  surf2Dwrite(v + 1, s, X * 4, Y);
}
KERNEL by_pointer(float* o, cudaTextureObject_t t, float* a, int at) {
  a[X] = X;
  __syncthreads();
  o[X] = tex1Dfetch<float>(t, X + at);
}
"""


@functools.cache
def image() -> ptx.Image:
    options = ptx.CompileOptions(target=ptx.Target.ptx("compute_90"), lineinfo=True)
    return ptx.compile(SOURCE, options, name="stale.cu")


class Bench:
    """A stream, kernels, and what they wrote."""

    def __init__(self) -> None:
        self.context = cudadrv.cuda_context_for(0)
        self.stream = self.context.new_stream()
        self.out = self.stream.zeros(W, np.float32)
        self._module = self.context.load_module(image())

    def plane(self) -> CudaArray[np.float32]:
        found = CudaArray(self.context, (H, W), np.float32, surface=True)
        found.copy_from(self.stream, np.ones((H, W), np.float32))
        return found

    def run(self, kernel: str, *arguments: object, grid: int = 1, block: int = W) -> None:
        self._module.kernel(kernel).launch(self.stream, LaunchConfig(grid, block), *arguments)


def by_surface(bench: Bench, ok: bool) -> None:
    """The second row was not written."""
    plane = bench.plane()
    bench.run("by_surface", bench.out, Texture(plane), Surface(plane), 0.5, 1.5 if ok else 0.5)


def by_filter(bench: Bench, ok: bool) -> None:
    """Between two rows both count, at a centre one."""
    plane = bench.plane()
    texture = Texture(plane, filter_mode=FilterMode.LINEAR)
    bench.run("by_surface", bench.out, texture, Surface(plane), 0.5, 1.5 if ok else 1.25)


def same_surface(bench: Bench, ok: bool) -> None:
    """A surface's own store."""
    bench.run("again", bench.out, Surface(bench.plane()), 3 if ok else 0)


def by_pointer(bench: Bench, ok: bool) -> None:
    """A texture of linear memory, which the kernel also writes by a pointer."""
    array = bench.stream.zeros(3 * W, np.float32)
    bench.run("by_pointer", bench.out, Texture(array), array, W if ok else 3)


CASES: Final = [by_surface, by_filter, same_surface, by_pointer]


@pytest.mark.slow
@pytest.mark.parametrize("order", ["immediate", "late", "random"])
@pytest.mark.parametrize("case", CASES, ids=lambda each: str(each.__name__))
def test_a_texel_that_the_launch_wrote_is_reported(
    case: Callable[[Bench, bool], None], order: OrderName
) -> None:
    for ok in (True, False):
        with emulator.session(check=("race",), raise_findings=False, order=order) as machine:
            case(Bench(), ok)
        found = [each for each in machine.findings if isinstance(each, emulator.Finding)]
        assert len(found) == len(machine.findings)
        assert [(each.kind, each.space) for each in found] == (
            [] if ok else [("proxy fence missing", "texture")]
        )
        assert all("sees no writes of its own launch" in str(each) for each in found)


def test_what_an_earlier_launch_wrote_and_what_is_read_first_are_not_reported() -> None:
    with emulator.session(check=("race",)):
        bench = Bench()
        surface = Surface(bench.plane())
        for _ in range(2):
            bench.run("changed", surface, grid=H)
        bench.stream.synchronize()
