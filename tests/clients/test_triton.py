"""Triton makes PTX, which its `ptxas` passes on, and launches by C++ that it compiles."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .emulated import emulated

PROGRAM = """
import numpy as np
import triton
import triton.language as tl
from cuda.bindings import driver

def ok(result):
    assert result[0] == 0, result
    return result[1] if len(result) == 2 else result[1:]

ok(driver.cuInit(0))
ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))

class Tensor:
    dtype = "fp32"

    def __init__(self, array):
        self.array, self.address = array, int(ok(driver.cuMemAlloc(array.nbytes)))
        ok(driver.cuMemcpyHtoD(self.address, array.ctypes.data, array.nbytes))

    def data_ptr(self):
        return self.address

    def read(self):
        ok(driver.cuMemcpyDtoH(self.array.ctypes.data, self.address, self.array.nbytes))
        return self.array

@triton.jit
def add(x, y, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)

x = np.arange(1000, dtype=np.float32)
out = Tensor(np.zeros(1000, np.float32))
add[(4,)](Tensor(x), Tensor(2 * x), out, 1000, BLOCK=256)
print((out.read() == 3 * x).all())
"""


def test_a_kernel_of_triton_has_right_values(tmp_path: Path) -> None:
    if shutil.which("gcc") is None and shutil.which("clang") is None:
        pytest.skip("needs a C compiler")
    ended = emulated("triton", PROGRAM, tmp_path, TRITON_CACHE_DIR=str(tmp_path / "triton"))
    assert (ended.status, ended.out) == (0, "True\n"), ended.err
