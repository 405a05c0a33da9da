"""Forms in which PTX drops a loaded value or uses it, in each space and of each size."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ptx.emulate.check.findings import Findings
from ptx.emulate.check.held_loads import MOST_HELD
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.threads.limits import Limits
from tests.short_cases import few

from ..kernel_runner import KernelRunner, ptx_text

# The predicate %p0 holds in each thread but the last one, which alone writes [V].
_TEXT = """
.reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<8>; .reg .b16 %h<4>;
ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];
mov.u32 %r0, %tid.x;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd2, %rd2, %rd3;
cvta.global.u64 %rd4, %rd1;
setp.ne.u32 %p0, %r0, 32;
setp.eq.u32 %p1, %r0, 32;
mov.u32 %r9, 0;
mov.u32 %r8, 1;
mov.u64 %rd5, 0;
BODY
@%p1 st.SPACE.u32 [V], %r9;
ret;
"""
_LOAD = "ld.SPACE.u32 %r1, [V];"
_STORE = "st.global.u32 [%rd2], %r2;"
DROPPED = {
    "selection": f"{_LOAD} selp.b32 %r2, %r9, %r1, %p0; {_STORE}",
    "other side of a selection": f"{_LOAD} selp.b32 %r2, %r1, %r9, %p1; {_STORE}",
    "selection of a sum": f"{_LOAD} add.s32 %r1, %r1, 3; selp.b32 %r2, %r9, %r1, %p0; {_STORE}",
    "selection of a comparison": f"{_LOAD} setp.gt.s32 %p2, %r1, 3; and.pred %p3, %p2, %p1;"
    f" selp.b32 %r2, 1, 2, %p3; {_STORE}",
    "comparison with and": f"{_LOAD} setp.gt.and.s32 %p2, %r1, 3, %p1; selp.b32 %r2, 1, 2, %p2;"
    f" {_STORE}",
    "comparison with or": f"{_LOAD} setp.gt.or.s32 %p2, %r1, 3, %p0; selp.b32 %r2, 1, 2, %p2;"
    f" {_STORE}",
    "guard": f"{_LOAD} mov.u32 %r2, 0; @%p1 mov.u32 %r2, %r1; {_STORE}",
    "guarded store": f"{_LOAD} @%p1 st.global.u32 [%rd2], %r1;",
    "branch": f"{_LOAD} @%p0 bra END; st.global.u32 [%rd2], %r1; END:",
    "branch by an or": f"{_LOAD} setp.gt.s32 %p2, %r1, 9; or.pred %p3, %p0, %p2; @%p3 bra END;"
    " st.global.u32 [%rd2], %r9; END:",
    "zero test of an or": f"{_LOAD} selp.b32 %r3, 1, 0, %p0; or.b32 %r4, %r1, %r3;"
    f" setp.ne.s32 %p2, %r4, 0; selp.b32 %r2, 5, 6, %p2; {_STORE}",
    "zero test of a longer or": f"{_LOAD} selp.b32 %r3, 1, 0, %p0; or.b32 %r4, %r3, %r1;"
    f" or.b32 %r4, %r4, %r9; setp.eq.s32 %p2, %r4, 0; selp.b32 %r2, 5, 6, %p2; {_STORE}",
    "and with zero": f"{_LOAD} selp.b32 %r3, 0, -1, %p0; and.b32 %r2, %r1, %r3; {_STORE}",
    "or with all bits": f"{_LOAD} selp.b32 %r3, -1, 0, %p0; or.b32 %r2, %r3, %r1; {_STORE}",
    "overwritten": f"{_LOAD} @%p1 bra SAME; mov.u32 %r1, 5; SAME: mov.u32 %r2, %r1; {_STORE}",
    "selection after a store": f"{_LOAD} st.global.u32 [%rd2], %r0; selp.b32 %r2, %r9, %r1, %p0;"
    f" {_STORE}",
    "loop": f"mov.u32 %r2, 0; NEXT: {_LOAD} selp.b32 %r3, %r9, %r1, %p0; add.s32 %r2, %r2, %r3;"
    f" add.s32 %r8, %r8, 1; setp.lt.s32 %p2, %r8, 4; @%p2 bra NEXT; {_STORE}",
    "element": f"ld.SPACE.v2.u32 {{%r5, %r1}}, [V]; selp.b32 %r2, %r9, %r1, %p0; {_STORE}",
    "four elements": "ld.SPACE.v4.u32 {%r5, %r1, %r6, %r7}, [V]; add.s32 %r1, %r1, %r7;"
    f" selp.b32 %r2, %r9, %r1, %p0; {_STORE}",
    "1 byte": f"ld.SPACE.u8 %r1, [V]; selp.b32 %r2, %r9, %r1, %p0; {_STORE}",
    "2 bytes": f"ld.SPACE.u16 %h1, [V]; cvt.u32.u16 %r1, %h1; selp.b32 %r2, %r9, %r1, %p0;{_STORE}",
    "8 bytes": f"ld.SPACE.u64 %rd6, [V]; selp.b64 %rd7, %rd5, %rd6, %p0; cvt.u32.u64 %r2, %rd7;"
    f" {_STORE}",
    "call": f"{_LOAD} selp.b32 %r2, %r9, %r1, %p0; {_STORE} call f;",
}
USED = {
    "store": f"{_LOAD} st.global.u32 [%rd2], %r1;",
    "selection": f"{_LOAD} selp.b32 %r2, %r1, %r9, %p0; {_STORE}",
    "one thread": f"{_LOAD} setp.ne.u32 %p4, %r0, 7; selp.b32 %r2, %r9, %r1, %p4; {_STORE}",
    "selector": f"{_LOAD} setp.gt.s32 %p2, %r1, 3; selp.b32 %r2, %r9, %r8, %p2; {_STORE}",
    "comparison with and": f"{_LOAD} setp.gt.and.s32 %p2, %r1, 3, %p0; selp.b32 %r2, 1, 2, %p2;"
    f" {_STORE}",
    "guard": f"{_LOAD} mov.u32 %r2, 0; @%p0 mov.u32 %r2, %r1; {_STORE}",
    "guard's condition": f"{_LOAD} setp.gt.s32 %p2, %r1, 3; mov.u32 %r2, 0; @%p2 mov.u32 %r2, 1;"
    f" {_STORE}",
    "guarded store": f"{_LOAD} @%p0 st.global.u32 [%rd2], %r1;",
    "condition of a store": f"{_LOAD} setp.gt.s32 %p2, %r1, 3; @%p2 st.global.u32 [%rd2], %r9;",
    "branch": f"{_LOAD} @%p1 bra END; st.global.u32 [%rd2], %r1; END:",
    "condition of a branch": f"{_LOAD} setp.gt.s32 %p2, %r1, 9; @%p2 bra END;"
    " st.global.u32 [%rd2], %r9; END:",
    "zero test of an or": f"{_LOAD} or.b32 %r4, %r1, %r9;"
    f" setp.ne.s32 %p2, %r4, 0; selp.b32 %r2, 5, 6, %p2; {_STORE}",
    "test of an or": f"{_LOAD} selp.b32 %r3, 1, 0, %p0; or.b32 %r4, %r1, %r3;"
    f" setp.gt.u32 %p2, %r4, 5; selp.b32 %r2, 5, 6, %p2; {_STORE}",
    "zero test of a part of an or": f"{_LOAD} selp.b32 %r3, 1, 0, %p0; or.b32 %r4, %r1, %r3;"
    f" and.b32 %r4, %r4, 2; setp.ne.s32 %p2, %r4, 0; selp.b32 %r2, 5, 6, %p2; {_STORE}",
    "one side of a selection": f"{_LOAD} @%p1 bra END; selp.b32 %r2, %r9, %r1, %p1; {_STORE} END:",
    "address": f"{_LOAD} @%p1 bra END; shr.u32 %r1, %r1, 31; shl.b32 %r1, %r1, 2;"
    " cvt.u64.u32 %rd6, %r1; add.s64 %rd6, %rd2, %rd6; ld.global.u32 %r2, [%rd6]; END:",
    "exchange": f"{_LOAD} shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; selp.b32 %r2, %r9, %r2, %p1;"
    f" {_STORE}",
    "later step of a loop": "mov.u32 %r1, 0; NEXT: selp.b32 %r2, %r9, %r1, %p1;"
    f" {_LOAD} {_STORE} add.s32 %r8, %r8, 1; setp.lt.s32 %p2, %r8, 4; @%p2 bra NEXT;",
    "first step of a loop": "mov.u32 %r2, 0; mov.u32 %r3, 0;"
    f" NEXT: {_LOAD} setp.eq.s32 %p3, %r8, 1; and.pred %p3, %p3, %p0;"
    " selp.b32 %r2, %r1, %r2, %p3; add.s32 %r8, %r8, 1; setp.lt.s32 %p2, %r8, 4; @%p2 bra NEXT;"
    f" {_STORE}",
    "after a barrier": f"{_LOAD} @%p1 st.SPACE.u32 [V], %r9; bar.sync 0;"
    f" selp.b32 %r2, %r1, %r9, %p0; {_STORE}",
    "element": f"ld.SPACE.v2.u32 {{%r1, %r5}}, [V]; selp.b32 %r2, %r1, %r9, %p0; {_STORE}",
    "other element": f"ld.SPACE.v4.u32 {{%r5, %r6, %r7, %r1}}, [V];"
    f" selp.b32 %r2, %r1, %r9, %p0; {_STORE}",
    "1 byte": f"ld.SPACE.u8 %r1, [V]; selp.b32 %r2, %r1, %r9, %p0; {_STORE}",
    "2 bytes": f"ld.SPACE.u16 %h1, [V]; cvt.u32.u16 %r1, %h1; selp.b32 %r2, %r1, %r9, %p0;{_STORE}",
    "8 bytes": f"ld.SPACE.u64 %rd6, [V]; selp.b64 %rd7, %rd6, %rd5, %p0; cvt.u32.u64 %r2, %rd7;"
    f" {_STORE}",
    "argument": f"{_LOAD} selp.b32 %r2, %r1, %r9, %p0; {{ .param .b32 a; st.param.b32 [a], %r2;"
    " call g, (a); }",
    "sum with a later load": f"{_LOAD} ld.global.u32 %r3, [%rd2]; add.s32 %r1, %r1, %r3;"
    f" selp.b32 %r2, %r1, %r9, %p0; {_STORE}",
    "sum with an earlier load": f"ld.global.u32 %r3, [%rd2]; {_LOAD} add.s32 %r1, %r1, %r3;"
    f" selp.b32 %r2, %r1, %r9, %p0; {_STORE}",
    "trap": f"{_LOAD} setp.eq.s32 %p2, %r1, 77; @%p2 trap;",
}
# What the page lists as limitations.
STILL_FOUND = {
    "barrier between": f"{_LOAD} @%p1 st.SPACE.u32 [V], %r9; bar.sync 0;"
    f" selp.b32 %r2, %r9, %r1, %p0; {_STORE}",
    "fence between": f"{_LOAD} membar.cta; selp.b32 %r2, %r9, %r1, %p0; {_STORE}",
    "atomic operation between": f"{_LOAD} atom.global.add.u32 %r4, [%rd2], 1;"
    f" selp.b32 %r2, %r9, %r1, %p0; {_STORE}",
    "atomic operation": "@%p0 atom.SPACE.add.u32 %r1, [V], 0; selp.b32 %r2, %r9, %r1, %p0;"
    f" {_STORE}",
    "generic address": f"ld.u32 %r1, [%rd4]; selp.b32 %r2, %r9, %r1, %p0; {_STORE}",
    "product with zero": f"{_LOAD} selp.b32 %r3, 0, 1, %p0; mul.lo.s32 %r2, %r1, %r3; {_STORE}",
    "more loads than are followed": "".join(
        f"ld.SPACE.u32 %r{k}, [V]; selp.b32 %r2, %r9, %r{k}, %p0; {_STORE}"
        for k in range(10, 11 + MOST_HELD)
    ),
    "volatile": f"ld.volatile.SPACE.u32 %r1, [V]; selp.b32 %r2, %r9, %r1, %p0; {_STORE}",
}
ORDERS = (None, LaunchOrder("late"), LaunchOrder("random", 1))
_FUNCTIONS = ".func f() { ret; }\n.func g(.param .b32 a) { ret; }\n"


def finds_read(body: str, space: str, order: LaunchOrder | None = None) -> bool:
    """Return whether the check finds a race of the loads with the last thread's store."""
    place, before = "%rd1", _FUNCTIONS
    if space == "shared":
        place, before = "v", f"{_FUNCTIONS}.shared .align 16 .b8 v[16];\n"
    text = _TEXT.replace("BODY", body).replace("SPACE", space).replace("[V]", f"[{place}]")
    runner = KernelRunner(ptx_text(text, ".param .u64 p0, .param .u64 p1", before))
    findings = Findings()
    v, o = (runner.put(np.zeros(40, dtype=np.uint32)) for _ in range(2))
    limits = Limits(checks={"race"}, findings=findings)
    runner.launch("k", 1, 33, v, o, limits=limits, order=order)
    kinds = {tuple(sorted(place.what for place in each.places)) for each in findings.found}
    return bool(kinds - {("write", "write")})


