"""A small emulated device for tests: arrays in, launch, arrays out."""

from __future__ import annotations

import functools
import itertools
import pathlib
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ptx
from ptx.emulate.count.launch_counts import LaunchCounts
from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.model.geometry import GridCall
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.program import Program
from ptx.emulate.threads.device_model import DeviceModel
from ptx.emulate.threads.limits import DEFAULT_LIMITS, Limits
from ptx.signature import KernelParam

Dim3 = tuple[int, int, int]
_BASES = itertools.count(1)
_FORMATS = {"f32": "<f", "f64": "<d", "u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q"}


def ptx_text(body: str, params: str = "", before: str = "", name: str = "k") -> str:
    """A module with one kernel, for instructions written by hand."""
    return (
        f".version 8.7\n.target sm_90\n.address_size 64\n{before}\n"
        f".visible .entry {name}({params})\n{{\n{body}\n}}\n"
    )


@functools.lru_cache(maxsize=16)
def compiled(target: str, *extra: str) -> str:
    """The PTX of kernels.cu for a target."""
    source = pathlib.Path(__file__).with_name("kernels.cu").read_text()
    options = ptx.CompileOptions(
        target=ptx.Target.ptx(target), lineinfo="lineinfo" in extra, debug="debug" in extra
    )
    text = ptx.compile(source, options, name="kernels.cu", cache=False).ptx
    assert text is not None
    return text


@functools.lru_cache(maxsize=8)
def _parsed(text: str) -> ptx.PtxModule:
    """Many tests take one kernel each of one text; nothing changes a module."""
    return ptx.parse(text)


class KernelRunner:
    """One device with one module."""

    def __init__(self, text: str, nbytes: int = 1 << 28) -> None:
        self.memory = DeviceMemory(next(_BASES) << 40, nbytes)
        self.device = DeviceModel(self.memory)
        self.program = Program(_parsed(text), self.device)

    def put(self, array: NDArray[Any], origin: str = "") -> int:
        """Copy an array to fresh memory."""
        address = self.memory.allocate(max(array.nbytes, 1), origin=origin)
        self.set(address, array)
        return address

    def set(self, address: int, array: NDArray[Any]) -> None:
        """Copy an array to memory that is there."""
        start = address - self.memory.base
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        self.memory.data[start : start + array.nbytes] = flat

    def get(self, address: int, count: int, dtype: Any) -> NDArray[Any]:
        """Copy `count` elements back."""
        start = address - self.memory.base
        nbytes = count * np.dtype(dtype).itemsize
        found: NDArray[Any] = self.memory.data[start : start + nbytes].view(dtype).copy()
        return found

    def launch(
        self,
        name: str,
        grid: int | Dim3,
        block: int | Dim3,
        *arguments: int | float | bytes,
        shared: int = 0,
        cooperative: bool = False,
        limits: Limits = DEFAULT_LIMITS,
        cluster: Dim3 | None = None,
        order: LaunchOrder | None = None,
        counts: LaunchCounts | None = None,
    ) -> int:
        """Pack the arguments by the kernel's signature and run it; how its order was decided."""
        kernel = self.program.kernel(name)
        data = bytearray(kernel.signature.nbytes)
        for param, value in zip(kernel.signature.params, arguments, strict=True):
            packed = _packed(param, value)
            data[param.offset : param.offset + len(packed)] = packed
        call = GridCall(_three(grid), _three(block), bytes(data), shared, cooperative, cluster)
        return kernel.launch(call, limits=limits, order=order, counts=counts)


def _three(extent: int | Dim3) -> Dim3:
    return (extent, 1, 1) if isinstance(extent, int) else extent


def _packed(param: KernelParam, value: int | float | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    if param.ptx_type[0] == "f":
        return struct.pack(_FORMATS[param.ptx_type], value)
    return (int(value) & ((1 << 8 * param.nbytes) - 1)).to_bytes(param.nbytes, "little")


def run(
    body: str, inputs: NDArray[Any], dtype: Any, *, before: str = "", block: int | None = None
) -> NDArray[Any]:
    """Run a body once a thread: %rd1 is where its row of `inputs` is, %rd2 where its result goes.

    `inputs` is (n, k); the result is (n,) of `dtype`. Registers %p, %rs, %r, %rd, %f, %fd from 0 to
    39 are declared; %r0 is the thread's number.
    """
    inputs = np.ascontiguousarray(inputs)
    n = len(inputs)
    size = np.dtype(dtype).itemsize
    text = ptx_text(
        f"""
        .reg .pred %p<40>; .reg .b16 %rs<40>; .reg .b32 %r<40>; .reg .b64 %rd<40>;
        .reg .f32 %f<40>; .reg .f64 %fd<40>;
        ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r2, [n];
        mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mad.lo.u32 %r0, %r0, %r1, 0;
        mov.u32 %r1, %tid.x; add.u32 %r0, %r0, %r1;
        setp.ge.u32 %p0, %r0, %r2; @%p0 bra DONE;
        mul.wide.u32 %rd3, %r0, {inputs.strides[0]}; add.u64 %rd1, %rd1, %rd3;
        mul.wide.u32 %rd3, %r0, {size}; add.u64 %rd2, %rd2, %rd3;
        {body}
        DONE: ret;""",
        ".param .u64 in, .param .u64 out, .param .u32 n",
        before,
    )
    runner = KernelRunner(text, 1 << 26)
    source, out = runner.put(inputs), runner.put(np.zeros(n, dtype))
    threads = block or min(n, 256)
    runner.launch("k", -(-n // threads), threads, source, out, n)
    return runner.get(out, n, dtype)
