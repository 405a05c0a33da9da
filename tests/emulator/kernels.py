"""Small kernels in PTX."""

EMPTY = ".visible .entry empty() { ret; }"
FILL = """
.visible .entry fill(.param .u64 p, .param .u32 v, .param .u8 c) {
  .reg .b64 %rd<4>; .reg .b32 %r<4>;
  ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1;
  ld.param.u32 %r1, [v];
  mov.u32 %r2, %tid.x; mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r1;
  ret;
}"""
INCREMENT = """
.visible .entry increment(.param .u64 p) {
  .reg .b64 %rd<3>; .reg .b32 %r<3>;
  ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1;
  ld.global.u32 %r1, [%rd1]; add.s32 %r1, %r1, 1; st.global.u32 [%rd1], %r1;
  ret;
}"""
OWN_ELEMENT = """
.visible .entry own_element(.param .u64 p) {
  .reg .b64 %rd<3>; .reg .b32 %r<5>;
  ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r4;
  ret;
}"""
FETCH = """
.visible .entry fetch(.param .u64 p, .param .u64 t) {
  .reg .b64 %rd<4>; .reg .f32 %f<5>; .reg .b32 %r<2>;
  ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1; ld.param.u64 %rd2, [t];
  mov.u32 %r1, 0;
  tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd2, {%r1}];
  st.global.f32 [%rd1], %f1;
  ret;
}"""
MAXNTID = ".visible .entry bounded(.param .u32 v) .maxntid 128, 1, 1 { ret; }"
REQNTID = ".visible .entry required(.param .u32 v) .reqntid 64, 1, 1 { ret; }"
STATIC_SHARED = """
.visible .entry statics(.param .u64 p) {
  .shared .align 4 .b8 s[1000];
  .reg .b32 %r<3>; .reg .b64 %rd<4>;
  mov.u32 %r1, %tid.x; mov.u32 %r2, s; ld.param.u64 %rd1, [p];
  st.volatile.shared.u32 [%r2], %r1; ld.volatile.shared.u32 %r1, [%r2];
  cvta.to.global.u64 %rd1, %rd1; st.global.u32 [%rd1], %r1;
  ret;
}"""
DYNAMIC_SHARED = """
.extern .shared .align 4 .b8 dynamic[];
.visible .entry dynamics(.param .u64 p, .param .u32 at) {
  .reg .b32 %r<5>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1; ld.param.u32 %r1, [at];
  mov.u32 %r2, dynamic; add.u32 %r2, %r2, %r1; mov.u32 %r3, 77;
  st.volatile.shared.u32 [%r2], %r3; ld.volatile.shared.u32 %r4, [%r2];
  st.global.u32 [%rd1], %r4;
  ret;
}"""
TRAP = ".visible .entry traps() { trap; }"
MISALIGNED = """
.visible .entry misaligned(.param .u64 p) {
  .reg .b64 %rd<3>; .reg .b32 %r<3>;
  ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1; mov.u32 %r1, 5;
  st.global.u32 [%rd1+1], %r1;
  ret;
}"""
SPIN = """
.visible .entry spins() { .reg .b32 %r<2>; mov.u32 %r1, 0;
L: add.s32 %r1, %r1, 1; bra L; }"""
# PTX has it, and the emulator does not execute it.
UNKNOWN_OPCODE = """
.visible .entry unknown() { .reg .b32 %r<2>;
  alloca.u32 %r1, 8;
  ret; }"""
VARIABLE = ".visible .global .align 4 .u32 gv[4] = {1, 2, 3, 4};"
