"""The kernels that are launched, and their module on a GPU or on the null driver."""

from __future__ import annotations

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
    """The loaded kernels.

    Attributes:
        image: what was loaded, for peers that load it too.
    """

    def __init__(self, context: cudadrv.Context, *, null: bool) -> None:
        if null:
            # The null driver takes anything for an image; NVRTC need not be there.
            self.image = b"null image " * 16
            self._module = context.load_module(self.image)
        else:
            image = ptx.compile(SOURCE, ptx.CompileOptions(target=context.target))
            self.image = image.data
            self._module = context.load_module(image)
        self._null = null

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
