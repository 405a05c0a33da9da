"""Stores that are wrong in two ways, and launches that count beside a check."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from ptx.emulate.count.launch_counts import LaunchCounts
from ptx.emulate.model.errors import EmulationFault, MemoryFault, UninitialisedRead
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.threads.limits import Limits

from ..kernel_runner import KernelRunner, ptx_text

_BODY = """.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<2>;
    ld.param.u64 %rd1, [out]; ld.param.u32 %r8, [far]; mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; mul.wide.u32 %rd4, %r8, 4;
    add.u64 %rd3, %rd3, %rd4; mov.u32 %r3, s; shl.b32 %r4, %r1, 2; add.u32 %r3, %r3, %r4;
    mov.u32 %r2, 1; mov.u32 %r5, 2;"""
_STORES: Final = {
    "global": "st.global.u32 [%rd3], %r2;",
    "generic": "st.u32 [%rd3], %r2;",
    "generic with an offset": "st.u32 [%rd3 + 8], %r2;",
    "volatile": "st.volatile.u32 [%rd3], %r2;",
    "atomic": "red.global.add.u32 [%rd3], %r2;",
    "atomic, generic": "red.add.u32 [%rd3], %r2;",
}
_UNDEFINED: Final = "ld.shared.u32 %r2, [%r3];"
_FAR: Final = 1 << 20
CHECKED: Final = Limits(checks={"undefined"})


def _fault(store: str, value: str, far: int, mode: str) -> type[EmulationFault] | None:
    """Return the type of the fault of a launch, counted or in another order; None if it ends."""
    parameters = ".param .u64 out, .param .u32 far"
    text = ptx_text(f"{_BODY} {value} {store} ret;", parameters, before=".shared .b32 s[64];")
    runner = KernelRunner(text, 1 << 20)
    out = runner.put(np.zeros(64, np.uint32))
    counts = LaunchCounts() if mode == "counted" else None
    order = LaunchOrder("random", 3) if mode == "random" else None
    try:
        runner.launch("k", 1, 48, out, far, limits=CHECKED, counts=counts, order=order)
    except EmulationFault as fault:
        return type(fault)
    return None


def test_the_undefined_value_of_a_store_is_reported_before_its_address() -> None:
    wrong = []
    for mode in ("", "counted", "random"):
        for name, store in _STORES.items():
            for value, far in ((v, f) for v in ("", _UNDEFINED) for f in (0, _FAR)):
                found = _fault(store, value, far, mode)
                is_expected = (
                    found is UninitialisedRead
                    if value
                    else found is None
                    if not far
                    else found is not None
                    and issubclass(found, MemoryFault)
                    and found is not UninitialisedRead
                )
                if not is_expected:
                    wrong.append((mode, name, value, far, found))
    assert not wrong


def test_a_generic_store_of_undefined_values_is_rejected_only_in_global_memory() -> None:
    # Of each pair of threads one stores to its own place of shared memory, which is a copy.
    split = """and.b32 %r6, %r1, 1; setp.eq.u32 %p1, %r6, $; cvta.shared.u64 %rd5, %rd6;
        selp.b64 %rd3, %rd3, %rd5, %p1; st.u32 [%rd3], %r2;"""
    address = "cvt.u64.u32 %rd6, %r3;"
    assert _fault(split.replace("$", "2"), f"{address} {_UNDEFINED}", 0, "") is None
    assert _fault(split.replace("$", "0"), f"{address} {_UNDEFINED}", 0, "") is UninitialisedRead
    assert _fault(split.replace("$", "0"), address, 0, "") is None


@pytest.mark.parametrize("mode", ["", "counted"])
def test_launches_that_count_follow_undefined_values(mode: str) -> None:
    copied = f"{_UNDEFINED} add.u32 %r7, %r2, 1; st.global.u32 [%rd3], %r5;"
    assert _fault(copied, "", 0, mode) is None
    assert _fault(copied.replace("%r5;", "%r7;"), "", 0, mode) is UninitialisedRead
