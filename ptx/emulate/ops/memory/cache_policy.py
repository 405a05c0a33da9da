"""Cache policies, opaque values that only `.L2::cache_hint` takes. PTX ISA, "createpolicy"."""

from __future__ import annotations

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import operation
from ptx.isa.model import Instruction

_PRIORITIES = ("evict_first", "evict_last", "evict_normal", "evict_unchanged")


def _policy(e: Emitter, i: Instruction) -> None:
    """Any value: there is no cache, so all policies are the same."""
    e.assign(i.operands[0], "b64", e.constant(0, "u64"))


operation(
    "createpolicy",
    ("b64",),
    (1, 2, 4),
    _policy,
    modifiers=[
        "range", "fractional", "cvt", "global", "L2", *(f"L2::{each}" for each in _PRIORITIES)
    ],
    section="createpolicy",
)  # fmt: skip
