"""What a pointer is. CUDA Driver API: "Unified Addressing"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...driver._api import (
    CUcontext,
    CUdeviceptr,
    CUmemoryPool,
    CUmemorytype,
    CUpointer_attribute,
    CUresult,
)
from ..call_rules import CallRules
from ..device_state import DeviceState, Owner
from ..host_memory import HostPiece
from ..refusal import SUCCESS, invalid_value
from .call import call

# The attributes that cuPointerGetAttributes gives, for what is no memory of the driver's.
_NULLS: Final[dict[int, object]] = {
    int(getattr(CUpointer_attribute, f"CU_POINTER_ATTRIBUTE_{name}")): null
    for name, null in {
        "CONTEXT": CUcontext(0),
        "MEMORY_TYPE": 0,
        "DEVICE_POINTER": CUdeviceptr(0),
        "HOST_POINTER": 0,
        "SYNC_MEMOPS": False,
        "BUFFER_ID": 0,
        "IS_MANAGED": False,
        "DEVICE_ORDINAL": 0,
        "IS_LEGACY_CUDA_IPC_CAPABLE": False,
        "RANGE_START_ADDR": CUdeviceptr(0),
        "RANGE_SIZE": 0,
        "MAPPED": False,
        "ALLOWED_HANDLE_TYPES": 0,
        "IS_GPU_DIRECT_RDMA_CAPABLE": False,
        "MEMPOOL_HANDLE": CUmemoryPool(0),
    }.items()
}


class PointerCalls(CallRules):
    """What the driver says of an address."""

    @call(1)
    def cuPointerGetAttributes(
        self, num_attributes: int, attributes: Sequence[CUpointer_attribute], ptr: int, /
    ) -> tuple[CUresult, list[object]]:
        """What the memory at an address is, in the Python types of cuda.bindings.

        By the manual it does not fail for what is no memory of the driver's: nulls are given then,
        and for what the memory has no value of.
        """
        if not 0 < num_attributes <= len(attributes):
            raise invalid_value(f"{num_attributes} of {len(attributes)} attributes were asked for")
        address = int(ptr)
        values = self._pointer_attributes(address) or _NULLS
        asked = [int(attribute) for attribute in attributes[:num_attributes]]
        for number in asked:
            if number not in _NULLS:
                raise invalid_value(f"cuPointerGetAttributes knows no pointer attribute {number}")
        return SUCCESS, [values[number] for number in asked]

    def _pointer_attributes(self, address: int) -> dict[int, object] | None:
        host = self._host.find(address)
        if host is not None:
            return _of_host_memory(host, address)
        device = self._device_of(address)
        return None if device is None else self._of_device_memory(device, address)

    def _of_device_memory(self, device: DeviceState, address: int) -> dict[int, object] | None:
        with device.lock:
            found = device.memory.find(address)
            if found is None:
                return None
            piece = device.pieces.get(found.address)
        if piece is not None and piece.graph is not None and not piece.graph.live:
            return None
        pooled = piece is not None and piece.owner is Owner.POOL
        return {
            # Of pool memory driver 580 says ordinal 0, wherever it lies.
            **_common_attributes(
                address, found.address, found.nbytes, 0 if pooled else device.ordinal
            ),
            int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_CONTEXT): CUcontext(
                piece.context if piece is not None else self._owner_of_variable(found.address)
            ),
            int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE): int(
                CUmemorytype.CU_MEMORYTYPE_DEVICE
            ),
            int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_BUFFER_ID): (
                0 if piece is None else piece.number
            ),
            int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE): (
                piece is not None and piece.owner is Owner.PLAIN
            ),
            int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE): CUmemoryPool(
                piece.pool.handle if piece is not None and piece.pool is not None else 0
            ),
        }

    def _owner_of_variable(self, address: int) -> int:
        """The context of the module whose variable starts at an address."""
        for module in list(self._modules.values()):
            if module.holds(address):
                return module.context.handle
        return 0


def _common_attributes(address: int, start: int, nbytes: int, ordinal: int) -> dict[int, object]:
    return {
        **_NULLS,
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_POINTER): CUdeviceptr(address),
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL): ordinal,
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR): CUdeviceptr(start),
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_SIZE): nbytes,
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_MAPPED): True,
    }


def _of_host_memory(piece: HostPiece, address: int) -> dict[int, object]:
    kind = CUmemorytype.CU_MEMORYTYPE_DEVICE if piece.managed else CUmemorytype.CU_MEMORYTYPE_HOST
    return {
        **_common_attributes(address, piece.address, piece.nbytes, piece.ordinal),
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_CONTEXT): CUcontext(piece.context),
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE): int(kind),
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_HOST_POINTER): address,
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_BUFFER_ID): piece.number,
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_IS_MANAGED): piece.managed,
        int(CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE): CUmemoryPool(
            0 if piece.pool is None else piece.pool.handle
        ),
    }
