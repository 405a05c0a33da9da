"""Tensor memory, which GPUs of compute capability 10.x have."""

from __future__ import annotations

import pytest

import cudadrv

from .tensor_memory_product import require_exact_product
from .triton_tensor_memory import (
    require_exact_chain,
    require_exact_copied_factors,
    require_exact_scaled_product,
)


def test_a_product_in_tensor_memory_has_the_bits_of_exact_arithmetic(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    major, minor = context.device.compute_capability
    if major != 10:
        pytest.skip("needs a device with tensor memory (compute capability 10.x)")
    require_exact_product(context, stream, f"compute_{major}{minor}a")


def test_kernels_of_triton_in_tensor_memory_are_exact(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    if context.device.compute_capability != (10, 0):
        pytest.skip("needs a device of compute capability 10.0 and no other")
    require_exact_chain(context, stream)
    require_exact_scaled_product(context, stream)
    require_exact_copied_factors(context, stream)
