"""A kernel that copies elements with any strides, where the driver's copies of boxes do not do it.

It is written in PTX for every device that the driver knows, one a width of elements and a number of
axes; so nothing is compiled by NVRTC. Sources: PTX ISA; CUDA Driver API, cuLaunchKernelEx.
"""

from __future__ import annotations

import ctypes
import math
import struct
from functools import cache
from typing import Final, NamedTuple

from ...driver._api import CUfunction, CUlaunchConfig
from ...driver.context import BaseContext
from ...driver.context_handle import ContextHandle, ModuleHandle
from ...driver.driver_selection import failure
from ...driver.stream_handle import StreamHandle
from .plan import Axis, Plan, offsets_along

# The emulator's check for unwritten reads knows it (`ptx.emulate.check.unwritten_reads`).
_NAME: Final = "cudadrv_copy_elements"
_THREADS: Final = 256
_MOST_ELEMENTS: Final = 2**31 - 1  # a launch counts them in 32 bits
_MOST_AXES: Final = 6
_WIDTHS: Final = (16, 8, 4, 2, 1)
_MOVE: Final = {
    1: ("b16", "u8", "%v0"),
    2: ("b16", "b16", "%v0"),
    4: ("b32", "b32", "%v0"),
    8: ("b64", "b64", "%v0"),
    16: ("b64", "v2.b64", "{%v0, %v1}"),
}
_TEXT: Final = """
.version 6.0
.target sm_50
.address_size 64

.visible .entry {name}(
    .param .u64 to, .param .u64 of, .param .u32 count{parameters}
)
{{
    .reg .pred %done;
    .reg .b32 %block, %threads, %thread, %rest, %count, %extent, %next, %whole, %place;
    .reg .b64 %to, %of, %step, %at;
    .reg .{register} %v<2>;

    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %rest, %block, %threads, %thread;
    ld.param.u32 %count, [count];
    setp.ge.u32 %done, %rest, %count;
    @%done bra END;
    ld.param.u64 %to, [to];
    ld.param.u64 %of, [of];
{axes}
    ld.global.{type} {value}, [%of];
    st.global.{type} [%to], {value};
END:
    ret;
}}
"""
_AXIS: Final = """
    ld.param.u32 %extent, [extent{n}];
    div.u32 %next, %rest, %extent;
    mul.lo.u32 %whole, %next, %extent;
    sub.u32 %place, %rest, %whole;
    mov.u32 %rest, %next;
    cvt.u64.u32 %at, %place;
    ld.param.u64 %step, [to{n}];
    mad.lo.s64 %to, %at, %step, %to;
    ld.param.u64 %step, [of{n}];
    mad.lo.s64 %of, %at, %step, %of;
"""


class _Code(NamedTuple):
    """A kernel, and the module that has it."""

    box: ModuleHandle
    function: CUfunction


class _Codes:
    """The kernels of a context, by the width of elements and the number of axes."""

    def __init__(self) -> None:
        self.made: dict[tuple[int, int], _Code] = {}


def copy_elements(context: BaseContext, stream: StreamHandle, plan: Plan) -> None:
    """Queue a copy of runs of any strides.

    Raises:
        CudaError: the driver refused a launch, or the kernel.
    """
    width = next(width for width in _WIDTHS if _fits(plan, width))
    axes = plan.axes
    if plan.nbytes > width:
        axes = (*axes, Axis(plan.nbytes // width, width, width))
    # Outer axes are too many for one launch, or count too far.
    first = max(len(axes) - _MOST_AXES, 0)
    while math.prod(axis.extent for axis in axes[first:]) > _MOST_ELEMENTS:
        first += 1
    code = _code(context, stream.context, width, len(axes) - first)
    if stream.capture is not None:
        stream.capture.keeps.append(code.box)
    for to, of in offsets_along(axes[:first]):
        _launch(stream, code, plan.to + to, plan.of + of, axes[first:])


def _fits(plan: Plan, width: int) -> bool:
    """Whether all addresses and sizes are multiples of a width."""
    steps = (step for axis in plan.axes for step in axis[1:])
    return not any(number % width for number in (plan.nbytes, plan.to, plan.of, *steps))


def _launch(stream: StreamHandle, code: _Code, to: int, of: int, axes: tuple[Axis, ...]) -> None:
    count = math.prod(axis.extent for axis in axes)
    # A place of eight bytes for each parameter, and behind them their addresses.
    values = [struct.pack("=QQ", to, of), struct.pack("=Q", count)]
    values += [struct.pack("=Qqq", *axis) for axis in axes]
    packed = b"".join(values)
    block = ctypes.create_string_buffer(packed, 2 * len(packed))
    base = ctypes.addressof(block)
    places = (base + offset for offset in range(0, len(packed), 8))
    struct.pack_into(f"={len(packed) // 8}Q", block, len(packed), *places)
    config = CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = -(-count // _THREADS), 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = _THREADS, 1, 1
    config.sharedMemBytes, config.hStream = 0, stream.raw
    (result,) = stream.api.cuLaunchKernelEx(config, code.function, base + len(packed), 0)
    if result:
        doing = f"copying {count} elements of any strides"
        raise failure(stream.api, result, "cuLaunchKernelEx", doing)


def _code(context: BaseContext, box: ContextHandle, width: int, axes: int) -> _Code:
    made = context._keep(_Codes, _Codes).made
    code = made.get((width, axes))
    if code is None:
        code = made.setdefault((width, axes), _loaded(box, width, axes))
    return code


def _loaded(context: ContextHandle, width: int, axes: int) -> _Code:
    box, api = ModuleHandle(context), context.api
    doing = f"loading the copy of elements of {width} bytes along {axes} axes"
    result = box.make(api.cuModuleLoadData, _text(width, axes))
    if result:
        raise failure(api, result, "cuModuleLoadData", doing)
    result, function = context.call(api.cuModuleGetFunction, box.raw, _NAME.encode())
    if result:
        raise failure(api, result, "cuModuleGetFunction", doing)
    return _Code(box, function)


@cache  # one of few
def _text(width: int, axes: int) -> bytes:
    """The PTX, as the driver takes it."""
    names = (f".u32 extent{n}, .param .u64 to{n}, .param .u64 of{n}" for n in range(axes))
    register, kind, value = _MOVE[width]
    text = _TEXT.format(
        name=_NAME,
        parameters="".join(f",\n    .param {each}" for each in names),
        register=register,
        axes="".join(_AXIS.format(n=n) for n in reversed(range(axes))),
        type=kind,
        value=value,
    )
    return text.encode() + b"\0"
