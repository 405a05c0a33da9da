"""Arguments are the same whichever library is imported first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.patience import SECONDS

IMPORTS: Final = (
    "import ml_dtypes\nimport cudadrv.launch.module_and_kernel\n",
    "import cudadrv.launch.module_and_kernel\nimport ml_dtypes\n",
)
SCRIPT: Final = """
import numpy as np
import cudadrv

SOURCE = '''
#include <cuda_fp16.h>
#include <cuda_bf16.h>
template <class T> __global__ void put(unsigned char* out, T value) {
    memcpy(out, &value, sizeof(T));
}'''
stream = cudadrv.cuda_context_for(0).default_stream
types = ("bool", "int", "float", "double", "__half", "__nv_bfloat16")
names = {cpp: f"put<{cpp}>" for cpp in types}
module = stream.context.compile(SOURCE, name_expressions=tuple(names.values()))
for cpp, name in names.items():
    for dtype, number in (
        ("int2", 1), ("int4", 7), ("uint4", 0), ("bfloat16", 1.5), ("float8_e4m3fn", -0.5)
    ):
        out = stream.zeros(8, np.uint8)
        value = getattr(ml_dtypes, dtype)(number)
        try:
            for _ in range(3):
                module.kernel(name).launch(stream, cudadrv.LaunchConfig(1, 1), out, value)
            print(cpp, dtype, stream.to_host(out).tobytes().hex())
        except cudadrv.errors.ArgumentError:
            print(cpp, dtype, "rejected")
"""
BYTES: Final = {
    "bool": ("01", "rejected", "00", "rejected", "rejected"),
    "int": ("01000000", "07000000", "00000000", "rejected", "rejected"),
    "float": ("0000803f", "0000e040", "00000000", "0000c03f", "000000bf"),
    "double": (
        "000000000000f03f", "0000000000001c40", "0000000000000000", "000000000000f83f",
        "000000000000e0bf",
    ),
    "__half": ("003c", "0047", "0000", "003e", "00b8"),
    "__nv_bfloat16": ("803f", "e040", "0000", "c03f", "00bf"),
}  # fmt: skip
DTYPES: Final = ("int2", "int4", "uint4", "bfloat16", "float8_e4m3fn")


@pytest.mark.slow
def test_scalars_of_ml_dtypes_are_read_alike_before_and_after_its_import() -> None:
    pytest.importorskip("ml_dtypes")
    expected = {
        f"{cpp} {dtype} {data if data == 'rejected' else data.ljust(16, '0')}"
        for cpp, row in BYTES.items()
        for dtype, data in zip(DTYPES, row, strict=True)
    }
    root = Path(__file__).parents[2]
    for imports in IMPORTS:
        run = subprocess.run(
            [sys.executable, "-c", imports + SCRIPT],
            env={**os.environ, "CUDADRV_DRIVER": "emulator", "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert (set(run.stdout.splitlines()) - expected, run.stderr) == (set(), "")
        assert len(run.stdout.splitlines()) == len(expected)
