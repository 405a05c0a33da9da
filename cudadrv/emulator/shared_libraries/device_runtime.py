"""What `libcudadevrt` brings to a link, as far as kernels of Numba need it: a grid's barrier.

The barrier is that of NVRTC's own cooperative groups (`cooperative_groups/details/sync.h`): a word
of the launch's workspace, whose highest bit each barrier turns over.
"""

from __future__ import annotations

from typing import Final

NAME: Final = "cudadevrt"
DEVICE_RUNTIME: Final = """.version 7.0
.target sm_70
.address_size 64
.visible .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope) {
  .reg .b32 %low, %high; .reg .b64 %handle;
  mov.u32 %high, %envreg1; mov.u32 %low, %envreg2; mov.b64 %handle, {%low, %high};
  st.param.b64 [result], %handle; ret;
}
.visible .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags) {
  .reg .b32 %x, %y, %z, %n, %old, %now; .reg .b64 %word; .reg .pred %p;
  ld.param.b64 %word, [handle];
  setp.eq.u64 %p, %word, 0; @%p trap;
  add.u64 %word, %word, 4;
  barrier.sync 0;
  mov.u32 %x, %tid.x; mov.u32 %y, %tid.y; mov.u32 %z, %tid.z;
  or.b32 %x, %x, %y; or.b32 %x, %x, %z; setp.ne.u32 %p, %x, 0; @%p bra DONE;
  mov.u32 %x, %nctaid.x; mov.u32 %y, %nctaid.y; mov.u32 %z, %nctaid.z;
  mul.lo.u32 %n, %x, %y; mul.lo.u32 %n, %n, %z; sub.u32 %n, 0x80000001, %n;
  mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %ctaid.z;
  or.b32 %x, %x, %y; or.b32 %x, %x, %z; setp.eq.u32 %p, %x, 0; selp.b32 %n, %n, 1, %p;
  atom.add.release.gpu.u32 %old, [%word], %n;
WAIT:
  ld.acquire.gpu.u32 %now, [%word];
  xor.b32 %now, %now, %old; setp.ge.s32 %p, %now, 0; @%p bra WAIT;
DONE:
  barrier.sync 0;
  st.param.b32 [result], 0; ret;
}
"""
