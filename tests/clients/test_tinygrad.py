"""tinygrad writes CUDA C++ or PTX, and calls the driver by ctypes."""

from __future__ import annotations

from pathlib import Path

import pytest

from .emulated import emulated

PROGRAM = """
import numpy as np
from tinygrad import Device, Tensor

print(Device.DEFAULT)
a, b = (np.random.default_rng(seed).random((16, 16), np.float32) for seed in (0, 1))
print(np.allclose((Tensor(a) @ Tensor(b)).relu().numpy(), a @ b, rtol=1e-4))
print(np.allclose(Tensor(a).softmax().numpy().sum(1), 1))
"""


@pytest.mark.parametrize("renderer", ["CUDA", "CUDA:PTX"])
def test_tensors_of_tinygrad_have_right_values(tmp_path: Path, renderer: str) -> None:
    ended = emulated("tinygrad", PROGRAM, tmp_path, DEV=renderer)
    assert (ended.status, ended.out) == (0, "CUDA\nTrue\nTrue\n"), ended.err
