"""The kernels that are launched, and their module on a GPU or on the null driver."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import cudadrv
import ptx

SOURCE: Final = """
extern "C" __global__ void k0() {}
extern "C" __global__ void k1(float* a) {}
extern "C" __global__ void k5(
    const float* a, const float* b, const float* c, float x, int n) {}
extern "C" __global__ void k20(float* p0, float* p1, float* p2, float* p3, float* p4, float* p5,
    float* p6, float* p7, float* p8, float* p9, float x0, float x1, float x2, float x3, float x4,
    int n0, int n1, int n2, int n3, int n4) {}
"""
# The kernel of five parameters, for groups that also run where NVRTC is missing.
FIVE_IN_PTX: Final = """.version 7.0
.target sm_75
.address_size 64

.visible .entry k5(
    .param .u64 .ptr .global .align 4 k5_param_0,
    .param .u64 .ptr .global .align 4 k5_param_1,
    .param .u64 .ptr .global .align 4 k5_param_2,
    .param .f32 k5_param_3,
    .param .u32 k5_param_4
)
{
    ret;
}
"""
_TYPES: Final = {
    "k0": "",
    "k1": "p",
    "k5": "pppfi",
    "k20": "p" * 10 + "f" * 5 + "i" * 5,
}
# PTX type, bytes, whether it is a pointer, its type in C++ by the letters of the Itanium C++ ABI.
_PARAMS: Final = {
    "p": ("u64", 8, True, "PKf"),
    "f": ("f32", 4, False, "f"),
    "i": ("u32", 4, False, "i"),
}

GRID: Final = 4
BLOCK: Final = 256


class Kernels:
    """The kernels, compiled and loaded at the first use."""

    def __init__(self, context: cudadrv.Context, *, null: bool) -> None:
        self._context = context
        self._null = null

    @property
    def image(self) -> bytes:
        """The loaded image, for peers that load it too."""
        image = self._image
        return image.data if isinstance(image, ptx.Image) else image

    @cached_property
    def _image(self) -> ptx.Image | bytes:
        if self._null:
            # The null driver takes anything for an image; NVRTC need not be there.
            return b"null image " * 16
        return ptx.compile(SOURCE, ptx.CompileOptions(target=self._context.target))

    @cached_property
    def _module(self) -> cudadrv.Module:
        return self._context.load_module(self._image)

    def __getitem__(self, name: str) -> cudadrv.Kernel:
        return self._module.kernel(name, _signature(name) if self._null else None)


def _signature(name: str) -> ptx.KernelSignature:
    params, offset = [], 0
    for number, letter in enumerate(_TYPES[name]):
        ptx_type, nbytes, is_pointer, cpp_type = _PARAMS[letter]
        offset = -(-offset // nbytes) * nbytes
        params.append(
            ptx.KernelParam(
                f"{name}_param_{number}", ptx_type, nbytes, nbytes, offset, is_pointer, 1, cpp_type
            )
        )
        offset += nbytes
    return ptx.KernelSignature(name, tuple(params), offset, 0, None, None)
