"""Modules for tensor memory, written by hand, and what is common to them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text

HEAD = """
.reg .b32 %r<300>; .reg .f32 %f<16>; .reg .b64 %rd<16>; .reg .pred %p<8>;
.shared .align 1024 .b8 pool[32768]; .shared .align 8 .b64 bar; .shared .b32 slot;
ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; and.b32 %r3, %r1, 31; shl.b32 %r4, %r2, 21;
setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r2, 0; setp.eq.u32 %p3, %r1, %r1;
"""
PARAMS = ".param .u64 in, .param .u64 out"
ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"
DEALLOC = "tcgen05.dealloc.cta_group::1.sync.aligned.b32"


def with_columns(body: str, columns: int = 512) -> str:
    """A body whose first warp holds columns, from %r5 on; %r6 is where the warp's lanes begin."""
    return f"""
    @%p2 {ALLOC} [slot], {columns}; bar.sync 0; ld.shared.u32 %r5, [slot]; add.u32 %r6, %r5, %r4;
    {body}
    bar.sync 0; @%p2 {DEALLOC} %r5, {columns};
    """


def runner_of(body: str, target: str = "sm_100a", nbytes: int = 1 << 22) -> KernelRunner:
    """A device with one kernel `k(in, out)`."""
    text = ptx_text(HEAD + body + "\nret;", PARAMS).replace("sm_90", target)
    return KernelRunner(text, nbytes)


def launched(
    body: str,
    x: NDArray[Any],
    count: int,
    threads: int = 128,
    *,
    grid: int = 1,
    limits: Limits | None = None,
    order: LaunchOrder | None = None,
) -> NDArray[np.uint32]:
    """What a kernel of this body writes to `out`."""
    runner = runner_of(body)
    source, out = runner.put(x), runner.put(np.zeros(count, np.uint32))
    runner.launch("k", grid, threads, source, out, limits=limits or Limits(), order=order)
    return runner.get(out, count, np.uint32)
