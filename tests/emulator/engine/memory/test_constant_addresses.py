"""Addresses of constants in registers and variables of 32 and of 64 bits."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

import ptx
from ptx.emulate.program import Program
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text

VALUES: Final = [11, 22, 33, 44, 55, 66, 77, 88]
VARIABLES: Final = f"""
.const .u32 before[5] = {{1, 2, 3, 4, 5}};
.const .u32 data[8] = {{{", ".join(map(str, VALUES))}}};
.const .u32 short_address[2] = {{data+4, before}};
.const .u64 long_address[2] = {{data+4, before}};
.global .u32 global_short[2] = {{data+4, before}};
.global .u64 generic_address = generic(data)+4;
"""
# Ways to an address of data[1]: in %r1 or in %d1, of constants or, by `generic`, of all memory.
SHORT: Final = {
    "a move": "mov.u32 %r1, data; add.u32 %r1, %r1, 4;",
    "a move with an offset": "mov.u32 %r1, data+4;",
    "a constant": "ld.const.u32 %r1, [short_address];",
    "a variable": "ld.global.u32 %r1, [global_short];",
    "the low half": "mov.u64 %d1, data; cvt.u32.u64 %r1, %d1; add.u32 %r1, %r1, 4;",
    "a generic address": "ld.global.u64 %d1, [generic_address]; cvta.to.const.u64 %d1, %d1;"
    " cvt.u32.u64 %r1, %d1;",
}
LONG: Final = {
    "a move": "mov.u64 %d1, data; add.u64 %d1, %d1, 4;",
    "a constant": "ld.const.u64 %d1, [long_address];",
    "a generic address": "ld.global.u64 %d1, [generic_address]; cvta.to.const.u64 %d1, %d1;",
}
_OFFSET: Final = "and.b32 %r2, %r0, 3; shl.b32 %r2, %r2, 2; cvt.u64.u32 %d2, %r2;"
LOADS: Final = {
    "short": "add.u32 %r1, %r1, %r2; ld.const.u32 %r3, [%r1+8];",
    "extended": "cvt.u64.u32 %d1, %r1; cvta.const.u64 %d1, %d1; add.u64 %d1, %d1, %d2;"
    " ld.u32 %r3, [%d1+8];",
    "long": "add.u64 %d1, %d1, %d2; ld.const.u32 %r3, [%d1+8];",
    "generic": "cvta.const.u64 %d1, %d1; add.u64 %d1, %d1, %d2; ld.u32 %r3, [%d1+8];",
}


def _kernel(way: str, load: str) -> str:
    body = f"""
        .reg .b32 %r<9>; .reg .b64 %d<9>;
        ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; {_OFFSET}
        {way} {load}
        mul.wide.u32 %d2, %r0, 4; add.u64 %d0, %d0, %d2; st.global.u32 [%d0], %r3; ret;
    """
    return ptx_text(body, ".param .u64 out", VARIABLES)


CASES: Final = {
    f"{way} of {bits}, {load}": _kernel(ways[way], LOADS[load])
    for bits, ways, loads in (
        ("32 bits", SHORT, ("short", "extended")),
        ("64 bits", LONG, ("long", "generic")),
    )
    for way in ways
    for load in loads
}


def _loaded(runner: KernelRunner, threads: int) -> list[int]:
    out = runner.put(np.zeros(threads, np.uint32))
    runner.launch("k", 1, threads, out)
    return [int(value) for value in runner.get(out, threads, np.uint32)]


@pytest.mark.parametrize("threads", [1, 64])
def test_constants_are_read_at_addresses_of_either_width(threads: int) -> None:
    expected = [VALUES[3 + (thread & 3)] for thread in range(threads)]
    wrong = {
        name: found
        for name, text in CASES.items()
        if (found := _loaded(KernelRunner(text), threads)) != expected
    }
    assert wrong == {}


@pytest.mark.parametrize("threads", [1, 64])
def test_a_vector_of_constants_is_read_at_a_short_address(threads: int) -> None:
    load = "and.b32 %r2, %r2, 8; add.u32 %r1, %r1, %r2; ld.const.v2.u32 {_, %r3}, [%r1+4];"
    found = _loaded(KernelRunner(_kernel("mov.u32 %r1, data+4;", load)), threads)
    assert found == [VALUES[3 + (thread & 2)] for thread in range(threads)]


def test_short_addresses_work_beyond_the_first_4_gib_of_memory() -> None:
    text = CASES["a move of 32 bits, short"]
    runner = KernelRunner(text, 5 << 30)
    runner.memory.allocate(9 << 29, origin="a large array")
    runner.program = Program(ptx.parse(text), runner.device)
    assert _loaded(runner, 4) == VALUES[3:7]