@pytest.mark.parametrize(
    ("space", "order"), few(itertools.product(("global", "shared"), ORDERS), 2)
)
@pytest.mark.parametrize("form", few(DROPPED, 8))
def test_a_dropped_value_is_no_access(form: str, space: str, order: LaunchOrder | None) -> None:
    assert not finds_read(DROPPED[form], space, order)


@pytest.mark.parametrize(
    ("space", "order"), few(itertools.product(("global", "shared"), ORDERS), 2)
)
@pytest.mark.parametrize("form", few(USED, 8))
def test_a_used_value_is_an_access(form: str, space: str, order: LaunchOrder | None) -> None:
    assert finds_read(USED[form], space, order)


@pytest.mark.parametrize("space", few(("global", "shared"), 1))
def test_a_value_is_an_access_before_its_thread_overwrites_it(space: str) -> None:
    body = (
        "@%p1 st.SPACE.u32 [V], %r9; setp.ne.u32 %p4, %r0, 7; @%p4 bra END;"
        f" {_LOAD} st.SPACE.u32 [V], %r9; selp.b32 %r2, %r1, %r9, %p0; {_STORE} END: bar.sync 0;"
    )
    assert finds_read(body, space)


@pytest.mark.parametrize("form", few(STILL_FOUND, 2))
def test_a_dropped_value_that_is_not_followed_is_an_access(form: str) -> None:
    assert finds_read(STILL_FOUND[form], "global")
