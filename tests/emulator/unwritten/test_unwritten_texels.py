"""Texels that nothing has written are found where a fetch gets them, and nowhere else."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig, emulator
from cudadrv.emulator.timeline.schedule import OrderName
from cudadrv.texture import AddressMode, CudaArray, FilterMode, MipmappedArray, Surface, Texture

W, H = 16, 4
SOURCE: Final = """
#define KERNEL extern "C" __global__ void
#define X threadIdx.x
#define Y blockIdx.x
KERNEL fetch(float* o, cudaTextureObject_t t, float dx, float dy) {
  o[Y * blockDim.x + X] = tex2D<float>(t, X + dx, Y + dy);
}
KERNEL fetch_level(float* o, cudaTextureObject_t t, float level) {
  o[Y * blockDim.x + X] = tex2DLod<float>(t, (X + .5f) / 16, (Y + .5f) / 4, level);
}
KERNEL fetch_bytes(float* o, cudaTextureObject_t t) {
  uchar4 v = tex2D<uchar4>(t, X + .5f, Y + .5f);
  o[Y * blockDim.x + X] = v.x + v.y + v.z + v.w;
}
KERNEL fetch_line(float* o, cudaTextureObject_t t, int at) { o[X] = tex1Dfetch<float>(t, X + at); }
KERNEL either(float* o, cudaTextureObject_t s, cudaTextureObject_t t) {
  o[X] = tex1Dfetch<float>(X < 8 ? s : t, X);
}
KERNEL four(float4* o, cudaTextureObject_t t, float x, float y) {
  *o = tex2Dgather<float4>(t, x, y, 0);
}
KERNEL write(cudaSurfaceObject_t s, int width) {
  if (X < width) surf2Dwrite(1.0f, s, X * 4, Y);
}
KERNEL write_bytes(cudaSurfaceObject_t s, int width) {
  if (X < width) surf2Dwrite(make_uchar4(1, 2, 3, 4), s, X * 4, Y);
}
KERNEL load(float* o, cudaSurfaceObject_t s, int zero) {
  float v;
  if (zero) surf2Dread(&v, s, ((int)X - 4) * 4, Y, cudaBoundaryModeZero);
  else surf2Dread(&v, s, X * 4, Y);
  o[Y * blockDim.x + X] = v;
}
KERNEL twice(float* o, const float* a) { o[X] = 2 * a[X]; }
"""
Floats = npt.NDArray[np.float32]


@functools.cache
def _image() -> ptx.Image:
    options = ptx.CompileOptions(target=ptx.Target.ptx("compute_90"), lineinfo=True)
    return ptx.compile(SOURCE, options, name="texels.cu")


class Bench:
    """A stream, kernels, and images."""

    def __init__(self) -> None:
        self.context = cudadrv.cuda_context_for(0)
        self.stream = self.context.new_stream()
        self._module = self.context.load_module(_image())
        self.out = self.stream.zeros(4 * W * H, np.float32)

    def plane(self, rows: int = H, columns: int = W) -> CudaArray[np.float32]:
        """An array of which the first rows and columns were written."""
        found = CudaArray(self.context, (H, W), np.float32, surface=True)
        if rows:
            found.copy_from(self.stream, np.ones((rows, columns), np.float32))
        return found

    def run(self, kernel: str, *arguments: object, width: int = W, height: int = H) -> None:
        self._module.kernel(kernel).launch(self.stream, LaunchConfig(height, width), *arguments)


Body = Callable[[Bench, bool], None]


def a_row_too_few(bench: Bench, ok: bool) -> None:
    """Every texel is read, or those of the rows that were written."""
    plane = bench.plane(H - 1)
    bench.run("fetch", bench.out, Texture(plane), 0.5, 0.5, height=H - 1 if ok else H)


def a_column_too_few(bench: Bench, ok: bool) -> None:
    """A box was copied to the array."""
    plane = bench.plane(H, W - 1)
    bench.run("fetch", bench.out, Texture(plane), 0.5, 0.5, width=W - 1 if ok else W)


def neighbour_without_a_weight(bench: Bench, ok: bool) -> None:
    """At its centre a texel alone counts, whatever stands beside it."""
    texture = Texture(bench.plane(H - 1), filter_mode=FilterMode.LINEAR)
    bench.run("fetch", bench.out, texture, 0.5, 0.5 if ok else 0.75, height=H - 1)


def border(bench: Bench, ok: bool) -> None:
    """What is outside of the image has the colour of the border, or that of its edge."""
    plane = CudaArray(bench.context, (H, W), np.float32)
    mode = AddressMode.BORDER if ok else AddressMode.CLAMP
    texture = Texture(plane, address_mode=mode)
    bench.run("fetch", bench.out, texture, -W - 0.5, 0.5)


def written_by_a_surface(bench: Bench, ok: bool) -> None:
    """A kernel writes texels, and another one fetches them."""
    plane = bench.plane(0)
    bench.run("write", Surface(plane), W if ok else W - 1)
    bench.run("fetch", bench.out, Texture(plane), 0.5, 0.5)


def bytes_of_a_surface(bench: Bench, ok: bool) -> None:
    """Likewise texels of four bytes."""
    plane = CudaArray(bench.context, (H, W), np.uint8, channels=4, surface=True)
    bench.run("write_bytes", Surface(plane), W if ok else 1)
    bench.run("fetch_bytes", bench.out, Texture(plane))


def loaded_by_a_surface(bench: Bench, ok: bool) -> None:
    """A kernel loads texels by a surface."""
    plane = bench.plane(H if ok else 1)
    bench.run("load", bench.out, Surface(plane), 0)


def outside_of_a_surface(bench: Bench, ok: bool) -> None:
    """Where a surface reads zeros, nothing is read."""
    plane = bench.plane(H, W - 4 if ok else W - 5)
    bench.run("load", bench.out, Surface(plane), 1)


def level_of_a_mipmap(bench: Bench, ok: bool) -> None:
    """One of two levels was filled."""
    mipmapped = MipmappedArray(bench.context, (H, W), np.float32, levels=2)
    mipmapped.level(0).copy_from(bench.stream, np.ones((H, W), np.float32))
    texture = Texture(mipmapped, normalized_coordinates=True)
    bench.run("fetch_level", bench.out, texture, 0.0 if ok else 1.0)


def copied_from_another_array(bench: Bench, ok: bool) -> None:
    """An array takes what was not written along."""
    one, other = bench.plane(H if ok else H - 1), bench.plane()
    other.copy_from(bench.stream, one)
    bench.run("fetch", bench.out, Texture(other), 0.5, 0.5)


def copied_to_memory(bench: Bench, ok: bool) -> None:
    """Memory takes what was not written of an array."""
    plane, memory = bench.plane(1), bench.stream.empty((H, W), np.float32)
    plane.copy_to(bench.stream, memory)
    bench.run("twice", bench.out, memory if ok else memory[1], height=1)


def linear_memory(bench: Bench, ok: bool) -> None:
    """A texture of an ordinary array, of which a part was written."""
    memory = bench.stream.empty(2 * W, np.float32)
    bench.stream.fill(memory[:W], 1)
    bench.run("fetch_line", bench.out, Texture(memory), 0 if ok else 1, height=1)


def gathered(bench: Bench, ok: bool) -> None:
    """The four texels around a point."""
    texture = Texture(CudaArray(bench.context, (H, W), np.float32, gather=True))
    plane = texture.resource
    assert isinstance(plane, CudaArray)
    plane.copy_from(bench.stream, np.ones((2, W), np.float32))
    bench.run("four", bench.out, texture, 2.0, 1.0 if ok else 2.0, width=1, height=1)


PROGRAMS: Final[tuple[Body, ...]] = (
    a_row_too_few, a_column_too_few, neighbour_without_a_weight, border, written_by_a_surface,
    bytes_of_a_surface, loaded_by_a_surface, outside_of_a_surface, level_of_a_mipmap,
    copied_from_another_array, copied_to_memory, linear_memory, gathered,
)  # fmt: skip
of_each_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda body: body.__name__)
in_each_order = pytest.mark.parametrize("order", ["immediate", "late"])


def findings_of(
    body: Body, ok: bool, order: OrderName = "immediate"
) -> tuple[emulator.Finding, ...]:
    with emulator.session(check=("init",), order=order, raise_findings=False) as machine:
        bench = Bench()
        body(bench, ok)
        bench.context.synchronize()
        return tuple(each for each in machine.findings if isinstance(each, emulator.Finding))


@in_each_order
@of_each_program
def test_texels_that_nothing_wrote_are_found(program: Body, order: OrderName) -> None:
    assert {each.check for each in findings_of(program, False, order)} == {"init"}


@pytest.mark.slow
@in_each_order
@of_each_program
def test_a_right_program_is_not_reported(program: Body, order: OrderName) -> None:
    assert [str(each) for each in findings_of(program, True, order)] == []


def test_a_finding_names_the_thread_among_those_of_another_texture() -> None:
    def body(bench: Bench, ok: bool) -> None:
        whole, part = bench.stream.zeros(W, np.float32), bench.stream.empty(W, np.float32)
        bench.stream.fill(part[:12], 1)
        bench.run("either", bench.out, Texture(whole), Texture(part), height=1)

    (found,) = findings_of(body, False)
    assert found.first.where.thread == (12, 0, 0)


def test_a_finding_names_the_thread_and_the_array() -> None:
    (found,) = findings_of(a_row_too_few, False)
    assert found.first.where.block == (H - 1, 0, 0)
    assert (found.kernel, found.nbytes, found.space) == ("fetch", 4, "texture")
    assert "cuArray3DCreate at" in found.memory
    said = str(found).splitlines()
    assert said[0].startswith("init: kernel fetch, 4 bytes of texture memory at 0x")
    assert "cuArray3DCreate at" in said[1]
    assert "(PTX line " in said[2]
    assert "a copy to the array, or a kernel by a surface" in said[3]
