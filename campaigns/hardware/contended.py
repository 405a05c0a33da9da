"""Kernels whose threads all use one cell by atomic operations, so that results depend on orders."""

from __future__ import annotations

from itertools import product
from typing import Final

from .case import Case, case_of
from .forms import Form

_NUMBER: Final = "and.b32 v,$a,63; cvt.rn.f32.u32 w,v; mul.rn.f32 w,w,0f3DCCCCCD;"
_SUMS: Final = {
    "f32": ("f32", "mov.f32 x,w;"),
    "f64": ("f64", "cvt.f64.f32 x,w;"),
    "f16": ("b16", "cvt.rn.f16.f32 x,w;"),
}
_INTEGERS: Final = {
    "add.u32": "v", "inc.u32": "99", "dec.u32": "99", "exch.b32": "v", "max.u32": "v",
    "cas.b32": "0,v", "xor.b32": "v",
}  # fmt: skip


def contended_case(seed: int) -> Case:
    """Return a kernel of atomic operations on one cell: of shared, and of global memory.

    The results of a form are the old value, and the last value of the cell.
    """
    found = [
        _form(space, op, "b32", "b32", f"mov.b32 x,{operand.split(',')[-1]};", operand)
        for space, (op, operand) in product(("shared", "global"), _INTEGERS.items())
    ]
    found += [
        _form(space, f"add{'.noftz' * (t == 'f16')}.{t}", t, register, conversion, "x")
        for space, (t, (register, conversion)) in product(("shared", "global"), _SUMS.items())
    ]
    return case_of(f"contended{seed}", found, seed)


def _form(space: str, op: str, t: str, register: str, conversion: str, operand: str) -> Form:
    width = {"f64": 64, "b16": 16}.get(register, 32)
    cell = "[$s0]" if space == "shared" else "[g]"
    operands = operand.replace("v", "x") if register == "b32" and t == "b32" else operand
    text = (
        "{.reg .pred z; .reg .b64 g,zero; .reg .b32 v,k; .reg .f32 w; "
        f".reg .{register} x; mov.u32 k,%tid.x; mul.wide.u32 g,k,16; sub.u64 g,$m,g; "
        f"setp.eq.u32 z,k,0; mov.b64 zero,0; @z st.{space}.b64 {cell},zero; bar.sync 0; "
        f"{_NUMBER} {conversion} atom.{space}.{op} $d,{cell},{operands}; bar.sync 0; "
        f"ld.{space}.b{width} $d2,{cell};}}"
    )
    return Form(f"atom.{space}.{op}", ("u32",), (t, t), text, "memory")
