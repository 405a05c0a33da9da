"""References that are functions and modules of PyTorch, and problems as KernelBench writes them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv.errors import ArgumentError, RuntimeDependencyUnavailable
from cudadrv.testing import strategies as st
from cudadrv.testing.verify import (
    CannotVerifyError,
    KernelCase,
    VerifyOptions,
    problem_case,
    verify,
)

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="needs PyTorch")
QUICK = VerifyOptions(
    examples=4, seconds=600, database=None, checks=("bounds", "init"), explain=False
)
SOURCE = """extern "C" __global__ void relu(int n, const float* input, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = LEFT input[i] : 0;
}"""
PROBLEM = """
import torch

batch, width = 4096, 4096

class Model(torch.nn.Module):
    def __init__(self, out):
        super().__init__()
        self.fc = torch.nn.Linear(width, out)
    def forward(self, x):
        return self.fc(x)

def get_inputs():
    return [torch.rand(batch, width)]

def get_init_inputs():
    return [3]
"""
LINEAR = """
source = r'''
#include <torch/extension.h>
__global__ void linear(const float* x, const float* w, const float* b, float* out, int width) {
    float s = b[threadIdx.x];
    for (int k = 0; k < width; ++k) s += x[blockIdx.x * width + k] * w[threadIdx.x * width + k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
torch::Tensor run(torch::Tensor x) { return x; }
'''
"""
N = st.sizes(1, 60)


def relu(reference: Any, left: str = "input[i] > 0 ?") -> KernelCase:
    return KernelCase(
        SOURCE.replace("LEFT", left),
        arguments={"n": N, "input": st.arrays(np.float32, N), "out": st.unwritten(np.float32, N)},
        launch=st.launch_configs(threads=N),
        reference=reference,
    )


@needs_torch
def test_a_function_and_a_module_of_torch_are_references() -> None:
    torch: Any = importlib.import_module("torch")

    def annotated(input: Any) -> dict[str, Any]:  # a tensor
        return {"out": input.clamp(min=0)}

    def changing(input: Any, out: Any) -> None:  # tensors
        out.copy_(input.relu())

    for function in (annotated, changing):
        function.__annotations__["input"] = torch.Tensor
    for reference in (torch.nn.ReLU(), annotated, changing):
        assert verify(relu(reference), QUICK).is_verified, reference
    verdict = verify(relu(torch.nn.ReLU(), "input[i] > 1 ?"), QUICK)
    assert [finding.check for finding in verdict.findings] == ["values"]


@needs_torch
def test_a_problem_of_kernelbench_is_a_case(tmp_path: Path) -> None:
    (tmp_path / "problem.py").write_text(PROBLEM)
    (tmp_path / "solution.py").write_text(LINEAR)

    def case(*parameters: str | int) -> KernelCase:
        return problem_case(
            tmp_path / "problem.py",
            tmp_path / "solution.py",
            parameters,
            cudadrv.LaunchConfig(5, 3),
            constants={"batch": 5, "width": 7},
        )

    right = case("x", "fc.weight", "fc.bias", "out", 7)
    assert list(right.arguments) == ["x", "fc_weight", "fc_bias", "out", "parameter_4"]
    assert verify(right, QUICK).is_verified
    wrong = verify(case("x", "fc.weight", "fc.bias", "out", 6), QUICK)
    assert [finding.check for finding in wrong.findings] == ["values"]
    with pytest.raises(ArgumentError, match="parameter 'y' is unknown: the names are x, fc_weight"):
        case("y", "out")
    (tmp_path / "problem.py").write_text("x = 1")
    with pytest.raises(CannotVerifyError, match="has no Model"):
        case("x")


@pytest.mark.skipif(HAS_TORCH, reason="needs an environment without PyTorch")
def test_a_problem_without_torch_names_the_package() -> None:
    with pytest.raises(RuntimeDependencyUnavailable, match="pip install torch"):
        problem_case(Path("problem.py"), SOURCE, ("x", "out"), cudadrv.LaunchConfig(1, 1))
