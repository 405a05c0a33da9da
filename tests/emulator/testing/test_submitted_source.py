"""The CUDA C++ of a file that others wrote is read, and their Python does not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from cudadrv.testing.verify import CannotVerifyError
from cudadrv.testing.verify.submitted_source import submitted_source

KERNEL = "__global__ void k(float* x)\n{\n    x[threadIdx.x] = 1;\n}"
HOST = "torch::Tensor run(torch::Tensor x) {\n    k<<<1, 32>>>(x.data_ptr<float>());\n}"


def read(folder: Path, text: str, name: str = "kernel.py") -> str:
    file = folder / name
    file.write_text(text)
    return submitted_source(file)[0]


def test_cuda_is_taken_from_strings_without_the_code_of_the_host(tmp_path: Path) -> None:
    source = f"#include <torch/extension.h>\n#include <cuda_fp16.h>\n{KERNEL}\n{HOST}\n"
    text = f"import absent\nraise SystemExit\nsource = '''{source}'''\nother = 'torch::Tensor'\n"
    assert read(tmp_path, text) == f"#include <cuda_fp16.h>\n{KERNEL}\n"
    assert read(tmp_path, source, "kernel.cu") == source


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 'no kernel'", "has no string with a kernel"),
        ("x = (", "is no Python"),
        ("x = " + "(" * 5000, "is no Python"),
        ("\0", "is no Python"),
    ],
)
def test_a_file_without_a_kernel_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(CannotVerifyError, match=words):
        read(tmp_path, text)
