"""The cases that have a kernel of their own: products, copies of tensors, ends of threads."""

from __future__ import annotations

from functools import cache

from . import group_products, tensor_copies, warp_products
from .case import Case
from .control import control_cases


@cache  # one set for the process
def kernel_cases() -> dict[str, Case]:
    """Return all of them, by name."""
    cases = [
        *map(group_products.group_products_case, range(group_products.CASES)),
        *map(warp_products.warp_products_case, range(warp_products.SHAPES)),
        *map(tensor_copies.tensor_copies_case, range(tensor_copies.DIMENSIONS)),
        tensor_copies.replaced_maps_case(),
        *control_cases(),
    ]
    return {case.name: case for case in cases}
