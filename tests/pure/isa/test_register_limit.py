"""Where a register limit is written into PTX."""

from __future__ import annotations

import pytest

import ptx
from ptx.isa.module import with_register_limit

TEXT = """.version 8.0
.target sm_90
.address_size 64
.func f() { ret; }
.visible .entry plain(
	.param .u64 a
)
{ // not { here
	ret;
}
.visible .entry bounded() .maxntid 64, 1, 1
{ ret; }
.visible .entry own() .maxnreg 24 { ret; }
.entry least() .minnctapersm 2 { ret; } .entry exact() .reqntid 32 { ret; }
"""


def test_kernels_without_limits_of_their_own_get_it_and_lines_keep_their_numbers() -> None:
    found = with_register_limit(TEXT, 40)
    assert found == TEXT.replace("{ // not", ".maxnreg 40 { // not")
    module = ptx.parse(found)
    assert [entry.directives.get("maxnreg") for entry in module.entries] == [
        (40,), None, (24,), None, None,
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("registers", [None, 32])
def test_compiled_and_linked_ptx_reports_its_limit(registers: int | None) -> None:
    source = 'extern "C" __global__ void k(int* a) { a[threadIdx.x] = 1; }'
    options = ptx.CompileOptions(target=ptx.Target.ptx("compute_90"), maxrregcount=registers)
    compiled = ptx.compile(source, options, cache=False)
    part = ptx.compile(source, ptx.CompileOptions(target=ptx.Target.ltoir("sm_90")), cache=False)
    link = ptx.LinkOptions(maxrregcount=registers)
    linked = ptx.link([part], ptx.Target.ptx("compute_90"), link, cache=False)
    for image in (compiled, linked):
        assert image.data.decode() == image.ptx
        (entry,) = ptx.parse(image.ptx or "").entries
        assert entry.directives.get("maxnreg") == (None if registers is None else (registers,))
