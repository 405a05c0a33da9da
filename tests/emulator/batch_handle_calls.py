"""A call of every driver function that copies with attributes, or moves managed memory."""

from __future__ import annotations

from typing import Final

from cudadrv.driver._api import (
    CUdeviceptr,
    CUmemcpyAttributes,
    CUmemLocation,
    CUmemLocationType,
    driver,
)

from .handles import Call, a_stream, elsewhere, managed, memory


def on_host() -> CUmemLocation:
    location = CUmemLocation()
    location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST
    return location


def in_stream() -> CUmemcpyAttributes:
    """Attributes of a copy."""
    found = CUmemcpyAttributes()
    found.srcAccessOrder = driver.CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    return found


def a_box(address: CUdeviceptr) -> driver.CUDA_MEMCPY3D_BATCH_OP:
    """A copy of a byte of memory to itself."""
    found = driver.CUDA_MEMCPY3D_BATCH_OP()
    found.extent.width = found.extent.height = found.extent.depth = 1
    found.srcAccessOrder = driver.CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    for side in (found.src, found.dst):
        side.type = driver.CUmemcpy3DOperandType.CU_MEMCPY_OPERAND_TYPE_POINTER
        side.op.ptr.ptr = address
    return found


BATCH_CALLS: Final[dict[tuple[str, str], tuple[str, Call]]] = {
    ("cuMemRangeGetAttribute", "dev_ptr"): (
        "managed memory", lambda api, h: api.cuMemRangeGetAttribute(4, 1, h, 8)),
    ("cuMemcpyWithAttributesAsync", "h_stream"): (
        "stream", lambda api, h: api.cuMemcpyWithAttributesAsync(
            memory(api), memory(api), 8, in_stream(), h)),
    ("cuMemcpyWithAttributesAsync", "dst"): (
        "memory", lambda api, h: api.cuMemcpyWithAttributesAsync(
            h, elsewhere(api), 8, in_stream(), a_stream(api))),
    ("cuMemcpyWithAttributesAsync", "src"): (
        "memory", lambda api, h: api.cuMemcpyWithAttributesAsync(
            elsewhere(api), h, 8, in_stream(), a_stream(api))),
    ("cuMemcpy3DBatchAsync", "h_stream"): (
        "stream", lambda api, h: api.cuMemcpy3DBatchAsync(1, [a_box(memory(api))], 0, h)),
    ("cuMemcpyBatchAsync", "h_stream"): (
        "stream", lambda api, h: api.cuMemcpyBatchAsync(
            [memory(api)], [memory(api)], [8], 1, [in_stream()], [0], 1, h)),
    ("cuMemcpyBatchAsync", "dsts"): (
        "memory", lambda api, h: api.cuMemcpyBatchAsync(
            [h], [elsewhere(api)], [8], 1, [in_stream()], [0], 1, a_stream(api))),
    ("cuMemPrefetchBatchAsync", "h_stream"): (
        "stream", lambda api, h: api.cuMemPrefetchBatchAsync(
            [managed(api)], [8], 1, [on_host()], [0], 1, 0, h)),
    ("cuMemDiscardAndPrefetchBatchAsync", "h_stream"): (
        "stream", lambda api, h: api.cuMemDiscardAndPrefetchBatchAsync(
            [managed(api)], [8], 1, [on_host()], [0], 1, 0, h)),
    ("cuMemDiscardBatchAsync", "h_stream"): (
        "stream", lambda api, h: api.cuMemDiscardBatchAsync([managed(api)], [8], 1, 0, h)),
    ("cuMemDiscardBatchAsync", "dptrs"): (
        "managed memory", lambda api, h: api.cuMemDiscardBatchAsync(
            [h], [8], 1, 0, a_stream(api))),
}  # fmt: skip
