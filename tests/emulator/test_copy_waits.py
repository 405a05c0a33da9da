"""Which asynchronous copies return once they are complete, under "late".

The table is that of an H200 with driver 580, where a host function ran before the copy. The CUDA
Driver API ("API synchronization behavior") leaves managed memory open.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from cudadrv.driver._api import (
    CUDA_MEMCPY3D,
    CUDA_MEMCPY3D_BATCH_OP,
    CUdeviceptr,
    CUmemcpyAttributes,
    CUmemcpySrcAccessOrder,
    CUmemorytype,
    driver,
)

from .calls import ok
from .machine import Machine

NBYTES: Final = 64
GLOBAL: Final = 1  # CU_MEM_ATTACH_GLOBAL
HOST, DEVICE, UNIFIED = (
    CUmemorytype.CU_MEMORYTYPE_HOST,
    CUmemorytype.CU_MEMORYTYPE_DEVICE,
    CUmemorytype.CU_MEMORYTYPE_UNIFIED,
)
WAITS: Final = {
    "cuMemcpyAsync": {
        "managed": "",
        "pinned": "pinned pageable",
        "device": "",
        "pageable": "managed pinned device pageable",
    },
    "cuMemcpyHtoDAsync": {
        "managed": "managed",
        "pinned": "managed pinned pageable",
        "device": "managed",
    },
    "cuMemcpyDtoHAsync": {
        "managed": "managed pinned device",
        "pinned": "pinned",
        "device": "",
        "pageable": "managed pinned device",
    },
    "cuMemcpyDtoDAsync": {"managed": "", "pinned": "pinned", "device": ""},
}
"""The sources of which the host waits, for each function and each kind of its target."""
REJECTS: Final = {"cuMemcpyDtoHAsync": "pageable", "cuMemcpyDtoDAsync": "pageable"}
"""The source that a function does not take."""


BOXES: Final = {
    "cuMemcpyAsync": (UNIFIED, UNIFIED),
    "cuMemcpyHtoDAsync": (DEVICE, HOST),
    "cuMemcpyDtoHAsync": (HOST, DEVICE),
    "cuMemcpyDtoDAsync": (DEVICE, DEVICE),
}
"""The memory types of target and source of the box that waits as the function does."""


def _addresses(machine: Machine, arrays: list[object]) -> dict[str, int]:

    ordinary = np.zeros(NBYTES, np.uint8)
    arrays.append(ordinary)
    return {
        "managed": int(ok(machine.api.cuMemAllocManaged(NBYTES, GLOBAL))),
        "pinned": machine.pinned(NBYTES),
        "device": int(machine.memory(NBYTES)),
        "pageable": int(ordinary.ctypes.data),
    }


def _copy(machine: Machine, name: str, target: int, source: int) -> None:
    first = target if name == "cuMemcpyDtoHAsync" else CUdeviceptr(target)
    second = source if name == "cuMemcpyHtoDAsync" else CUdeviceptr(source)
    ok(getattr(machine.api, name)(first, second, NBYTES, machine.a))


def _copy_box(machine: Machine, name: str, target: int, source: int) -> None:
    box = CUDA_MEMCPY3D()
    box.WidthInBytes, box.Height, box.Depth = NBYTES, 1, 1
    for side, kind, address in zip(("dst", "src"), BOXES[name], (target, source), strict=True):
        setattr(box, f"{side}MemoryType", kind)
        if kind == HOST:
            setattr(box, f"{side}Host", address)
        else:
            setattr(box, f"{side}Device", CUdeviceptr(address))
    ok(machine.api.cuMemcpy3DAsync(box, machine.a))


def _waits(machine: Machine, copy: Callable[[], None]) -> bool:
    """Return whether the kernel before a copy has run when the copy's call returns."""
    machine.fill(machine.memory(), 1, machine.a)
    before = len(machine.api.executed)
    copy()
    has_waited = len(machine.api.executed) > before
    ok(machine.api.cuStreamSynchronize(machine.a))
    return has_waited


def test_a_copy_of_each_two_kinds_of_memory_waits_as_on_a_gpu() -> None:
    machine = Machine()
    arrays: list[object] = []
    problems = []
    for way in (_copy, _copy_box):
        for name, targets in WAITS.items():
            for target, expected in targets.items():
                to, sources = _addresses(machine, arrays), _addresses(machine, arrays)
                sources.pop(REJECTS.get(name, ""), None)
                found = {
                    kind
                    for kind, address in sources.items()
                    if _waits(machine, partial(way, machine, name, to[target], address))
                }
                if found != set(expected.split()):
                    problems.append(f"{way.__name__}, {name} to {target}: waits for {found}")
    assert not problems, "\n".join(problems)


IN_STREAM, DURING_CALL, ANY_TIME = 1, 2, 3  # CUmemcpySrcAccessOrder
BATCH_WAITS: Final = {
    IN_STREAM: {"managed": "pageable", "device": "pageable"},
    DURING_CALL: {
        "managed": "managed pinned device",
        "pinned": "managed pinned device",
        "device": "managed pinned device",
        "pageable": "managed device",
    },
    ANY_TIME: {},
}
"""The sources of which the host waits, for each access order and each kind of target of a batch."""


def _batch(machine: Machine, order: int, target: int, source: int) -> None:
    attributes = CUmemcpyAttributes()
    attributes.srcAccessOrder = CUmemcpySrcAccessOrder(order)
    targets, sources = [CUdeviceptr(target)], [CUdeviceptr(source)]
    ok(
        machine.api.cuMemcpyBatchAsync(
            targets, sources, [NBYTES], 1, [attributes], [0], 1, machine.a
        )
    )


def _batch_of_boxes(machine: Machine, order: int, target: int, source: int) -> None:
    box = CUDA_MEMCPY3D_BATCH_OP()
    for side, address in ((box.src, source), (box.dst, target)):
        side.type = driver.CUmemcpy3DOperandType.CU_MEMCPY_OPERAND_TYPE_POINTER
        side.op.ptr.ptr = CUdeviceptr(address)
    box.extent.width, box.extent.height, box.extent.depth = NBYTES, 1, 1
    box.srcAccessOrder = CUmemcpySrcAccessOrder(order)
    ok(machine.api.cuMemcpy3DBatchAsync(1, [box], 0, machine.a))


def test_a_batch_of_each_two_kinds_of_memory_waits_as_on_a_gpu() -> None:
    machine = Machine()
    arrays: list[object] = []
    problems = []
    for way in (_batch, _batch_of_boxes):
        for order, waits in BATCH_WAITS.items():
            for target in ("managed", "pinned", "device", "pageable"):
                to, sources = _addresses(machine, arrays), _addresses(machine, arrays)
                found = {
                    kind
                    for kind, address in sources.items()
                    if _waits(machine, partial(way, machine, order, to[target], address))
                }
                if found != set(waits.get(target, "").split()):
                    problems.append(f"{way.__name__}, order {order} to {target}: waits for {found}")
    assert not problems, "\n".join(problems)
