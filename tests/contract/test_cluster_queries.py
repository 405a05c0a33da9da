"""Which clusters a driver counts, and for which launches the queries fail.

The rule is that of 416 queries of an H200 with driver 580, each of which `code_of` gives.
"""

from __future__ import annotations

import itertools
from typing import Final

import pytest

import cudadrv
from cudadrv.driver._api import (
    CUfunction,
    CUlaunchAttribute,
    CUlaunchAttributeID,
    CUlaunchConfig,
)

from .conftest import all_functions

HEAD: Final = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()"
FORMS: Final = {"plain": "", "required": ".reqnctapercluster 2", "explicit": ".explicitcluster"}
INVALID: Final = 1
WRONG_CLUSTER: Final = 912
LARGEST: Final = 8  # without the attribute for larger ones
MOST_SHARED: Final = 49152


def config_of(threads: int, blocks: int, shared_bytes: int, cluster: int | None) -> CUlaunchConfig:
    config = CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = blocks, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
    config.sharedMemBytes = shared_bytes
    if cluster is not None:
        attribute = CUlaunchAttribute()
        attribute.id = CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        value = attribute.value  # keeps the union of cuda-bindings alive
        value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = cluster, 1, 1
        attribute.value = value
        config.attrs = [attribute]
        config.numAttrs = 1
    return config


def code_of(form: str, threads: int, blocks: int, cluster: int | None) -> int:
    """The driver's code, of the first fault in its order."""
    if cluster == 0:
        return WRONG_CLUSTER
    if not blocks:
        return INVALID
    chosen = 2 if form == "required" and cluster is None else cluster
    if form == "required" and chosen != 2:
        return WRONG_CLUSTER
    if chosen is None:
        return WRONG_CLUSTER if form == "explicit" else 0 if threads else INVALID
    if blocks % chosen or chosen > LARGEST:
        return WRONG_CLUSTER
    return 0 if threads else INVALID


@pytest.mark.parametrize("form", FORMS)
def test_clusters_are_counted_or_rejected_as_by_a_gpu(context: cudadrv.Context, form: str) -> None:
    if context.device.compute_capability < (9, 0):
        pytest.skip("needs clusters (compute capability 9.0)")
    module = context.load_module(f"{HEAD} {FORMS[form]} {{ ret; }}")
    function = CUfunction(int(module.kernel("k").handle))
    api, wrong = all_functions(), []
    assert api.cuCtxSetCurrent(context.handle) == (0,)
    for threads, blocks, shared_bytes, cluster in itertools.product(
        (0, 96, 1025), (0, 1, 8, 9), (0, MOST_SHARED + 1), (None, 0, 1, 2, 3, 8, 9)
    ):
        config = config_of(threads, blocks, shared_bytes, cluster)
        code, count = api.cuOccupancyMaxActiveClusters(function, config)
        size_code, size = api.cuOccupancyMaxPotentialClusterSize(function, config)
        expected = code_of(form, threads, blocks, cluster)
        fits = threads <= 1024 and shared_bytes <= MOST_SHARED
        is_counted = fits and (cluster is not None or form == "required")
        right = (int(code), int(size_code)) == (expected, expected) and (
            expected or ((count > 0) == is_counted and size == (LARGEST if fits else 0))
        )
        if not right:
            wrong.append((threads, blocks, shared_bytes, cluster, code, count, size_code, size))
    assert not wrong
