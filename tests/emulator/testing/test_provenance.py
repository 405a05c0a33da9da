"""A wrong value's finding begins with the instruction that made it wrong.

Each kernel of the table has one line that does, which is marked. The reference is calculated in
float64, without the fault.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from cudadrv import LaunchConfig
from cudadrv.testing import strategies as st
from cudadrv.testing.verify import KernelCase, VerifyOptions, verify

QUICK: Final = VerifyOptions(
    examples=12, seconds=600, database=None, checks=("bounds",), explain=False
)
Array = NDArray[np.float64]


class Planted(NamedTuple):
    """A kernel of x, y and o with a marked fault, its operands, and what it should calculate."""

    cause: str
    body: str
    x: tuple[float, float]
    y: tuple[float, float]
    reference: Callable[[Array, Array], Array]
    dtype: type[np.floating] = np.float32


FAULTS: Final = {
    "division": Planted("NaN", "T a = (x[i] - x[i]) / (y[i] - y[i]); // fault\no[i] = a + 1;",
                        (1, 2), (1, 2), lambda x, y: 1 + 0 * x),
    "root in shared memory": Planted(
        "NaN", "__shared__ T s[32];\ns[i] = sqrt(x[i] - 3); // fault\n__syncthreads();\n"
        "o[i] = s[31 - i] * y[i];", (1, 2), (1, 2), lambda x, y: y,
    ),
    "logarithm": Planted("infinity", "T a = log(x[i] * 0); // fault\no[i] = a + y[i];",
                         (1, 2), (1, 2), lambda x, y: y),
    "overflow": Planted("infinity", "T a = exp(x[i] * 100); // fault\no[i] = a * y[i];",
                        (1, 2), (1, 2), lambda x, y: y),
    "overflow of doubles": Planted(
        "infinity", "T a = exp(x[i] * 1000); // fault\no[i] = a * y[i];", (1, 2), (1, 2),
        lambda x, y: y, np.float64,
    ),
    "in a function": Planted("infinity", "o[i] = inverse(x[i] * 0) * y[i];", (1, 2), (1, 2),
                             lambda x, y: y),
    "decided by NaN": Planted("NaN", "T a = log(-x[i]); // fault\no[i] = a < 1 ? 3 : 4;",
                              (1, 2), (1, 2), lambda x, y: 3 + 0 * x),
    "variance": Planted(
        "cancellation", "T m = (x[i] + y[i]) / 2;\nT q = (x[i] * x[i] + y[i] * y[i]) / 2;\n"
        "T v = q - m * m; // fault\no[i] = v;", (1000, 1001), (1000, 1001),
        lambda x, y: ((x - y) / 2) ** 2,
    ),
    "roots": Planted(
        "cancellation", "T a = sqrt(x[i] + 1);\nT b = sqrt(x[i]);\nT c = a - b; // fault\n"
        "o[i] = c * y[i];", (1e5, 2e5), (1000, 2000),
        lambda x, y: y / (np.sqrt(x + 1) + np.sqrt(x)),
    ),
    "by a shuffle": Planted(
        "cancellation", "T e = exp(x[i]);\nT d = e - 1; // fault\n"
        "o[i] = __shfl_xor_sync(~0u, d, 1) * 1000;", (1e-5, 1e-4), (1, 2),
        lambda x, y: 1000 * np.expm1(x[np.arange(32) ^ 1]),
    ),
    "of logarithms": Planted(
        "cancellation", "T a = log(x[i] * (T)1.00001);\nT b = log(x[i]);\nT c = a - b; // fault\n"
        "o[i] = c * (T)1e5;", (1000, 2000), (1, 2),
        lambda x, y: 1e5 * np.log(float(np.float32(1.00001))) + 0 * x,
    ),
    "of doubles": Planted(
        "cancellation", "T d = 1 - cos(x[i]); // fault\no[i] = d / (x[i] * x[i]);", (1e-6, 2e-6),
        (1, 2), lambda x, y: 0.5 + 0 * x, np.float64,
    ),
    "of an exponential of doubles": Planted(
        "cancellation", "T e = exp(x[i]);\nT d = e - 1; // fault\no[i] = d / x[i];",
        (1e-10, 2e-10), (1, 2), lambda x, y: np.expm1(x) / x, np.float64,
    ),
    "of a scaled exponential of doubles": Planted(
        "cancellation", "T e = exp(x[i] + 8);\nT d = e - exp((T)8); // fault\no[i] = d / x[i];",
        (1e-10, 2e-10), (1, 2), lambda x, y: np.expm1(x) / x * np.exp(8), np.float64,
    ),
    "in the steps of a loop": Planted(
        "cancellation in several steps", "T t = 1, s = 1;\nfor (int j = 1; j < 50; j++) {\n"
        "t *= x[i] / j;\ns += t; // fault\n}\no[i] = s;", (-10, -9), (1, 2),
        lambda x, y: np.exp(x),
    ),
    "in memory of the thread": Planted(
        "cancellation", "T a[8] = {1, -7, 21, -35, 35, -21, 7, -1}, s[8] = {1};\n"
        "for (int j = 1; j < (int)y[i]; j++)\ns[j] = fma(s[j - 1], x[i], a[j]); // fault\n"
        "o[i] = s[(int)y[i] - 1] * (T)3e5;", (1.0625, 1.125), (8, 8),
        lambda x, y: 3e5 * (x - 1) ** 7,
    ),
    "then times a large integer": Planted(
        "cancellation", "T a = sqrt(x[i] + 1);\nT b = a - sqrt(x[i]); // fault\n"
        "o[i] = b * (T)1e7;", (1e5, 2e5), (1, 2),
        lambda x, y: 1e7 / (np.sqrt(x + 1) + np.sqrt(x)),
    ),
    "of bfloat16": Planted(
        "cancellation", "T a = (__nv_bfloat16)x[i];\nT b = (__nv_bfloat16)y[i];\n"
        "o[i] = a - b; // fault", (101.125, 101.25), (101.375, 101.5), lambda x, y: x - y,
    ),
    "of halves": Planted(
        "cancellation", "__half u = __float2half(x[i]), v = __float2half(y[i]);\n"
        "__half a = __hmul(u, v);\n__half b = __hmul(u, u);\n"
        "__half c = __hsub(a, b); // fault\no[i] = __half2float(c);", (33.25, 33.375),
        (33.375, 33.5), lambda x, y: x * (y - x),
    ),
    "an exponent of an integer": Planted(
        "infinity", "T a = __int_as_float(((int)x[i] + 127) << 23); // fault\no[i] = a / 4;",
        (128, 128), (1, 2), lambda x, y: np.exp2(x - 2),
    ),
    "a NaN before a branch": Planted(
        "NaN", "T a = pow(-x[i], T(1.5)); // fault\no[i] = max(a, T(0)) + a;", (1, 2), (1, 2),
        lambda x, y: 0 * x,
    ),
    "an exponential in a sum": Planted(
        "infinity", "T a = exp(x[i] * 100); // fault\no[i] = a + y[i];", (1, 2), (1, 2),
        lambda x, y: y,
    ),
}  # fmt: skip


def source_of(planted: Planted) -> str:
    real = "float" if planted.dtype is np.float32 else "double"
    mark = " // fault" if "inverse" in planted.body else ""
    headers = "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n"
    has_halves = "half" in planted.body or "float16" in planted.body
    return f"""{headers if has_halves else ""}typedef {real} T;
