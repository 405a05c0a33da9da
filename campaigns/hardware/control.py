"""Kernels in which some threads end early, and in which warps exchange registers."""

from __future__ import annotations

from typing import Final

from .case import Buffer, Case

_THREADS: Final = 256
_HEAD: Final = """\
.version 9.0
.target sm_90a
.address_size 64
.func (.param .b32 d) square(.param .b32 a)
{ .reg .pred q; .reg .b32 x; ld.param.b32 x,[a]; mul.lo.u32 x,x,x; st.param.b32 [d],x;
setp.lt.u32 q,x,1000; @q ret; add.u32 x,x,7; st.param.b32 [d],x; ret; }
"""
_START: Final = """
{
.reg .b64 i,o; .reg .b32 t,v,w; .reg .pred q,r;
ld.param.u64 i,[I]; ld.param.u64 o,[O0]; mov.u32 t,%tid.x; mad.wide.u32 i,t,4,i;
mad.wide.u32 o,t,4,o; ld.global.b32 v,[i]; st.global.b32 [o],v;"""


def control_cases() -> list[Case]:
    """Return both cases."""
    endings = """
setp.gt.s32 q,v,0; setp.lt.u32 r,t,100; and.b32 w,t,63; {.param .b32 a,d;
st.param.b32 [a],w; call (d),square,(a); ld.param.b32 w,[d];} st.global.b32 [o],w;
@r bra L; @q exit; add.u32 w,w,1; st.global.b32 [o],w; L: @q ret; add.u32 w,w,2;
st.global.b32 [o],w; exit;
}
"""
    registers = """
setp.lt.u32 q,t,128; @q bra FEWER; setmaxnreg.inc.sync.aligned.u32 168; bra MANY;
FEWER: setmaxnreg.dec.sync.aligned.u32 40; mul.lo.u32 w,v,3; bra END;
MANY: mov.u32 w,v;
{}
END: bar.sync 0; st.global.b32 [o],w; ret;
}}
""".format("\n".join(f"mad.lo.u32 w,w,{2 * k + 3},{k};" for k in range(20)))
    return [
        _case("endings", ("exit", "ret"), endings),
        _case("registers", ("setmaxnreg",), registers, ".maxnreg 104"),
    ]


def _case(name: str, forms: tuple[str, ...], body: str, directive: str = "") -> Case:
    entry = f".visible .entry K(.param .u64 I,.param .u64 O0) {directive}"
    buffers = Buffer("raw32", _THREADS * 4), Buffer("zero", _THREADS * 4, "u4")
    return Case(name, _HEAD + entry + _START + body, buffers, forms[:1], threads=_THREADS)
