"""One launch: the driver's checks of it, and its parameters.

CUDA Driver API, "Execution Control". The codes were measured with driver 580 on an H100.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..driver._api import CUdevice_attribute, CUresult
from .occupancy import blocks_per_sm, registers_of
from .refusal import Refusal, invalid_value
from .shape import NO_CLUSTER, Shape

if TYPE_CHECKING:
    from .emulated_device import DeviceState
    from .modules import Function

_NON_PORTABLE_CLUSTER: Final = 16
_APPROVED_SHAPES: Final = 64
_EXTRA_END, _EXTRA_POINTER, _EXTRA_SIZE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A kernel with the shape of its launch and its parameters."""

    function: Function
    shape: Shape
    parameters: bytes


class ShownParameters:
    """The parameters of a kernel where a caller finds them, as `kernelParams` of a launch.

    Attributes:
        launch: what they are of.
        pointers: one to each parameter.
    """

    def __init__(self, launch: KernelCall) -> None:
        self.launch: KernelCall = launch
        self._block = ctypes.create_string_buffer(launch.parameters, len(launch.parameters) + 1)
        start = ctypes.addressof(self._block)
        places = [start + each.offset for each in launch.function.signature.params]
        self.pointers: ctypes.Array[ctypes.c_size_t] = (ctypes.c_size_t * (len(places) + 1))(
            *places
        )


def check(function: Function, shape: Shape, device: DeviceState) -> None:
    """Refuse a launch that the driver would refuse.

    Raises:
        Refusal: with the driver's code, and what is wrong.
    """
    if shape in function.approved:
        return
    _check_extents(function, shape, device)
    _check_shared(function, shape)
    if shape.cluster != NO_CLUSTER or any(function.cluster):
        _check_cluster(function, shape, device)
    if shape.cooperative:
        _check_cooperative(function, shape, device)
    if len(function.approved) >= _APPROVED_SHAPES:
        function.approved.clear()
    function.approved.add(shape)


def _check_extents(function: Function, shape: Shape, device: DeviceState) -> None:
    for what, extents, name in (
        ("grid", shape.grid, "MAX_GRID_DIM"),
        ("block", shape.block, "MAX_BLOCK_DIM"),
    ):
        most = tuple(
            device.attributes[int(getattr(CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}_{a}"))]
            for a in "XYZ"
        )
        if any(not 1 <= extent <= limit for extent, limit in zip(extents, most, strict=True)):
            raise invalid_value(
                f"kernel {function.shown}: the {what} {extents} is not within 1 and {most}"
            )
    threads = shape.block[0] * shape.block[1] * shape.block[2]
    limit = min(
        device.model.max_threads_per_block,
        function.signature.max_threads or device.model.max_threads_per_block,
    )
    if threads > limit:
        raise invalid_value(
            f"kernel {function.shown}: a block of {threads} threads is above the limit of {limit}"
        )
    required = function.signature.required_block
    if required is not None and shape.block != required:
        raise invalid_value(
            f"kernel {function.shown} requires blocks of {required}, not {shape.block}"
        )


def _check_shared(function: Function, shape: Shape) -> None:
    if shape.shared_bytes > function.max_dynamic:
        raise invalid_value(
            f"kernel {function.shown}: {shape.shared_bytes} bytes of dynamic shared memory are "
            f"above the limit of {function.max_dynamic}; raise it with "
            "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
        )


def _check_cluster(function: Function, shape: Shape, device: DeviceState) -> None:
    cluster = shape.cluster
    if cluster == NO_CLUSTER and any(function.cluster):
        cluster = function.cluster
    portable = device.profile.architecture.max_cluster
    if not portable:
        raise Refusal(
            CUresult.CUDA_ERROR_NOT_SUPPORTED,
            f"devices of compute capability {device.profile.compute_capability} have no clusters",
        )
    most = _NON_PORTABLE_CLUSTER if function.non_portable else portable
    blocks = cluster[0] * cluster[1] * cluster[2]
    if (
        not 1 <= blocks <= most
        or (any(function.cluster) and cluster != function.cluster)
        or any(extent % part for extent, part in zip(shape.grid, cluster, strict=True))
    ):
        raise Refusal(
            CUresult.CUDA_ERROR_INVALID_CLUSTER_SIZE,
            f"kernel {function.shown}: clusters of {cluster} do not divide the grid {shape.grid} "
            f"or are not of 1 to {most} blocks"
            + (f"; the kernel requires {function.cluster}" if any(function.cluster) else ""),
        )


def _check_cooperative(function: Function, shape: Shape, device: DeviceState) -> None:
    threads = shape.block[0] * shape.block[1] * shape.block[2]
    resident = function.module.context.sm_count * blocks_per_sm(
        device.attributes,
        threads,
        registers_of(function, device),
        function.signature.shared_bytes + shape.shared_bytes,
    )
    blocks = shape.grid[0] * shape.grid[1] * shape.grid[2]
    if blocks > resident:
        raise Refusal(
            CUresult.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            f"kernel {function.shown}: a cooperative grid of {blocks} blocks, of which only "
            f"{resident} fit on the device at once",
        )


def read_parameters(function: Function, kernel_params: int, extra: int) -> bytes:
    """The parameter block, copied from where the caller has it.

    `kernel_params` is the address of an array of pointers, one a parameter; `extra` that of a list
    that names one packed buffer (CU_LAUNCH_PARAM_BUFFER_POINTER).

    Raises:
        Refusal: CUDA_ERROR_INVALID_VALUE, if parameters are missing.
    """
    signature = function.signature
    if not signature.params:
        return b""
    if extra:
        return _packed(function, extra)
    count = len(signature.params)
    if not kernel_params:
        raise invalid_value(f"kernel {function.shown} takes {count} parameters, none were given")
    pointers = (ctypes.c_size_t * count).from_address(kernel_params)[:]
    block = bytearray(signature.nbytes)
    for param, pointer in zip(signature.params, pointers, strict=True):
        if not pointer:
            raise invalid_value(
                f"kernel {function.shown}: the pointer to parameter {param.name} is null"
            )
        block[param.offset : param.offset + param.nbytes] = ctypes.string_at(pointer, param.nbytes)
    return bytes(block)


def _packed(function: Function, extra: int) -> bytes:
    """The buffer that a list of `extra` names."""
    word = ctypes.sizeof(ctypes.c_size_t)
    pointer = size = 0
    while (key := ctypes.c_size_t.from_address(extra).value) != _EXTRA_END:
        value = ctypes.c_size_t.from_address(extra + word).value
        if key == _EXTRA_POINTER:
            pointer = value
        elif key == _EXTRA_SIZE:
            size = ctypes.c_size_t.from_address(value).value
        else:
            raise invalid_value(f"`extra` has an unknown key {key}")
        extra += 2 * word
    if not pointer or size != function.signature.nbytes:
        raise Refusal(
            CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,  # as the driver does for a wrong size
            f"kernel {function.shown} takes {function.signature.nbytes} bytes of parameters, "
            f"`extra` gives {size if pointer else 0}",
        )
    return ctypes.string_at(pointer, function.signature.nbytes)
