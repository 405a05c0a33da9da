"""A kernel that adds 1 to one number, as PTX: loading it needs no compiler."""

from __future__ import annotations

from typing import Final

PTX: Final = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry bump(.param .u64 x) {
    .reg .u64 %a;
    .reg .u32 %v;
    ld.param.u64 %a, [x];
    ld.global.u32 %v, [%a];
    add.u32 %v, %v, 1;
    st.global.u32 [%a], %v;
    ret;
}
"""
