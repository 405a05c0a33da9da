"""The contract of tensor memory, on an emulated device that has it, in each order."""

from __future__ import annotations

import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.emulator.checks import CheckName
from cudadrv.emulator.timeline.schedule import OrderName
from cudadrv.errors import CudaError
from tests.contract.tensor_memory_product import WAIT_FOR_ALL, require_exact_product
from tests.contract.triton_tensor_memory import (
    require_exact_chain,
    require_exact_copied_factors,
    require_exact_scaled_product,
)
from tests.short_cases import few

DEVICE = emulator.EmulatedDevice(compute_capability=(10, 0))


def require_exact(without: str = "", launches: int = 3) -> None:
    context = cudadrv.cuda_context_for(0)
    require_exact_product(
        context, context.default_stream, "compute_100a", without=without, launches=launches
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "seed"),
    few([("late", None), ("immediate", None), *(("random", k) for k in range(4))], 1),
)
def test_a_product_in_tensor_memory_has_the_bits_of_exact_arithmetic(
    order: OrderName, seed: int | None
) -> None:
    with emulator.session(devices=[DEVICE], order=order, seed=seed):
        require_exact()


@pytest.mark.slow
@pytest.mark.parametrize("check", ["race", "init", "sync", "bounds"])
def test_no_check_finds_a_fault_in_it(check: CheckName) -> None:
    with emulator.session(devices=[DEVICE], order="immediate", check=[check]):
        require_exact(launches=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "seed"), [("immediate", None), ("late", None), *(("random", k) for k in range(4))]
)
def test_kernels_of_triton_in_tensor_memory_are_exact(order: OrderName, seed: int | None) -> None:
    with emulator.session(devices=[DEVICE], order=order, seed=seed):
        context = cudadrv.cuda_context_for(0)
        require_exact_chain(context, context.default_stream)
        require_exact_scaled_product(context, context.default_stream)
        require_exact_copied_factors(context, context.default_stream)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "seed"), [("immediate", None), ("late", None), ("random", 1), ("random", 2)]
)
def test_the_race_check_finds_nothing_in_kernels_of_triton(
    order: OrderName, seed: int | None
) -> None:
    with emulator.session(devices=[DEVICE], order=order, seed=seed, check=["race"]) as machine:
        context = cudadrv.cuda_context_for(0)
        require_exact_chain(context, context.default_stream)
        require_exact_scaled_product(context, context.default_stream)
        require_exact_copied_factors(context, context.default_stream)
        context.synchronize()
    assert machine.findings == ()


@pytest.mark.slow
def test_a_product_that_is_not_waited_for_is_found_where_it_is_late() -> None:
    with (
        emulator.session(devices=[DEVICE], order="late"),
        pytest.raises(CudaError, match=r"not allocated, or given back"),
    ):
        require_exact(WAIT_FOR_ALL)
