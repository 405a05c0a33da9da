"""tinygrad writes CUDA C++ or PTX, and calls the driver by ctypes."""

from __future__ import annotations

from pathlib import Path

import pytest
from cuda.pathfinder import load_nvidia_dynamic_lib

from .emulated import emulated

PROGRAM = """
import numpy as np
from tinygrad import Device, Tensor

print(Device.DEFAULT, type(Device[Device.DEFAULT].renderer).__name__)
a, b = (np.random.default_rng(seed).random((16, 16), np.float32) for seed in (0, 1))
print(np.allclose((Tensor(a) @ Tensor(b)).relu().numpy(), a @ b, rtol=1e-4))
print(np.allclose(Tensor(a).softmax().numpy().sum(1), 1))
"""


@pytest.mark.parametrize(
    ("device", "renderer"), [("CUDA", "CUDARenderer"), ("CUDA:PTX", "PTXRenderer")]
)
def test_tensors_of_tinygrad_have_right_values(tmp_path: Path, device: str, renderer: str) -> None:
    # Where tinygrad does not find NVRTC it writes PTX, without a word.
    nvrtc = str(load_nvidia_dynamic_lib("nvrtc").abs_path)
    ended = emulated("tinygrad", PROGRAM, tmp_path, DEV=device, NVRTC_PATH=nvrtc)
    assert (ended.status, ended.out) == (0, f"CUDA {renderer}\nTrue\nTrue\n"), ended.err