__device__ __noinline__ T inverse(T a) {{
    T b = 1 / a;{mark}
    return b;
}}
extern "C" __global__ void planted(const T* x, const T* y, T* o) {{
int i = threadIdx.x;
{planted.body}
}}
"""


def first_line(planted: Planted) -> str:
    """Verify a kernel; return what the first line of its finding is."""
    source = source_of(planted)
    case = KernelCase(
        source,
        arguments={
            "x": st.arrays(planted.dtype, 32, planted.x),
            "y": st.arrays(planted.dtype, 32, planted.y),
            "o": st.unwritten(planted.dtype, 32),
        },
        launch=LaunchConfig(1, 32),
        reference=lambda x, y: {"o": planted.reference(x.astype(float), y.astype(float))},
    )
    finding = next(iter(verify(case, QUICK).findings), None)
    if finding is None or finding.check != "values":
        return str(finding)
    marked = next(n for n, line in enumerate(source.split("\n"), 1) if "// fault" in line)
    first = finding.lines[0]
    assert finding.lines[-1].what.startswith("st.global")
    assert f"    {first.what}" in str(finding)
    return (
        planted.cause
        if f"({planted.cause}" in first.what and first.line == marked
        else str(finding)
    )


@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)], ids=["few", "all"])
def test_the_first_line_of_a_wrong_value_is_the_one_that_made_it_wrong(every: int) -> None:
    wrong = [
        f"{name}: {found}"
        for name, planted in [*FAULTS.items()][::every]
        if (found := first_line(planted)) != planted.cause
    ]
    assert not wrong, "\n\n".join(wrong)


def test_a_wrong_value_without_a_lossy_step_begins_where_it_was_loaded() -> None:
    case = KernelCase(
        'extern "C" __global__ void copy(const float* x, float* o) {\n'
        "    o[threadIdx.x] = x[31 - threadIdx.x] + 1;\n}",
        arguments={"x": st.arrays(np.float32, 32, (1, 2)), "o": st.unwritten(np.float32, 32)},
        launch=LaunchConfig(1, 32),
        reference=lambda x: {"o": x + np.float32(1)},
    )
    (finding,) = verify(case, QUICK).findings
    opcodes = [line.what.partition(":")[0] for line in finding.lines]
    assert opcodes == ["ld.global.f32", "add.f32", "st.global.f32"]
    assert "(" not in finding.lines[0].what


@pytest.mark.parametrize(("kind", "header"), [("half", "fp16"), ("bfloat16", "bf16")])
def test_a_wrong_value_of_packed_numbers_has_its_steps(kind: str, header: str) -> None:
    """The last places of two numbers in one register are not compared: this raised a KeyError."""
    case = KernelCase(
        f"""#include <cuda_{header}.h>
        extern "C" __global__ void k(const float* x, float* y) {{
            auto both = __float2{kind}2_rn(x[threadIdx.x]);
            y[threadIdx.x] = __low2float(__hmul2(both, both)) / 3; }}""",
        arguments={"x": st.arrays(np.float32, 32, (1, 2)), "y": st.unwritten(np.float32, 32)},
        launch=LaunchConfig(1, 32),
        reference=lambda x: {"y": x * x + 1},
    )
    (finding,) = verify(case, QUICK).findings
    assert any(line.what.startswith("mul") for line in finding.lines), finding.lines
