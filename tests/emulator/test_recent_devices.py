"""Emulated devices of compute capability 10.0 and 12.0, from CUDA C++ on."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import LaunchConfig, emulator
from cudadrv.errors import CudaError, NotSupportedError
from tests.contract.tensor_atoms import TABLES, require_atoms_in_place

SCALED = r"""
extern "C" __global__ void scaled(float* out) {
  float d[4];
  unsigned one = 0x38383838, two = 128;  // four 1.0 of e4m3; 2.0 of ue8m0
  unsigned short zero = 0;
  asm("mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32"
      ".ue8m0 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4}, {%5, %5, %5, %5}, {%6}, {%7, %7},"
      " {%6}, {%7, %7};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(one), "f"(3.0f), "r"(two), "h"(zero));
  for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];
}
"""
TENSOR_MEMORY = r"""
extern "C" __global__ void shift(int at) {
  asm volatile("tcgen05.shift.cta_group::1.down [%0];" :: "r"(at));
}
"""


def run(source: str, target: str, capability: tuple[int, int]) -> list[float]:
    """What the kernel of a source writes."""
    with emulator.session(devices=[emulator.EmulatedDevice(compute_capability=capability)]):
        context = cudadrv.cuda_context_for(0)
        module = context.compile(source, ptx.CompileOptions(target=ptx.Target.ptx(target)))
        stream = context.default_stream
        out = stream.zeros(128, np.float32)
        (name,) = module.kernel_names
        module.kernel(name).launch(stream, LaunchConfig(1, 32), out)
        return [float(each) for each in stream.to_host(out)]


def test_a_product_with_factors_for_blocks_runs_on_12_0() -> None:
    assert run(SCALED, "compute_120a", (12, 0)) == [32 * 2.0 * 2.0 + 3.0] * 128


def test_a_target_without_its_architectures_suffix_lacks_it() -> None:
    with pytest.raises(CudaError, match=r"needs sm_120f .* is for \.target sm_120 ") as caught:
        run(SCALED, "compute_120", (12, 0))
    assert "INVALID_PTX" in str(caught.value)


def test_what_is_not_known_of_tensor_memory_is_rejected_by_its_name() -> None:
    with pytest.raises(CudaError, match=r"tcgen05\.shift\.cta_group::1\.down") as caught:
        run(TENSOR_MEMORY, "compute_100a", (10, 0))
    assert "NOT_SUPPORTED" in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_boxes_are_swizzled_by_larger_atoms_on_10_0(name: str) -> None:
    with emulator.session([emulator.EmulatedDevice(compute_capability=(10, 0))]):
        require_atoms_in_place(cudadrv.cuda_context_for(0), name)


def test_a_swizzle_that_flips_halves_is_rejected() -> None:
    with emulator.session([emulator.EmulatedDevice(compute_capability=(10, 0))]):
        array = cudadrv.cuda_context_for(0).default_stream.zeros((16, 64), np.float16)
        flipped = cudadrv.tensor_map.TensorSwizzle.BYTES_128_ATOM_32_FLIP_8
        with pytest.raises(NotSupportedError, match="copies no swizzles that flip halves"):
            cudadrv.tensor_map.TensorMap(array, (16, 64), swizzle=flipped)
