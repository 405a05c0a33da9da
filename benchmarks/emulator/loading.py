"""How long a large module takes until its first kernel is ready."""

from __future__ import annotations

from collections.abc import Callable

import ptx
from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.program import EmulatedKernel, Program
from ptx.emulate.threads.device_model import DeviceModel


def large_module(instructions: int, kernels: int) -> str:
    """PTX of several kernels, with about so many instructions in all."""
    each = instructions // kernels
    lines = [".version 8.0", ".target sm_90", ".address_size 64"]
    for number in range(kernels):
        lines += [
            f".visible .entry k{number}(.param .u64 p)",
            "{",
            f".reg .b32 %r<{each + 2}>; .reg .f32 %f<{each + 2}>; .reg .b64 %rd<4>;",
            "ld.param.u64 %rd1, [p]; ld.global.u32 %r0, [%rd1]; ld.global.f32 %f0, [%rd1];",
        ]
        for at in range((each - 6) // 2):
            lines.append(f"add.s32 %r{at + 1}, %r{at}, {at};")
            lines.append(f"fma.rn.f32 %f{at + 1}, %f{at}, %f0, %f{at};")
        last = (each - 6) // 2
        lines += [f"st.global.u32 [%rd1], %r{last};", f"st.global.f32 [%rd1+4], %f{last};"]
        lines += ["ret;", "}"]
    return "\n".join(lines)


def first_kernel(text: str) -> Callable[[], EmulatedKernel]:
    """Reading a module and taking its first kernel."""
    memory = DeviceMemory(1 << 40, 1 << 20)
    return lambda: Program(ptx.parse(text), DeviceModel(memory)).kernel("k0")
