"""Tensor memory, which GPUs of compute capability 10.x have."""

from __future__ import annotations

import pytest

import cudadrv

from .tensor_memory_product import require_exact_product


def test_a_product_in_tensor_memory_has_the_bits_of_exact_arithmetic(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    major, minor = context.device.compute_capability
    if major != 10:
        pytest.skip("needs a device with tensor memory (compute capability 10.x)")
    require_exact_product(context, stream, f"compute_{major}{minor}a")
