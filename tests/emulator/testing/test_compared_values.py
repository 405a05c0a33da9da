"""`verify` compares each value of the reference, whatever bits unwritten memory has."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest

from cudadrv.errors import ArgumentTypeError, ArgumentValueError
from cudadrv.launch import LaunchConfig
from cudadrv.testing import strategies as st
from cudadrv.testing.strategies import UNWRITTEN_BYTE, DrawnArray
from cudadrv.testing.verify import (
    CannotVerifyError,
    Example,
    KernelCase,
    Tolerance,
    VerifyOptions,
    saved_findings,
    verify,
)
from cudadrv.testing.verify.contents import allowed_differences
from cudadrv.testing.verify.replay import SavedFinding

QUICK: Final = VerifyOptions(
    examples=3, seconds=600, database=None, checks=("init", "bounds"), explain=False
)
N: Final = st.sizes(1, 20)
# Types with few values, and the value that the bytes of unwritten memory are in each.
TYPES: Final = {
    "bool": (np.bool_, True), "unsigned char": (np.uint8, 0xCD), "signed char": (np.int8, -51),
    "unsigned short": (np.uint16, 0xCDCD), "int": (np.int32, -842150451),
}  # fmt: skip
Reference = Callable[[npt.NDArray[Any]], Any]


def case_of(c_type: str, stored: str, reference: Reference, where: str = "i < n") -> KernelCase:
    return KernelCase(
        f"""extern "C" __global__ void k(int n, {c_type}* y) {{
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if ({where}) y[i] = {stored};
        }}""",
        arguments={"n": N, "y": st.unwritten(TYPES[c_type][0], N)},
        launch=st.launch_configs(threads=N),
        reference=reference,
    )


def every_second(value: object) -> Reference:
    def reference(y: npt.NDArray[Any]) -> None:
        y[::2] = value

    return reference


def outcome(case: KernelCase) -> str:
    return verify(case, QUICK).outcome


@pytest.mark.parametrize("c_type", TYPES)
def test_a_value_with_the_bits_of_unwritten_memory_is_not_open(c_type: str) -> None:
    dtype, value = TYPES[c_type]
    raw: npt.NDArray[Any] = np.full(4 * np.dtype(dtype).itemsize, UNWRITTEN_BYTE, np.uint8).view(
        dtype
    )
    example = Example({"n": 4, "y": DrawnArray(raw, is_written=False)}, LaunchConfig(1, 4))
    for reference, opened in (
        (lambda y: {"y": np.full(4, value)}, [False] * 4),
        (every_second(value), [False, True] * 2),
        (lambda y: None, [True] * 4),
    ):
        expected = case_of(c_type, "0", reference).expected(example)
        assert expected.open_elements("y").tolist() == opened
        assert expected.compares_anything is not all(opened)


@pytest.mark.slow
@pytest.mark.parametrize("c_type", TYPES)
def test_a_value_with_the_bits_of_unwritten_memory_is_compared(c_type: str) -> None:
    value = TYPES[c_type][1]
    right, wrong = str(int(value)), str(int(value) ^ 1)
    (saved,) = saved_findings(
        case := case_of(c_type, wrong, lambda y: {"y": np.full_like(y, value)}),
        found := verify(case, QUICK),
    )
    assert found.outcome == "found"
    assert SavedFinding.from_json(json.loads(json.dumps(saved.to_json()))).faults()
    assert outcome(case_of(c_type, right, lambda y: {"y": np.full_like(y, value)})) == "verified"


@pytest.mark.slow
@pytest.mark.parametrize("c_type", TYPES)
def test_elements_that_the_reference_leaves_unwritten_stay_open(c_type: str) -> None:
    value = TYPES[c_type][1]
    right, wrong = str(int(value)), str(int(value) ^ 1)
    some = "i < n && i % 2 == 0"
    assert outcome(case_of(c_type, right, every_second(value), some)) == "verified"
    (finding,) = saved_findings(
        case := case_of(c_type, wrong, every_second(value), some), verify(case, QUICK)
    )
    saved = SavedFinding.from_json(json.loads(json.dumps(finding.to_json())))
    assert all("values" in str(fault) for fault in saved.faults())


def rebinds(y: npt.NDArray[Any]) -> None:
    y = np.ones_like(y)  # instead of y[:] = 1


@pytest.mark.slow
@pytest.mark.parametrize("reference", [rebinds, lambda y: {}, lambda y: {"y": y.copy()}])
def test_a_reference_without_values_raises(reference: Reference) -> None:
    with pytest.raises(CannotVerifyError, match="nothing was compared"):
        verify(case_of("int", "1", reference), QUICK)


@pytest.mark.slow
def test_a_reference_that_leaves_all_open_is_a_suspicion() -> None:
    verdict = verify(case_of("int", "1", lambda y: {"y": None}), QUICK)
    assert verdict.outcome == "verified"
    assert "no value was compared: the reference leaves each array open" in verdict.suspicions


def test_an_infinity_is_open_where_the_last_bits_of_the_inputs_make_it_finite() -> None:
    def reference(
        x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]
    ) -> dict[str, npt.NDArray[np.float64]]:
        with np.errstate(divide="ignore"):
            return {"out": np.where(np.isinf(x), x, 1 / (x - y))}

    array = st.arrays(np.float64, 4, "special")
    case = KernelCase(
        "",
        arguments={"x": array, "y": array, "out": st.unwritten(np.float64, 4)},
        launch=LaunchConfig(1, 4),
        reference=reference,
    )
    x, y = np.array([1.1, np.inf, -np.inf, 3.0]), np.array([1.1, 1.0, 2.0, np.nan])
    out = DrawnArray(np.zeros(4), is_written=False)
    example = Example({"x": DrawnArray(x), "y": DrawnArray(y), "out": out}, LaunchConfig(1, 4))
    allowed = allowed_differences(case, example, case.expected(example), is_wide=False)["out"]
    assert list(np.isinf(allowed)) == [True, False, False, False]


@pytest.mark.slow
def test_a_wide_reference_issues_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        case = KernelCase(
            'extern "C" __global__ void k(float* y) { *y = __int_as_float(0x7f800000); }',
            arguments={"y": st.unwritten(np.float32, 1)},
            launch=st.launch_configs(threads=1),
            reference=lambda: {"y": np.full(1, 1e300)},
        )
        assert outcome(case) == "verified"


def test_tolerances_and_sizes_of_wrong_types_and_names_raise() -> None:
    for make in (
        lambda: Tolerance(absolute="1"),  # type: ignore[arg-type]
        lambda: Tolerance(ulps="1"),  # type: ignore[arg-type]
        lambda: st.sizes("1", 2),  # type: ignore[arg-type]
        lambda: st.sizes(1, 2.5),  # type: ignore[arg-type]
        lambda: case_with(tolerance=1e-3),
        lambda: case_with(tolerance={"x": 1e-3}),
    ):
        with pytest.raises(ArgumentTypeError):
            make()
    with pytest.raises(ArgumentValueError, match="tolerance is of 'z', which is no argument"):
        case_with(tolerance={"z": Tolerance(ulps=1)})


def case_with(**changes: Any) -> KernelCase:
    return KernelCase(
        "",
        arguments={"x": st.arrays(np.float32, 1)},
        launch=st.launch_configs(threads=1),
        reference=lambda: None,
        **changes,
    )
