"""Inline assembly as public code has it, which is not always as the PTX ISA writes it."""

from __future__ import annotations

import numpy as np
import pytest

import cudadrv
from tests.contract.conftest import compile_module

_SHARED = "unsigned shared_address = static_cast<unsigned>(__cvta_generic_to_shared(tile));"
_SOURCE = """
extern "C" __global__ void load_matrices(const unsigned* in, unsigned* out) {
  __shared__ __align__(16) unsigned tile[128];
  unsigned t = threadIdx.x, a, b, c, d;
  for (unsigned k = 0; k < 4; ++k) tile[32 * k + t] = in[32 * k + t];
  __syncwarp();
  SHARED
  shared_address += 16 * t;
  asm volatile("ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(shared_address));
  out[t] = a; out[32 + t] = b; out[64 + t] = c; out[96 + t] = d;
}
extern "C" __global__ void product(const unsigned* a, const unsigned* b, float* out) {
  unsigned t = threadIdx.x;
  float x[4] = {0, 0, 0, 0};
  asm volatile("mma.m16n8k8.sync.row.aligned.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6},"
               " {%0, %1, %2, %3};" : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])
               : "r"(a[2 * t]), "r"(a[2 * t + 1]), "r"(b[t]));
  for (int k = 0; k < 4; ++k) out[4 * t + k] = x[k];
}
extern "C" __global__ void others(const float* in, unsigned* out, unsigned* sum) {
  unsigned t = threadIdx.x, other;
  float x;
  asm volatile("fma.ftz.rn.f32 %0, %1, %1, %1;" : "=f"(x) : "f"(in[t]));
  out[t] = __float_as_uint(x);
  asm volatile("cvt.sat.rzi.u8.f32 %0, %1;" : "=r"(other) : "f"(in[t]));
  out[32 + t] = other;
  asm volatile("shfl.bfly.sync.b32 %0, %1, 1, 31, 0xffffffff;" : "=r"(other) : "r"(t));
  out[64 + t] = other;
  asm volatile("red.add.global.u32 [%0], %1;" :: "l"(sum), "r"(t) : "memory");
}
extern "C" __global__ void as_written(const unsigned* in, unsigned* out) {
  unsigned t = threadIdx.x, x, y;
  asm volatile("{\\n .reg .b32 low, high;\\n prmt .b32 low, %1, 0, 0x0123 ;\\n"
               " xor  .b32 high, low, -1;\\n mov .u32 %0, high;\\n}" : "=r"(out[t]) : "r"(in[t]));
  asm volatile("mov.v4.u32 {%0, %1, _, _}, %%ctaid;" : "=r"(x), "=r"(y));
  out[32 + 2 * blockIdx.x] = x;
  out[33 + 2 * blockIdx.x] = y;
}
""".replace("SHARED", _SHARED)


@pytest.fixture(scope="module")
def module(context: cudadrv.Context) -> cudadrv.Module:
    if context.device.compute_capability < (8, 0):
        pytest.skip("needs a device of compute capability 8.0")
    return compile_module(context, _SOURCE)


def test_ldmatrix_accepts_the_count_before_the_shape(
    module: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    words = np.arange(128, dtype=np.uint32) * 0x10001
    out = stream.empty(128, "u4")
    config = cudadrv.LaunchConfig(1, 32)
    module.kernel("load_matrices").launch(stream, config, stream.to_device(words), out)
    # Row r of each 8 x 8 matrix is 16 bytes; thread t has the word of row t / 4 at column t % 4.
    assert np.array_equal(stream.to_host(out), words)


def test_a_product_accepts_its_words_in_any_order(
    module: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    rng = np.random.default_rng(7)
    a = rng.integers(-8, 8, (16, 8)).astype(np.float16)
    b = rng.integers(-8, 8, (8, 8)).astype(np.float16)
    # Thread t: of A rows t / 4 and 8 more, columns 2 * (t % 4) and next; of B the same, turned.
    fragments = a.view(np.uint32).reshape(2, 32).T.copy()
    turned = b.T.copy().view(np.uint32).reshape(32).copy()
    out = stream.empty((32, 4), "f4")
    module.kernel("product").launch(
        stream,
        cudadrv.LaunchConfig(1, 32),
        stream.to_device(fragments),
        stream.to_device(turned),
        out,
    )
    found = stream.to_host(out).reshape(32, 2, 2).transpose(1, 0, 2).reshape(16, 8)
    assert np.array_equal(found, a.astype(np.float32) @ b.astype(np.float32))


def test_other_instructions_take_their_words_in_any_order(
    module: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    values = np.linspace(-300, 300, 32, dtype=np.float32)
    values[3] = np.float32(1e-40)
    out, total = stream.empty((3, 32), "u4"), stream.zeros(1, "u4")
    module.kernel("others").launch(
        stream, cudadrv.LaunchConfig(1, 32), stream.to_device(values), out, total
    )
    found = stream.to_host(out)
    flushed = np.where(abs(values) < 2.0**-126, 0, values).astype(np.float64)
    assert np.array_equal(found[0].view("f4"), (flushed * flushed + flushed).astype(np.float32))
    assert np.array_equal(found[1], np.clip(np.trunc(values), 0, 255).astype(np.uint32))
    assert np.array_equal(found[2], np.arange(32) ^ 1)
    assert stream.to_host(total)[0] == sum(range(32))


def test_blanks_before_modifiers_and_vectors_of_special_registers(
    module: cudadrv.Module, stream: cudadrv.Stream
) -> None:
    words = np.arange(32, dtype=np.uint32) * np.uint32(0x01234567)
    out = stream.zeros(64, "u4")
    config = cudadrv.LaunchConfig(4, 32)
    module.kernel("as_written").launch(stream, config, stream.to_device(words), out)
    found = stream.to_host(out)
    assert np.array_equal(found[:32], ~words.byteswap())
    assert np.array_equal(found[32:40], [0, 0, 1, 0, 2, 0, 3, 0])
