"""The emulator's counts of the kernels, against what Nsight Compute measured on GPUs."""

from __future__ import annotations

import pytest

import ptx
from campaigns.counted.comparison import Compared, compared, counted
from campaigns.counted.record import read_records


@pytest.fixture(scope="module")
def numbers() -> list[Compared]:
    measured = read_records()
    if not measured:
        pytest.skip(f"the code of NVRTC {ptx.nvrtc_version()} was not measured")
    return list(compared(counted(set(measured)), measured))


@pytest.mark.slow
def test_counts_are_those_of_nsight_compute_or_differ_for_a_known_reason(
    numbers: list[Compared],
) -> None:
    different = [each for each in numbers if each.quantity.is_same and each.own != each.measured]
    assert [f"{each.kernel}: {each}" for each in different if not each.reason] == []
    assert len(different) < 0.02 * len(numbers)
    assert len({each.kernel for each in numbers}) > 160


@pytest.mark.slow
def test_sectors_and_conflicts_differ_only_where_the_code_of_the_gpu_is_another(
    numbers: list[Compared],
) -> None:
    names = (
        "global load sectors", "global store sectors", "global atomic turns",
        "shared load wavefronts", "shared load conflicts", "shared store wavefronts",
        "shared store conflicts", "shared atomic turns",
    )  # fmt: skip
    different = {
        each.kernel for each in numbers if each.quantity.name in names and each.own != each.measured
    }
    assert different == {
        "atomic_shared_long", "atomic_vector_of_block", "branch_trips_by_lane", "histogram",
        "matmul", "shared_copies", "shared_copies_of_four",
    }  # fmt: skip
